"""Search: fit candidates within a time limit, and select among them on validation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.rng import generator
from evengraph.core.task import Task
from evengraph.metrics.evaluation import Validation
from evengraph.metrics.registry import METRICS
from evengraph.training import Callback, History

if TYPE_CHECKING:
    from evengraph.methods.bases.method import Method


SHARE = 0.5  # of the time left that a candidate may take, unless it is the last
QUICK_SHARE = 0.1  # the same for one that is quick or ignores the graph
FAR = 2.0  # standard errors behind the best from which on a candidate is rejected
USELESS = 0.5  # the same for all that use the graph, behind the best that ignores it
MIN_SHARE = 0.05  # of an average; less is not worth the time that predictions take
LIMITS = "a candidate may take half of the time left, a quick one a tenth"
NO_HELP = "The graph does not help"
CERTAIN = 2.0  # standard errors from which on a difference is called one
ERRORS = (ValueError, RuntimeError, ArithmeticError, MemoryError)  # what a fit may fail with


class OutOfTime(KeyboardInterrupt):
    """Ends a candidate as Ctrl-C does."""


@dataclass(eq=False)
class Trial:
    """A candidate that was fitted, or tried: once per fold."""

    method: Method
    late: bool = False  # whether the time limit ended it
    reason: str = ""  # why it failed, if it did
    probabilities: Tensor = field(default_factory=lambda: torch.empty(0))  # validation, (M, C)
    score: float = 0.0
    others: list[Method] = field(default_factory=list)  # fitted to the other folds

    @property
    def methods(self) -> list[Method]:
        """One fitted method per fold."""
        return [self.method, *self.others]

    @property
    def title(self) -> str:
        """The title of the method."""
        return self.method.full_title


class Search:
    """Candidates, fitted one after the other to one task, or to every fold of one.

    Args:
        tasks: The folds; only their training and validation labels are used.
        time_limit: Seconds for all candidates.
        metric: Metric to select by; None for the one that fits the task.
        race: Whether candidates that are clearly behind are left out of further folds.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        time_limit: float,
        metric: str | None = None,
        *,
        race: bool = True,
    ) -> None:
        self.tasks, self.task, self.race = tasks, tasks[0], race
        self.time_limit, self.started = time_limit, perf_counter()
        self.validation = Validation.of(self.task, metric)
        self.done = 1  # folds that all candidates left were fitted to
        self.fitted: list[Trial] = []
        self.behind: list[Trial] = []  # left out of further folds
        self.failed: list[Trial] = []
        self.not_reached: list[Method] = []
        self.interrupted = False
        self.seconds = 0.0

    def run(self, methods: Sequence[Method], seed: int, on_epoch: Callback) -> None:
        """Fit each, as long as there is time; Ctrl-C ends with what is fitted so far.

        Quick ones and those that ignore the graph come first: there is then a result, and
        something to compare with, however long the others take. Results are in the order given.
        """
        queue = sorted(methods, key=_takes_long)
        for method in queue:
            left = self.started + self.time_limit - perf_counter()
            if self.interrupted or (left <= 0 and self.fitted):
                self.not_reached.append(method)
                continue
            share = SHARE if _takes_long(method) else QUICK_SHARE
            share = 1.0 if method is queue[-1] else share
            try:
                self._fit(Trial(method), seed, perf_counter() + share * left, on_epoch)
            except KeyboardInterrupt:
                if not self.fitted:
                    raise
                self.interrupted = True
                self.not_reached.append(method)
        if not self.fitted:
            raise ValueError(f"No candidate could be fitted: {self.failed[0].reason}")
        self.fitted.sort(key=lambda trial: _index(methods, trial.method))
        if not (self.interrupted or self.not_reached or any(trial.late for trial in self.fitted)):
            self._run_folds(seed, on_epoch)
        self.seconds = perf_counter() - self.started

    def _run_folds(self, seed: int, on_epoch: Callback) -> None:
        """Fit the candidates to the other folds, as long as all can be fitted in time."""
        took = perf_counter() - self.started
        for task in self.tasks[1:]:
            before = len(self.fitted)
            if self.race:
                self._leave_behind(seed)
            began = perf_counter()
            if began + took * len(self.fitted) / before > self.started + self.time_limit:
                return
            again = [
                Trial(type(trial.method)(**trial.method.get_params())) for trial in self.fitted
            ]
            for trial in again:
                try:
                    self._try(trial, task, seed, self.started + self.time_limit, on_epoch)
                except KeyboardInterrupt:
                    self.interrupted = True
                if self.interrupted or trial.reason or trial.late:
                    return  # a fold counts if every candidate was fitted to the end
            self._add_fold(task, again)
            took = perf_counter() - began

    def _leave_behind(self, seed: int) -> None:
        """Keep the candidates that count, and the best with and without the graph.

        Whether the graph is of use is left to the end, when all folds have been seen.
        """
        counts = self._shares(self.fitted, self.validation.resamples(generator(seed)))
        kept = {*counts, *self._best_by_use().values()}
        self.behind += [trial for trial in self.fitted if trial not in kept]
        self.fitted = [trial for trial in self.fitted if trial in kept]

    def _add_fold(self, task: Task, again: Sequence[Trial]) -> None:
        """Count another fold: candidates are scored on the nodes of all folds so far."""
        labels = torch.cat([self.validation.labels, task.graph.y[task.val]])
        self.validation = self.validation._replace(labels=labels)
        for trial, other in zip(self.fitted, again, strict=True):
            trial.others.append(other.method)
            trial.probabilities = torch.cat([trial.probabilities, other.probabilities])
            trial.score = self.validation.score(trial.probabilities)
        self.done += 1

    def _fit(self, trial: Trial, seed: int, deadline: float, on_epoch: Callback) -> None:
        """Fit one candidate to the first fold, and score it."""
        self._try(trial, self.task, seed, deadline, on_epoch)
        if trial.reason:
            self.failed.append(trial)
            return
        trial.score = self.validation.score(trial.probabilities)
        self.fitted.append(trial)

    def _try(
        self, trial: Trial, task: Task, seed: int, deadline: float, on_epoch: Callback
    ) -> None:
        """Fit one candidate; at the deadline it ends with its best weights, as after Ctrl-C."""

        def watch(history: History) -> None:
            history.stage = trial.title
            on_epoch(history)
            if perf_counter() >= deadline:
                trial.late = True
                raise OutOfTime

        try:
            trial.method.fit(task, seed=seed, on_epoch=watch, progress=False)
            trial.probabilities = trial.method.predict_proba(task.graph)[task.val]
        except ERRORS as error:
            trial.reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        except OutOfTime:
            trial.reason = "The time limit ended it before it had learnt anything."
        if not trial.reason:
            ended = any(history.interrupted for history in trial.method.history_)
            self.interrupted = ended and not trial.late

    def weights(self, seed: int) -> dict[int, float]:
        """The selected candidates by index, and their weights, which sum to one.

        As in the vote of Unison, a candidate that is behind the best by one standard error of the
        difference counts 1/e as much: with few validation nodes the average is nearly even, with
        many it is the best candidate alone. Where the graph is of no use, all that use it are out.
        """
        samples = self.validation.resamples(generator(seed))
        useless = self._graph_is_useless(samples)
        allowed = [trial for trial in self.fitted if not (useless and trial.method.uses_graph)]
        shares = self._shares(allowed, samples)
        return {self.fitted.index(trial): share for trial, share in shares.items()}

    def _shares(self, trials: Sequence[Trial], samples: Sequence[Tensor]) -> dict[Trial, float]:
        """What each of some candidates counts in their average; those that do not are left out."""
        best = max(trials, key=lambda trial: trial.score)
        counts = {trial: self._votes(trial, best, samples) for trial in trials}
        least = min(counts[best], MIN_SHARE * sum(counts.values()))
        kept = {trial: count for trial, count in counts.items() if count >= least}
        total = sum(kept.values())
        return {trial: count / total for trial, count in kept.items()}

    def _votes(self, trial: Trial, best: Trial, samples: Sequence[Tensor]) -> float:
        """What a candidate counts in the average, before all are divided by their sum."""
        if trial.score == best.score:
            return float(trial.method.votes)
        noise = self.noise(best, trial, samples)
        behind = (best.score - trial.score) / noise if noise else FAR
        return trial.method.votes * exp(-behind) if behind < FAR else 0.0

    def _graph_is_useless(self, samples: Sequence[Tensor]) -> bool:
        """Whether the best model without the graph is ahead of the best with it."""
        best = self._best_by_use()
        if len(best) < 2:
            return False
        graph, alone = best[True], best[False]
        return graph.score - alone.score < -USELESS * self.noise(graph, alone, samples)

    def _best_by_use(self) -> dict[bool, Trial]:
        """The best candidate that uses the graph (True), and the best that does not."""
        ordered = sorted(self.fitted, key=lambda trial: trial.score)
        return {trial.method.uses_graph: trial for trial in ordered}

    def noise(self, first: Trial, second: Trial, samples: Sequence[Tensor]) -> float:
        """Standard error of the difference between the scores of two candidates."""
        return self.validation.noise(first.probabilities, second.probabilities, samples)

    def history(self, main: Trial) -> list[History]:
        """All stages of all candidates; the main one is that of a given candidate."""
        stages = [
            replace(
                stage,
                main=stage.main and trial is main,
                interrupted=stage.interrupted and not trial.late,
                stage=trial.title,
            )
            for trial in self.fitted
            for stage in trial.method.history_
        ]
        if self.interrupted and not any(stage.interrupted for stage in stages):
            stages[-1].interrupted = True
        return stages

    # Summary

    def summary(self, weights: Mapping[int, float], seed: int) -> list[str]:
        """What was selected, what was rejected and whether the graph helps, one line each.

        That the graph does not help is part of the first line.
        """
        chosen, rejected = self._selected(weights), self._rejected(weights)
        about = self._about_graph(seed)
        if about.startswith(NO_HELP):
            return [line for line in (f"{about}: chose {chosen}", rejected) if line]
        return [line for line in (f"Chose {chosen}", rejected, about) if line]

    def _selected(self, weights: Mapping[int, float]) -> str:
        """Such as `GCN (validation balanced accuracy 81.2) out of 5 candidates in 9 s.`"""
        order = sorted(weights, key=lambda index: -weights[index])
        names = [self.fitted[index].title for index in order]
        if len(order) > 1:
            shares = (f"{n} ({weights[i]:.0%})" for n, i in zip(names, order, strict=True))
            names = [f"an average of {join(list(shares))}"]
        parts = [self.fitted[index].probabilities for index in order]
        mean = weighted_mean([weights[index] for index in order], parts)
        score, title = self.validation.score(mean), METRICS[self.validation.metric].title
        behind = score < max(trial.score for trial in self.fitted)
        near = ", not clearly behind the best" if behind else ""
        tried = len(self.fitted) + len(self.behind) + len(self.failed)
        folds = f", fitted to {self.done} folds each," if self.done > 1 else ""
        return (
            f"{names[0]} (validation {title} {100 * score:.1f}{near}) out of "
            f"{tried} candidate{'s' * (tried != 1)}{folds} in {self.seconds:.0f} s."
        )

    def _rejected(self, weights: Mapping[int, float]) -> str:
        """The other candidates with their scores, and those that the time limit affected."""
        others = [trial for index, trial in enumerate(self.fitted) if index not in weights]
        others += self.behind
        others.sort(key=lambda trial: -trial.score)
        ended = f"Ended by the time limit ({LIMITS})"
        groups = {
            "Rejected": [self._with_score(trial) for trial in others],
            ended: [trial.title for trial in self.fitted if trial.late],
            "Not reached": [method.full_title for method in self.not_reached],
            "Failed": [f"{trial.title} ({trial.reason.rstrip('.')})" for trial in self.failed],
        }
        return " ".join(f"{word}: {'; '.join(names)}." for word, names in groups.items() if names)

    def _with_score(self, trial: Trial) -> str:
        """Such as `GCN (81.2)`; one that was left behind was scored on fewer nodes."""
        folds = len(trial.methods)
        after = f" after {folds} fold{'s' * (folds > 1)}" if folds < self.done else ""
        return f"{trial.title} ({100 * trial.score:.1f}{after})"

    def _about_graph(self, seed: int) -> str:
        """Whether the best model that uses the graph is better than the best that does not."""
        if not has_edges(self.task.graph):
            return f"{NO_HELP}, it has no edges"
        best = self._best_by_use()
        if len(best) < 2:
            return ""
        graph, alone = best[True], best[False]
        samples = self.validation.resamples(generator(seed))
        noise = self.noise(graph, alone, samples)
        gap, reached = graph.score - alone.score, f"{100 * alone.score:.1f}"
        scores = f"{100 * graph.score:.1f} with it and {reached} without it"
        unclear = f"Whether the graph helps is unclear: {scores}"
        if (alone if gap > 0 else graph).late or (gap <= 0 and self.not_reached):
            return f"{unclear}, but some models were not trained to the end."
        if gap > CERTAIN * noise:
            return f"The graph helps: the best model without it, {alone.title}, reaches {reached}."
        if self._graph_is_useless(samples):
            return f"{NO_HELP}, the best models reach {scores}"
        nodes = self.validation.labels.numel()
        return f"{unclear}, which {nodes:,} validation nodes cannot tell apart."


