"""Auto: fit a portfolio of methods within a time limit and keep what validation prefers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from time import perf_counter
from typing import Any, cast, final

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.rng import generator
from evengraph.core.task import Task, folds
from evengraph.methods.bases.method import Committee, Method, pack_method, reset, restore_method
from evengraph.metrics.evaluation import Validation
from evengraph.metrics.registry import METRICS, comparable_metrics
from evengraph.training import Callback, History

AUTO = "auto"  # the metric that fits the task
FEW = 200  # labels of a class below which folds are worth their time
SHARE = 0.5  # of the time left that a candidate may take, unless it is the last
QUICK_SHARE = 0.1  # the same for one that is quick or ignores the graph
FAR = 2.0  # standard errors behind the best from which on a candidate is rejected
USELESS = 0.5  # the same for all that use the graph, behind the best that ignores it
MIN_SHARE = 0.05  # of an average; less is not worth the time that predictions take
LIMITS = "a candidate may take half of the time left, a quick one a tenth"
NO_HELP = "The graph does not help"
VOTES = {"Unison": 2}  # models that a method counts as in the average: one per view
QUICK = {"LabelPropagation"}  # whose fit takes seconds on any graph, so that it comes early
CERTAIN = 2.0  # standard errors from which on a difference is called one
ERRORS = (ValueError, RuntimeError, ArithmeticError, MemoryError)  # what a fit may fail with


@final
@dataclass(kw_only=True)
class Auto(Method):
    """Fit several models, select on validation, and average those that are close to the best.

    The candidates are those that methods declare (`Method.portfolio`): methods for imbalanced
    classes, trees, label propagation, and models that ignore the graph, each with its defaults for
    the graph. A candidate that is one standard error behind the best on validation gets 1/e of its
    weight in the average, and beyond two it is rejected; Unison counts as two, one per view. If
    models that ignore the graph are ahead, all others are rejected. `summary_` says in at most
    three lines what was selected, what was rejected, and whether the graph helps.

    With few labels, one validation set would select the luckiest candidate. With folds, each fold
    holds out a different part of the labels and trains on the others, validation nodes included.
    Each candidate is fitted once per fold, and the average contains its models of all folds. A
    candidate that is clearly behind gets no further folds.

    Args:
        time_limit: Seconds for all candidates. A candidate may take half of what is left, one that
            ignores the graph a tenth; it then ends with its best weights so far. Checked after
            each epoch: what a large graph needs before the first one is not cut short. If the
            limit cuts nothing short, the seed determines the result.
        metric: Metric to select by. `auto` is the average precision of the rarer of two classes if
            it has less than a quarter of the labels, otherwise balanced accuracy.
        candidates: Names of methods, such as `boosting,logistic`; by default all with a portfolio.
        folds: Maximum number of folds, including the split itself. There are fewer if time runs out
            or if held-out parts would be smaller than validation, and one if every class has at
            least 200 labels. With 1, no model is trained on validation labels.

    Cost:
        O(sum of the candidates' costs), up to the time limit.

    Departs:
        Published ensemble selection adds models one by one as long as the score rises, without
        regard to noise. `max_epochs` and `patience` are upper limits for every candidate;
        `learning_rate` and `weight_decay` have no effect.

    Reference:
        Caruana, Niculescu-Mizil, Crew and Ksikes, "Ensemble Selection from Libraries of Models",
        ICML 2004.
    """

    _weighted_edges = True
    separate_relations = True
    selects_itself = True
    limits = {"time_limit": "positive", "folds": 1}
    own_split_params = {"folds": 5}

    patience: int = 1_000
    time_limit: float = 120.0
    metric: str = AUTO
    candidates: str = ""
    folds: int = 1

    held_out_ = cast("tuple[Tensor, Tensor, Tensor] | None", None)
    """Held-out nodes, what models that did not learn from them predict, and the mask of all labels
    of the task; None without folds. Not saved."""

    def __post_init__(self) -> None:
        super().__post_init__()
        metrics = [name for name, metric in comparable_metrics().items() if not metric.calibration]
        if self.metric not in (AUTO, *metrics):
            allowed = ", ".join((AUTO, *metrics))
            raise ValueError(f"metric must be one of {allowed}, got {self.metric!r}.")
        known = [name for name in method_table() if name != type(self).__name__.lower()]
        for name in self._names:
            if name not in known:
                raise ValueError(f"candidates must be among {', '.join(known)}, got {name!r}.")

    @classmethod
    def graph_defaults(cls, graph: Data) -> dict[str, Any]:
        """Nothing: each candidate has its own."""
        return {}

    @property
    def _names(self) -> list[str]:
        return [name.strip() for name in self.candidates.split(",") if name.strip()]

    def _fit(self, task: Task) -> None:
        seed = int(torch.randint(2**31, ()))
        search = self._search(task, seed)
        methods = []
        for one in portfolio(task.graph, names=self._names).values():  # no more epochs than here
            names = ("max_epochs", "patience")
            limits = {name: min(getattr(one, name), getattr(self, name)) for name in names}
            methods.append(replace(one, **limits))
        if not has_edges(task.graph):
            methods = [one for one in methods if not one.uses_graph] or methods
        search.run(methods, seed, self._report_epoch)
        self._take(search, search.weights(seed))
        self.summary_ = search.summary(search.weights(seed), seed)

    def _search(self, task: Task, seed: int, *, race: bool = True) -> Search:
        counts = task.class_counts + torch.tensor(task.val_counts).to(task.class_counts)
        few = self.folds > 1 and int(counts[counts > 0].min()) < FEW
        tasks = folds(task, self.folds, generator(seed)) if few else [task]
        metric = None if self.metric == AUTO else self.metric
        return Search(tasks, self.time_limit, metric, race=race)

    def _take(self, search: Search, weights: Mapping[int, float]) -> None:
        """Adopt the selected candidates, those of all folds with equal weights."""
        order = sorted(weights, key=lambda index: -weights[index])
        trials = [search.fitted[index] for index in order]
        shares = [weights[index] for index in order]
        self.weights_ = [share / search.done for share in shares for _ in range(search.done)]
        self.members_ = [method for trial in trials for method in trial.methods]
        self.history_ = search.history(trials[0])
        self.held_out_ = None
        if search.done > 1:
            nodes = torch.cat([task.val_nodes for task in search.tasks[: search.done]])
            mean = weighted_mean(shares, [trial.probabilities for trial in trials])
            self.held_out_ = nodes, mean, search.task.train | search.task.val

    def refitted(self, task: Task, *, seed: int) -> Method:
        """The selected methods, fitted again within the time limit; their weights stay."""
        other = Auto(**self.get_params())
        reset(other, task)
        search = other._search(task, seed, race=False)
        copies, weights = list[Method](), list[float]()
        for member, weight in zip(self.members_, self.weights_, strict=True):
            copy = type(member)(**member.get_params())
            if copy not in copies:  # otherwise it is of another fold
                copies.append(copy)
                weights.append(0.0)
            weights[copies.index(copy)] += weight
        search.run(copies, seed, lambda history: None)
        if len(search.fitted) < len(copies):
            left = [trial.method for trial in search.failed] + search.not_reached
            raise ValueError(f"{left[0].full_title} could not be fitted again in time.")
        other._take(search, dict(enumerate(weights)))
        other.summary_, other.fitted_ = list(self.summary_), True
        return other

    def predict_task(self, task: Task) -> Tensor:
        """Class probabilities of every node; of held-out nodes by models that did not see them."""
        probabilities = super().predict_task(task)
        if self._knows(task):
            nodes, rows, _ = cast("tuple[Tensor, ...]", self.held_out_)
            probabilities[nodes] = rows.to(probabilities)
        return probabilities

    def held_out(self, task: Task) -> Tensor:
        """The nodes that were held out in a fold; without folds the validation nodes."""
        mask = task.val.clone()
        if self._knows(task):
            mask[cast("tuple[Tensor, ...]", self.held_out_)[0]] = True
        return mask

    def _knows(self, task: Task) -> bool:
        """Whether this is the task of the folds."""
        if self.held_out_ is None:
            return False
        labels = self.held_out_[2]
        return labels.shape == task.train.shape and torch.equal(labels, task.train | task.val)

    def _logits(self, graph: Data) -> Tensor:
        parts = [member.predict_proba(graph) for member in self.members_]
        mean = weighted_mean(self.weights_, parts)
        return mean.clamp(min=torch.finfo(mean.dtype).tiny).log()

    def predict_members(self, graph: Data) -> Committee | None:
        """The members of all selected methods; None if there is one, and it is no committee."""
        committees = [member.predict_members(graph) for member in self.members_]
        if len(committees) == 1:
            return committees[0]
        parts = [
            Committee.even(member.predict_proba(graph).unsqueeze(0)) if part is None else part
            for part, member in zip(committees, self.members_, strict=True)
        ]
        return Committee.joined(parts, self.weights_)

    # Saving

    def _details(self) -> dict[str, Any]:
        members = [pack_method(member)[0] for member in self.members_]
        return {"weights": self.weights_, "summary": list(self.summary_), "members": members}

    def _state(self) -> dict[str, Tensor]:
        return {
            f"members.{index}.{name}": value
            for index, member in enumerate(self.members_)
            for name, value in pack_method(member)[1].items()
        }

    def _load_state(self, state: Mapping[str, Tensor]) -> None:
        self.weights_ = list(self.details_["weights"])
        self.summary_ = list(self.details_["summary"])
        self.members_ = []
        for index, about in enumerate(self.details_["members"]):
            prefix = f"members.{index}."
            part = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            self.members_.append(restored(about, part, self.device_))


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
        """That of the method."""
        return self.method.full_title


class Search:
    """Candidates, fitted one after the other to one task, or to every fold of one.

    Without a metric, the one that fits the task selects. With `race`, candidates that are clearly
    behind are left out of further folds.
    """

    def __init__(
        self, tasks: Sequence[Task], limit: float, metric: str | None = None, *, race: bool = True
    ) -> None:
        self.tasks, self.task, self.race = tasks, tasks[0], race
        self.time_limit, self.started = limit, perf_counter()
        self.validation = Validation.of(self.task, metric)
        self.done = 1  # folds that all candidates left were fitted to
        self.fitted, self.failed = list[Trial](), list[Trial]()
        self.behind = list[Trial]()  # left out of further folds
        self.not_reached = list[Method]()
        self.interrupted, self.seconds = False, 0.0

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
            trial = Trial(method)
            try:
                self._try(trial, self.task, seed, perf_counter() + share * left, on_epoch)
            except KeyboardInterrupt:
                if not self.fitted:
                    raise
                self.interrupted = True
                self.not_reached.append(method)
                continue
            (self.failed if trial.reason else self.fitted).append(trial)
            if not trial.reason:
                trial.score = self.validation.score(trial.probabilities)
        if not self.fitted:
            raise ValueError(f"No candidate could be fitted: {self.failed[0].reason}")
        order = {id(method): index for index, method in enumerate(methods)}
        self.fitted.sort(key=lambda trial: order[id(trial.method)])
        if not (self.interrupted or self.not_reached or any(trial.late for trial in self.fitted)):
            self._run_folds(seed, on_epoch)
        self.seconds = perf_counter() - self.started

    def _run_folds(self, seed: int, on_epoch: Callback) -> None:
        """Fit the candidates to the other folds, as long as all can be fitted in time."""
        took = perf_counter() - self.started
        for task in self.tasks[1:]:
            before = len(self.fitted)
            if self.race:  # keep those that count, and the best with and without the graph
                counts = self._shares(self.fitted, self.validation.resamples(generator(seed)))
                kept = {*counts, *self._best_by_use().values()}
                self.behind += [trial for trial in self.fitted if trial not in kept]
                self.fitted = [trial for trial in self.fitted if trial in kept]
            began = perf_counter()
            if began + took * len(self.fitted) / before > self.started + self.time_limit:
                return
            methods = [trial.method for trial in self.fitted]
            again = [Trial(type(method)(**method.get_params())) for method in methods]
            for trial in again:
                try:
                    self._try(trial, task, seed, self.started + self.time_limit, on_epoch)
                except KeyboardInterrupt:
                    self.interrupted = True
                if self.interrupted or trial.reason or trial.late:
                    return  # a fold counts if every candidate was fitted to the end
            # candidates are scored on the nodes of all folds so far
            labels = torch.cat([self.validation.labels, task.graph.y[task.val]])
            self.validation = self.validation._replace(labels=labels)
            for trial, other in zip(self.fitted, again, strict=True):
                trial.others.append(other.method)
                trial.probabilities = torch.cat([trial.probabilities, other.probabilities])
                trial.score = self.validation.score(trial.probabilities)
            self.done += 1
            took = perf_counter() - began

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
        counts = {}
        for trial in trials:
            counts[trial] = float(VOTES.get(type(trial.method).__name__, 1))
            if trial.score < best.score:
                noise = self.noise(best, trial, samples)
                behind = (best.score - trial.score) / noise if noise else FAR
                counts[trial] *= exp(-behind) if behind < FAR else 0.0
        least = min(counts[best], MIN_SHARE * sum(counts.values()))
        kept = {trial: count for trial, count in counts.items() if count >= least}
        total = sum(kept.values())
        return {trial: count / total for trial, count in kept.items()}

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
        stages = []
        for trial in self.fitted:
            for stage in trial.method.history_:
                ended = stage.interrupted and not trial.late
                is_main = stage.main and trial is main
                stages.append(replace(stage, main=is_main, interrupted=ended, stage=trial.title))
        if self.interrupted and not any(stage.interrupted for stage in stages):
            stages[-1].interrupted = True
        return stages

    # Summary

    def summary(self, weights: Mapping[int, float], seed: int) -> list[str]:
        """What was selected, what was rejected and whether the graph helps, one line each."""
        chosen, about = self._selected(weights), self._about_graph(seed)
        lines = [f"Chose {chosen}", self._rejected(weights), about]
        if about.startswith(NO_HELP):  # this is part of the first line
            lines = [f"{about}: chose {chosen}", lines[1]]
        return [line for line in lines if line]

    def _selected(self, weights: Mapping[int, float]) -> str:
        """Such as `GCN (validation balanced accuracy 81.2) out of 5 candidates in 9 s.`"""
        order = sorted(weights, key=lambda index: -weights[index])
        trials, shares = [self.fitted[index] for index in order], [weights[i] for i in order]
        what = trials[0].title
        if len(order) > 1:
            names = [f"{t.title} ({share:.0%})" for t, share in zip(trials, shares, strict=True)]
            what = f"an average of {', '.join(names[:-1])} and {names[-1]}"
        mean = weighted_mean(shares, [trial.probabilities for trial in trials])
        score, title = self.validation.score(mean), METRICS[self.validation.metric].title
        behind = score < max(trial.score for trial in self.fitted)
        near = ", not clearly behind the best" if behind else ""
        tried = len(self.fitted) + len(self.behind) + len(self.failed)
        folds = f", fitted to {self.done} folds each," if self.done > 1 else ""
        return (
            f"{what} (validation {title} {100 * score:.1f}{near}) out of "
            f"{tried} candidate{'s' * (tried != 1)}{folds} in {self.seconds:.0f} s."
        )

    def _rejected(self, weights: Mapping[int, float]) -> str:
        """The other candidates with their scores, and those that the time limit affected."""
        others = [trial for index, trial in enumerate(self.fitted) if index not in weights]
        others += self.behind
        others.sort(key=lambda trial: -trial.score)
        ended = f"Ended by the time limit ({LIMITS})"

        def scored(trial: Trial) -> str:  # one that was left behind was scored on fewer nodes
            folds = len(trial.methods)
            after = f" after {folds} fold{'s' * (folds > 1)}" if folds < self.done else ""
            return f"{trial.title} ({100 * trial.score:.1f}{after})"

        groups = {
            "Rejected": [scored(trial) for trial in others],
            ended: [trial.title for trial in self.fitted if trial.late],
            "Not reached": [method.full_title for method in self.not_reached],
            "Failed": [f"{trial.title} ({trial.reason.rstrip('.')})" for trial in self.failed],
        }
        return " ".join(f"{word}: {'; '.join(names)}." for word, names in groups.items() if names)

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
    return method.uses_graph and type(method).__name__ not in QUICK


def weighted_mean(weights: Sequence[float], parts: Sequence[Tensor]) -> Tensor:
    """The average of tensors with weights that sum to one."""
    products = (weight * part for weight, part in zip(weights, parts, strict=True))
    return sum(products, torch.zeros_like(parts[0]))


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
        params: By name of the method, instead of those of the portfolio; equal candidates are one.
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
            differing = (
                f"{key}={value}"
                for key, value in entry.items()
                if any(other.get(key) != value for other in entries)
            )
            label = " ".join([name, *differing])
            candidates[label] = kind(**{**kind.graph_defaults(graph), **entry})
    return candidates


def restored(
    about: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
) -> Method:
    """The fitted method that `pack_method` described."""
    name, table = about["method"], method_table()
    if name not in table:
        raise ValueError(f"there is no method {name!r} in this version")
    method = table[name](**table[name].current_params(about["fields"]))
    restore_method(method, about, tensors, device)
    return method
