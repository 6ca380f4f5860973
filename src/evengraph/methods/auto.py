"""Auto: race a portfolio of methods on held-out labels, and average what cannot be told apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import exp
from time import perf_counter
from typing import Any, Protocol, cast, final

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import short
from evengraph.core.rng import generator
from evengraph.core.schema import read
from evengraph.core.task import Task, folds
from evengraph.methods.bases.method import Committee, Method, pack_method, reset, restore_method
from evengraph.methods.bases.network import NetworkMethod
from evengraph.methods.bases.saving import Description
from evengraph.metrics.evaluation import Validation
from evengraph.metrics.multiclass import has_rare_class
from evengraph.metrics.registry import METRICS, comparable_metrics
from evengraph.ops.context import GraphState
from evengraph.training import Callback, History

AUTO = "auto"  # the metric that fits the task
FOLDS = 5
MANY, MANY_FOLDS = 2_000, 3  # labels of the rarest class from which on fewer folds do
FAR = 2.0  # standard errors behind the best from which on a candidate is rejected
SURE = 3.0  # the same for one that gets no further folds
ENOUGH = 10  # held-out nodes of the rarest class that can end a candidate
PERFECT = 0.999  # score that leaves nothing to gain
TRUST = 6.0  # weight of tables over hops where a class is rare; others have 1
LARGEST = 2**20  # entries of a graph up to which networks that see all of it are worth their time
MIN_SHARE = 0.05  # of an average; less is not worth the time that predictions take
CERTAIN = 2.0  # standard errors from which on a difference is called one
NO_HELP = "The graph does not help"
FIRST = ("LabelPropagation", "Unison")  # whose cost hardly grows with labels and features
ERRORS = (ValueError, RuntimeError, ArithmeticError, MemoryError)  # what a fit may fail with


@final
@dataclass(kw_only=True)
class Auto(Method):
    """Fit several models to folds of the labels, and average those that are close to the best.

    The candidates are those that methods declare (`Method.portfolio`): label propagation, logistic
    regression and trees with and without the graph, the two views of Unison and, unless one of two
    classes is rare or the graph is large, Double Balancing on GraphSAGE. Each fold holds out a part
    of the labels and learns from all others; so every label is learnt from, and every label is
    predicted by models that have not seen it. Candidates are compared on these held-out predictions
    of all labels. One that is one standard error of the difference behind the best has 1/e of its
    weight in the average; beyond two it is rejected. The average contains the models of all folds.
    `summary_` says in at most three lines what was selected, what was rejected, and whether the
    graph helps.

    Candidates whose cost hardly grows with labels and features come first; where a class is rare,
    tables over hops come before networks, as they count most. Any goes on to the next fold unless
    it is surely behind, by three standard errors on at least ten held-out nodes of every class.

    In a published protocol (`Task.published`), validation labels are never learnt from: there is
    one fit per candidate, compared on the validation nodes.

    Args:
        time_limit: Seconds for all candidates, checked after every epoch; 0 is no limit, and only
            with one does the clock have an influence. The first candidate is always fitted.
        metric: Metric to select by. `auto` is the average precision of the rarer of two classes if
            it has less than a quarter of the labels, otherwise balanced accuracy.
        candidates: Names of methods, such as `boosting,logistic`; by default all with a portfolio.
        folds: Number of folds; 0 is 5, and 3 if every class has at least 2,000 labels. With 1, the
            split is used as it is: no model learns from validation labels.

    Cost:
        O(sum of the candidates' costs) per fold. What depends on the graph alone is computed once.

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
    limits = {"time_limit": 0, "folds": 0}

    patience: int = 1_000
    time_limit: float = 0.0
    metric: str = AUTO
    candidates: str = ""
    folds: int = 0

    held_out_ = cast("tuple[Tensor, Tensor, Tensor] | None", None)
    """Held-out nodes, what models that did not learn from them predict, and the mask of all labels
    of the task; None without folds. Not saved."""
    _predicted = cast("tuple[GraphState, Tensor] | None", None)  # of the task's graph, (N, C)

    def __post_init__(self) -> None:
        super().__post_init__()
        metrics = [name for name, metric in comparable_metrics().items() if not metric.calibration]
        if self.metric not in (AUTO, *metrics):
            allowed = ", ".join((AUTO, *metrics))
            raise ValueError(f"metric must be one of {allowed}, got {self.metric!r}.")
        known = [name for name in method_table() if name != type(self).__name__.lower()]
        for name in self.names:
            if name not in known:
                raise ValueError(f"candidates must be among {', '.join(known)}, got {name!r}.")

    @classmethod
    def graph_defaults(cls, graph: Data) -> dict[str, Any]:
        """Nothing: each candidate has its own."""
        return {}

    @property
    def uses_labels(self) -> bool:
        """Whether predictions of any member rest on known labels."""
        return any(member.uses_labels for member in getattr(self, "members_", ()))

    @property
    def names(self) -> list[str]:
        return [name.strip() for name in self.candidates.split(",") if name.strip()]

    def _fit(self, task: Task) -> None:
        methods = list(portfolio(task.graph, names=self.names).values())
        rare = has_rare_class(all_counts(task).tolist())
        if not self.names and (rare or entries(task.graph) > LARGEST):
            methods = [one for one in methods if not isinstance(one, NetworkMethod)]
        if not has_edges(task.graph):
            methods = [one for one in methods if not one.uses_graph] or methods
        self.choose(task, methods)

    def choose(self, task: Task, methods: Sequence[Method], disk: Fitter | None = None) -> None:
        """Race candidates and adopt the best; those of a graph on `disk` are fitted there."""
        names = ("max_epochs", "patience")  # no more than here
        methods = [
            replace(one, **{name: min(getattr(one, name), getattr(self, name)) for name in names})
            for one in methods
        ]
        race = self._race(task, int(torch.randint(2**31, ())), disk)
        race.run(methods, self._report_epoch)
        weights = race.weights()
        self._take(race, weights)
        self.summary_ = race.summary(weights)

    def _race(self, task: Task, seed: int, disk: Fitter | None = None) -> Race:
        counts = all_counts(task)
        fewest = int(counts[counts > 0].min())
        number = self.folds or (FOLDS if fewest < MANY else MANY_FOLDS)
        number = 1 if task.published else min(number, int(counts.sum()) // 2)
        tasks = folds(task, number, generator(seed)) if number > 1 else [task]
        metric = None if self.metric == AUTO else self.metric
        return Race(tasks if len(tasks) > 1 else [task], self.time_limit, metric, seed, disk)

    def _take(self, race: Race, weights: Mapping[int, float]) -> None:
        """Adopt the selected candidates, those of all folds with equal weights."""
        order = sorted(weights, key=lambda index: -weights[index])
        trials, count = [race.fitted[index] for index in order], len(race.tasks)
        shares = [weights[index] for index in order]
        self.weights_ = [share / count for share in shares for _ in range(count)]
        self.members_ = [method for trial in trials for method in trial.methods]
        self.history_ = race.history(trials[0])
        self._predicted = self.held_out_ = self.apart_ = None
        if race.disk is None:
            mean = weighted_mean(shares, [trial.mean for trial in trials])
            self._predicted = GraphState(race.task.graph), mean
        if race.folded:
            nodes = torch.cat([task.val_nodes for task in race.tasks])
            rows = weighted_mean(shares, [trial.held_out for trial in trials])
            self.held_out_ = nodes, rows, race.task.train | race.task.val
            free = [place for place, one in enumerate(trials) if not one.method.uses_labels]
            if 0 < len(free) < len(trials):
                total, parts = sum(shares[k] for k in free), [trials[k].held_out for k in free]
                self.apart_ = nodes, weighted_mean([shares[k] / total for k in free], parts)
            self._learns_from(self.held_out_[2], race.task.graph)

    def refitted(self, task: Task, *, seed: int) -> Method:
        """The selected methods, fitted again to the labels of another task; their weights stay."""
        other = Auto(**self.get_params())
        reset(other, task)
        race = other._race(replace(task.hide_test_labels(), published=False), seed)
        copies, weights = list[Method](), list[float]()
        for member, weight in zip(self.members_, self.weights_, strict=True):
            copy = type(member)(**member.get_params())
            if copy not in copies:  # otherwise it is of another fold
                copies.append(copy)
                weights.append(0.0)
            weights[copies.index(copy)] += weight
        race.run(copies, lambda history: None, drop=False)
        if len(race.fitted) < len(copies):
            left = [trial.method for trial in race.failed] + race.not_reached
            raise ValueError(f"{left[0].full_title} could not be fitted again.")
        other._take(race, dict(enumerate(weights)))
        other.summary_, other.fitted_ = list(self.summary_), True
        return other

    def predict_task(self, task: Task) -> Tensor:
        """Class probabilities of every node; of held-out nodes by models that did not see them."""
        return self.with_held_out(task, super().predict_task(task))

    def with_held_out(self, task: Task, probabilities: Tensor) -> Tensor:
        """Put what the folds predicted for the nodes that they held out."""
        if self._knows(task):
            nodes, rows, _ = cast("tuple[Tensor, ...]", self.held_out_)
            probabilities[nodes] = rows.to(probabilities)
        return probabilities

    def held_out(self, task: Task) -> Tensor:
        """The nodes that were held out in a fold; without folds the validation nodes."""
        if not self._knows(task):
            return task.val.clone()
        nodes, *_ = cast("tuple[Tensor, ...]", self.held_out_)
        return torch.zeros_like(task.val).index_fill(0, nodes, True)

    def _knows(self, task: Task) -> bool:
        """Whether this is the task of the folds."""
        if self.held_out_ is None:
            return False
        labels = self.held_out_[2]
        return labels.shape == task.train.shape and torch.equal(labels, task.train | task.val)

    def weighted_members(self, graph: Data) -> list[tuple[Method, float]]:
        """The members and their weights; where few labels are known, those that need none.

        Another graph than that of training, or one with other rows, has less than half of the
        labelled nodes, and nothing that label propagation or columns of labels could use.
        """
        pairs = list(zip(self.members_, self.weights_, strict=True))
        free = [(member, weight) for member, weight in pairs if not member.uses_labels]
        if len(free) in (0, len(pairs)) or self.recognises(graph):
            return pairs
        total = sum(weight for _, weight in free)
        return [(member, weight / total) for member, weight in free]

    def _logits(self, graph: Data) -> Tensor:
        if self._predicted is not None and self._predicted[0].holds_for(graph):
            mean = self._predicted[1].to(graph.x.device)  # as the race had it
        else:
            members, weights = zip(*self.weighted_members(graph), strict=True)
            mean = weighted_mean(weights, [member.predict_proba(graph) for member in members])
        return mean.clamp(min=torch.finfo(mean.dtype).tiny).log()

    def predict_members(self, graph: Data) -> Committee | None:
        """The members of all selected methods; None if there is one, and it is no committee."""
        members, weights = zip(*self.weighted_members(graph), strict=True)
        committees: list[Committee | None] = [one.predict_members(graph) for one in members]
        if len(committees) == 1:
            return committees[0]
        parts = [
            Committee.even(member.predict_proba(graph).unsqueeze(0)) if part is None else part
            for part, member in zip(committees, members, strict=True)
        ]
        return Committee.joined(parts, weights)

    # Saving

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_predicted": None}  # holds for tensors of this process

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
        details = read(_Details, self.details_, "details")
        self.weights_, self.summary_, self.members_ = details.weights, details.summary, []
        for index, about in enumerate(details.members):
            prefix = f"members.{index}."
            part = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            self.members_.append(restored(about, part, self.device_))


@dataclass
class _Details:
    """What is stored beside tensors."""

    weights: list[float]
    summary: list[str]
    members: list[Description]

    def __post_init__(self) -> None:
        if not self.members or len(self.weights) != len(self.members):
            raise ValueError("weights must be one for each member")


class Fitter(Protocol):
    """A graph on disk, which fits methods and predicts some of its nodes."""

    @property
    def has_edges(self) -> bool:
        """Whether an edge joins two different nodes."""

    def fit(self, *args: Any, **options: Any) -> Method:
        """Train a method on a split of the labels; arguments as of `Method.fit`, after it."""

    def predict_nodes(self, method: Method, nodes: Tensor) -> Tensor:
        """Class probabilities of some nodes."""


class OutOfTime(KeyboardInterrupt):
    """Ends a candidate as Ctrl-C does."""


@dataclass(eq=False)
class Trial:
    """A candidate, its fits to the folds, and what they predict for the nodes held out in each."""

    method: Method  # with its parameters, not fitted
    methods: list[Method] = field(default_factory=list)  # one per fold
    parts: list[Tensor] = field(default_factory=list)  # (M, C) each
    resampled: dict[int, Tensor] = field(default_factory=dict)  # their scores, by number of folds
    mean: Tensor = field(default_factory=lambda: torch.empty(0))  # of all fits, (N, C)
    score: float = 0.0  # on all held-out nodes so far
    reason: str = ""  # why it failed, if it did

    @property
    def held_out(self) -> Tensor:
        """Probabilities of all held-out nodes so far."""
        return torch.cat(self.parts)

    @property
    def title(self) -> str:
        return self.method.full_title


class Race:
    """Candidates, fitted to one task, or to every fold of one, and compared on held-out nodes."""

    def __init__(
        self,
        tasks: Sequence[Task],
        limit: float,
        metric: str | None,
        seed: int,
        disk: Fitter | None = None,
    ) -> None:
        self.disk = disk
        self.has_edges = disk.has_edges if disk is not None else has_edges(tasks[0].graph)
        self.tasks, self.task, self.seed, self.started = tasks, tasks[0], seed, perf_counter()
        self.deadline = self.started + limit if limit else None
        every = torch.stack([task.val for task in tasks]).any(0)  # one fold may lack a class
        pooled = replace(self.task, train=self.task.train & ~every, val=every)
        first, self.folded = Validation.of(pooled, metric), len(tasks) > 1
        labels = [task.graph.y[task.val] for task in tasks]
        self.validations = [  # after one fold, after two and so on
            first._replace(labels=torch.cat(labels[: done + 1])) for done in range(len(tasks))
        ]
        self.fitted, self.behind, self.failed = list[Trial](), list[Trial](), list[Trial]()
        self.not_reached = list[Method]()
        self.interrupted, self.seconds = False, 0.0

    @property
    def validation(self) -> Validation:
        """Labels of all held-out nodes, and the metric."""
        return self.validations[-1]

    def run(self, methods: Sequence[Method], on_epoch: Callback, *, drop: bool = True) -> None:
        """Fit each to all folds; Ctrl-C and the time limit end with what is fitted so far.

        Results are in the order given. With `drop`, what is surely behind gets no further folds.
        """
        queue = sorted(methods, key=self._rank)
        for number, method in enumerate(queue):
            if self.interrupted or (self.fitted and self._late()):
                self.not_reached.append(method)
                continue
            best = max((trial.score for trial in self.fitted), default=0.0)
            if drop and best >= PERFECT and self._enough(self.validation):
                self.not_reached.append(method)
                continue
            trial, place = Trial(method), (number, len(queue))
            try:
                self._fit_folds(trial, place, on_epoch, drop)
            except KeyboardInterrupt as stop:
                self.interrupted |= not isinstance(stop, OutOfTime)
                if self.fitted:
                    self.not_reached.append(method)
                    continue
                if not trial.methods:
                    raise
                self._cut_short(trial)
            except ERRORS as error:
                trial.reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            done = len(trial.parts) == len(self.tasks)
            kind = self.failed if trial.reason else self.fitted if done else self.behind
            kind.append(trial)
        if not self.fitted:
            raise ValueError(f"No candidate could be fitted: {self.failed[0].reason}")
        order = {id(method): index for index, method in enumerate(methods)}
        self.fitted.sort(key=lambda trial: order[id(trial.method)])
        self.seconds = perf_counter() - self.started

    def _rank(self, method: Method) -> int:
        """Its place in the queue: what is trusted comes early, as it is the likely winner."""
        if self._trust(method) > 1:
            return 1
        name = type(method).__name__
        return 2 * FIRST.index(name) if name in FIRST else 2 * len(FIRST)

    def _trust(self, method: Method) -> float:
        """Weight of a candidate as good as any."""
        ranked = self.validation.metric == "positive_average_precision"
        return TRUST if ranked and getattr(method, "hops", 0) > 0 else 1.0

    def _cut_short(self, trial: Trial) -> None:
        """Make do with the folds that the first candidate was fitted to before Ctrl-C."""
        done = len(trial.methods)
        self.tasks, self.validations = self.tasks[:done], self.validations[:done]
        for index in range(len(trial.parts), done):
            self._predict(trial, self.tasks[index], trial.methods[index])
        trial.mean = trial.mean / done

    def _late(self) -> bool:
        return self.deadline is not None and perf_counter() >= self.deadline

    def _fit_folds(
        self, trial: Trial, place: tuple[int, int], on_epoch: Callback, drop: bool
    ) -> None:
        """Fit a candidate to one fold after the other, unless it falls behind."""
        rewind = hasattr(trial.method, "rewind") and len(self.tasks) > 1
        for fold, task in enumerate(self.tasks, start=1):
            title = f"{place[0] + 1} of {place[1]}: {trial.title}"
            title += f", fold {fold}" if len(self.tasks) > 1 else ""
            done = (place[0] + (fold - 1) / len(self.tasks)) / place[1]

            def watch(history: History, title: str = title, done: float = done) -> None:
                history.stage, history.done = title, done
                on_epoch(history)
                if self.fitted and self._late():
                    raise OutOfTime

            method = type(trial.method)(**trial.method.get_params())
            fit = method.fit if self.disk is None else partial(self.disk.fit, method)
            fit(task, seed=self.seed, on_epoch=watch, progress=False)
            trial.methods.append(method)
            if any(history.interrupted for history in method.history_):
                raise OutOfTime if self._late() else KeyboardInterrupt
            if fold == 1 or not rewind:
                self._predict(trial, task)
                if drop and fold < len(self.tasks) and self._surely_behind(trial):
                    return
        if rewind:  # the step that is best for the other folds, so that it is judged fairly
            trial.parts, trial.resampled = [], {}
            scores = [method.history_[-1].score for method in trial.methods]
            sums = [sum(values) for values in zip(*scores, strict=False)]  # to the shortest of them
            for method, task, own in zip(trial.methods, self.tasks, scores, strict=True):
                others = [total - value for total, value in zip(sums, own, strict=False)]
                cast(Any, method).rewind(others.index(max(others)))
                self._predict(trial, task, method)
        trial.mean = trial.mean / len(self.tasks)

    def _predict(self, trial: Trial, task: Task, method: Method | None = None) -> None:
        """Predict with the last fit, or a given one, and score all that was held out so far."""
        method = method or trial.methods[-1]
        if self.disk is not None:
            trial.parts.append(self.disk.predict_nodes(method, task.val_nodes))
        else:
            probabilities = method.predict_proba(task.graph)
            trial.mean = probabilities + (trial.mean if trial.parts else 0)
            trial.parts.append(probabilities[task.val])
        trial.score = self.validations[len(trial.parts) - 1].score(trial.held_out)

    def _surely_behind(self, trial: Trial) -> bool:
        """Whether a candidate cannot matter any more, by the nodes held out in its folds so far."""
        validation = self.validations[len(trial.parts) - 1]
        if not self.fitted or not self._enough(validation):
            return False
        best = max(self.fitted, key=lambda other: other.score)
        reached = validation.score(torch.cat(best.parts[: len(trial.parts)]))
        return reached - trial.score > SURE * self.noise(best, trial)

    def _enough(self, validation: Validation) -> bool:
        """Whether enough nodes of every class are held out to end a candidate."""
        counts = validation.labels.bincount(minlength=self.task.num_classes)
        return int(counts[self.validation.labels.unique()].min()) >= ENOUGH

    def weights(self) -> dict[int, float]:
        """The selected candidates by index, and their weights, which sum to one.

        With few labels the average is nearly even, with many it is the best candidate alone. If a
        class is rare, tables over hops are trusted more: a handful of labels decides little. The
        best of those that need no known labels is among them, for graphs that have none.
        """
        best = max(self.fitted, key=lambda trial: trial.score)
        counts = {}
        for index, trial in enumerate(self.fitted):
            counts[index] = self._trust(trial.method)
            if trial.score < best.score:
                noise = self.noise(best, trial)
                behind = (best.score - trial.score) / noise if noise else FAR
                counts[index] *= exp(-behind) if behind < FAR else 0.0
        least = MIN_SHARE * sum(counts.values())
        kept = {index: count for index, count in counts.items() if count >= least}
        free = [index for index, trial in enumerate(self.fitted) if not trial.method.uses_labels]
        if free and not set(free) & set(kept):
            kept[max(free, key=lambda index: self.fitted[index].score)] = least
        total = sum(kept.values())
        return {index: count / total for index, count in kept.items()}

    def _best_by_use(self) -> dict[bool, Trial]:
        """The best candidate that uses the graph (True), and the best that does not."""
        ordered = sorted(self.fitted, key=lambda trial: trial.score)
        return {trial.method.uses_graph: trial for trial in ordered}

    def noise(self, first: Trial, second: Trial) -> float:
        """Standard error of the difference between two candidates, in the folds that both have."""
        folds = min(len(first.parts), len(second.parts))
        return float((self._resampled(first, folds) - self._resampled(second, folds)).std())

    def _resampled(self, trial: Trial, folds: int) -> Tensor:
        """Scores on resamples of the nodes held out in the first folds, computed once, (R,)."""
        if folds not in trial.resampled:
            validation, rows = self.validations[folds - 1], torch.cat(trial.parts[:folds])
            samples = validation.resamples(generator(self.seed))
            trial.resampled[folds] = validation.resampled(rows, samples)
        return trial.resampled[folds]

    def history(self, main: Trial) -> list[History]:
        """All stages of all candidates; the main one is that of a given candidate's last fold."""
        stages = []
        for trial in self.fitted:
            for method in trial.methods:
                for stage in method.history_:
                    is_main = stage.main and method is main.methods[-1]
                    stages.append(replace(stage, main=is_main, stage=trial.title))
        if self.interrupted:
            stages[-1].interrupted = True
        return stages

    # Summary

    def summary(self, weights: Mapping[int, float]) -> list[str]:
        """What was selected, what was rejected and whether the graph helps, one line each."""
        chosen, about = self._selected(weights), self._about_graph()
        lines = [f"Chose {chosen}", self._rejected(weights), about]
        if about.startswith(NO_HELP):  # this is part of the first line
            lines = [f"{about}: chose {chosen}", lines[1]]
        return [line for line in lines if line]

    def _selected(self, weights: Mapping[int, float]) -> str:
        """Such as `GCN (held-out balanced accuracy 81.2) out of 5 candidates in 9 s.`"""
        order = sorted(weights, key=lambda index: -weights[index])
        trials, shares = [self.fitted[index] for index in order], [weights[i] for i in order]
        what = trials[0].title
        if len(order) > 1:
            names = [f"{t.title} ({share:.0%})" for t, share in zip(trials, shares, strict=True)]
            what = f"an average of {', '.join(names[:-1])} and {names[-1]}"
        mean = weighted_mean(shares, [trial.held_out for trial in trials])
        score, title = self.validation.score(mean), METRICS[self.validation.metric].title
        tried = len(self.fitted) + len(self.behind) + len(self.failed)
        folds = f", fitted to {len(self.tasks)} folds each," if len(self.tasks) > 1 else ""
        return (
            f"{what} (validation {title} {100 * score:.1f}) out of "
            f"{tried} candidate{'s' * (tried != 1)}{folds} in {self.seconds:.0f} s."
        )

    def _rejected(self, weights: Mapping[int, float]) -> str:
        """The other candidates with their scores, and those that were not fitted."""
        others = [trial for index, trial in enumerate(self.fitted) if index not in weights]
        others.sort(key=lambda trial: -trial.score)
        names = [f"{trial.title} ({100 * trial.score:.1f})" for trial in others]
        for trial in self.behind:  # scored on fewer nodes
            done = len(trial.parts)
            after = f"after {done} fold{'s' * (done > 1)}"
            names.append(f"{trial.title} ({100 * trial.score:.1f} {after})")
        perfect = max(trial.score for trial in self.fitted) >= PERFECT and not self._late()
        skipped = "Not needed" if perfect and not self.interrupted else "Not reached"
        groups = {
            "Rejected": names,
            skipped: [method.full_title for method in self.not_reached],
            "Failed": [f"{trial.title} ({trial.reason.rstrip('.')})" for trial in self.failed],
        }
        return " ".join(f"{word}: {'; '.join(names)}." for word, names in groups.items() if names)

    def _about_graph(self) -> str:
        """Whether the best model that uses the graph is better than the best that does not."""
        if not self.has_edges:
            return "There are no edges."
        best = self._best_by_use()
        left = [trial for trial in self.behind if not trial.method.uses_graph]
        if given_up := False not in best and bool(left):  # all without it
            best[False] = max(left, key=lambda trial: trial.score)
        if len(best) < 2:
            return ""
        graph, alone = best[True], best[False]
        noise = 0.0 if given_up else self.noise(graph, alone)
        gap, reached = graph.score - alone.score, f"{100 * alone.score:.1f}"
        scores = f"{100 * graph.score:.1f} with it and {reached} without it"
        if given_up or gap > CERTAIN * noise:
            return f"The graph helps: the best model without it, {alone.title}, reaches {reached}."
        if gap < -CERTAIN * noise:
            return f"{NO_HELP}, the best models reach {scores}"
        nodes = self.validation.labels.numel()
        return (
            f"Whether the graph helps is unclear: {scores}, which {nodes:,} validation nodes "
            "cannot tell apart."
        )


def all_counts(task: Task) -> Tensor:
    """Labels of each class, those for validation included, (C,)."""
    return task.class_counts + torch.tensor(task.val_counts).to(task.class_counts)


def entries(graph: Data) -> int:
    """Features that are not zero, and edges: the work of an epoch on the whole graph."""
    return int(graph.x.count_nonzero()) + int(graph.num_edges)


def has_edges(graph: Data) -> bool:
    """Whether an edge joins two different nodes."""
    return bool((graph.edge_index[0] != graph.edge_index[1]).any())


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


def restored(about: Description, tensors: Mapping[str, Tensor], device: torch.device) -> Method:
    """The fitted method that `pack_method` described."""
    name, table = about.method, method_table()
    if name not in table:
        raise ValueError(f"there is no method {short(name)} in this version")
    method = table[name](**table[name].current_params(about.fields))
    restore_method(method, about, tensors, device)
    return method