def has_edges(graph: Data) -> bool:
    """Whether an edge joins two different nodes."""
    return bool((graph.edge_index[0] != graph.edge_index[1]).any())


def _takes_long(method: Method) -> bool:
    return method.uses_graph and not method.is_quick


def _index(methods: Sequence[Method], method: Method) -> int:
    """The index of an object; equal parameters do not make it the same."""
    return next(index for index, other in enumerate(methods) if other is method)


def weighted_mean(weights: Sequence[float], parts: Sequence[Tensor]) -> Tensor:
    """The average of tensors with weights that sum to one."""
    mean = torch.zeros_like(parts[0])
    for weight, part in zip(weights, parts, strict=True):
        mean = mean + weight * part
    return mean


def join(names: Sequence[str]) -> str:
    """Such as `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def method_table() -> Mapping[str, type[Method]]:
    """All methods by name; imported late, because the table imports every method."""
    from evengraph.methods import METHODS

    return METHODS


def portfolio(
    graph: Data,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    names: Collection[str] = (),
) -> dict[str, Method]:
    """The candidates that methods declare in `Method.portfolio`, in the order of METHODS.

    Args:
        graph: Whose `graph_defaults` the candidates have.
        params: Parameters by name of the method, which replace those of the portfolio; candidates
            that they make equal are one.
        names: Only these methods; one without a portfolio is tried as it is.

    Returns:
        Unfitted methods by label: the name of the method, and what differs if it occurs twice.
    """
    candidates = {}
    for name, kind in method_table().items():
        if names and name not in names:
            continue
        given = (params or {}).get(name, {})
        entries = [{**entry, **given} for entry in kind.portfolio or ({},) * bool(names)]
        for entry in entries:
            label = _label(name, entry, entries)
            candidates[label] = kind(**{**kind.graph_defaults(graph), **entry})
    return candidates


def restored(
    about: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
) -> Method:
    """The fitted method that `Method.packed` described."""
    name, table = about["method"], method_table()
    if name not in table:
        raise ValueError(f"there is no method {name!r} in this version")
    method = table[name](**table[name].current_params(about["fields"]))
    method.restore(about, tensors, device)
    return method


def _label(name: str, entry: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> str:
    """The name, with the parameters that tell this entry from the others of its method."""
    differing = {
        key: value
        for key, value in entry.items()
        if any(other.get(key) != value for other in entries)
    }
    return " ".join([name, *(f"{key}={value}" for key, value in differing.items())])


class Committee(NamedTuple):
    """Predictions of the members of a committee, and the weight of each vote.

    Shapes:
        probabilities: (M, N, C)
        weights: (M,), sum to one
    """

    probabilities: Tensor
    weights: Tensor

    @classmethod
    def even(cls, probabilities: Tensor) -> Committee:
        """A committee whose votes have the same weight."""
        members = probabilities.shape[0]
        return cls(probabilities, probabilities.new_full((members,), 1 / members))

    @classmethod
    def joined(cls, committees: Sequence[Committee], weights: Sequence[float]) -> Committee:
        """One committee of all members, where each committee has a weight."""
        parts = [part.weights * weight for part, weight in zip(committees, weights, strict=True)]
        return cls(torch.cat([part.probabilities for part in committees]), torch.cat(parts))

    def to(self, device: torch.device) -> Committee:
        """The same committee on a device."""
        return Committee(*(part.to(device) for part in self))

    def interval(self, classes: Tensor, share: float = 0.8) -> tuple[Tensor, Tensor]:
        """Between which probabilities of a class most of the votes lie, by weight.

        Args:
            classes: One class per node.
            share: Of the votes; the rest is cut off at both ends.

        Shapes:
            classes: int64, (N,)
            returns: (N,) each
        """
        members = self.probabilities.shape[0]
        index = classes.expand(members, -1).unsqueeze(2)
        values, order = self.probabilities.gather(2, index).squeeze(2).sort(dim=0)
        votes = self.weights[order].cumsum(0)  # (M, N)
        cut = (1 - share) / 2
        ends = (
            (votes < level - 1e-6).sum(0).clamp(max=members - 1).unsqueeze(0)
            for level in (cut, 1 - cut)
        )
        low, high = (values.gather(0, end).squeeze(0) for end in ends)
        return low, high

    def agreement(self, predicted: Tensor) -> Tensor:
        """The share of the votes, by weight, that each node's predicted class gets.

        Shapes:
            predicted: int64, (N,)
            returns: (N,), between 0 and 1
        """
        votes = (self.probabilities.argmax(2) == predicted).to(self.weights)
        return (self.weights @ votes).clamp(0, 1)
