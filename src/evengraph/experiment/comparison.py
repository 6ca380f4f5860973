"""compare(): several methods on the same splits of one graph, and which of them is better."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

import torch
from torch_geometric.data import Data

import evengraph
from evengraph.experiment.environment import describe
from evengraph.experiment.fields import unknown
from evengraph.experiment.ranking import Pair, Verdict, compare_pairs, judge
from evengraph.experiment.search_space import candidates
from evengraph.experiment.trials import Failure, Outcome, Terms, Trial, run_trials
from evengraph.methods import METHODS, Method
from evengraph.metrics import METRICS, comparable_metrics
from evengraph.metrics.binary import positive_class
from evengraph.metrics.significance import Evidence, t_test
from evengraph.splits import ByTime, Folds, Given, SplitProtocol

DEFAULT_METHODS = tuple(name for name, method in METHODS.items() if method.compared_by_default)
ONE_SPLIT = (
    "All had the same test nodes, and only starts of training differ: one split cannot tell "
    "whether a method is better on other nodes."
)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One method over all splits.

    Args:
        label: What it was called.
        title: Its name in the literature.
        settings: What it was given.
        outcomes: One for each split, with the settings that validation chose.
        seconds: Mean of a fit.
    """

    label: str
    title: str
    settings: Mapping[str, Any]
    outcomes: Sequence[Outcome]
    seconds: float

    def values(self, metric: str) -> list[float]:
        """In percent, one for each split."""
        return [outcome.metrics[metric] for outcome in self.outcomes]

    def figure(self, metric: str) -> Evidence:
        """Mean and 95% interval over splits, clipped to the metric's range."""
        found, scale = t_test(self.values(metric)), METRICS[metric].scale
        low, high = (scale * end for end in METRICS[metric].range)
        return found._replace(low=max(found.low, low), high=min(found.high, high))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What came of comparing methods.

    Args:
        metric: What they were compared by.
        protocol: Name and fields of what made the splits.
        seeds: Splits that all methods went through.
        wanted: Splits that were asked for.
        overlap: Test nodes over the other labelled nodes of a split.
        budget: Settings tried for each method.
        standings: The methods that ran, the best first.
        pairs: Every two of them.
        failed: Methods that did not run, and why.
        verdict: Which to take.
        positive: Of two classes the one that matters.
        classes: Names of the classes, or their numbers.
        class_counts: Labelled nodes of each.
        stopped: Whether time ran out, or somebody stopped it.
        environment: Where it ran.
    """

    metric: str
    protocol: Mapping[str, Any]
    seeds: Sequence[int]
    wanted: int
    overlap: float
    budget: int
    standings: Sequence[Standing]
    pairs: Sequence[Pair]
    failed: Mapping[str, str]
    verdict: Verdict
    positive: int | None
    classes: Sequence[str]
    class_counts: Sequence[int]
    stopped: bool
    environment: Mapping[str, Any]

    @property
    def best(self) -> Standing:
        """The method with the highest mean."""
        return self.standings[0]

    def against_best(self, label: str) -> Pair | None:
        """The pair of the best method and another."""
        both = {label, self.best.label}
        return next((one for one in self.pairs if {one.ahead, one.behind} == both), None)

    def as_dict(self) -> dict[str, Any]:
        """The comparison as JSON can hold it."""
        names = list(self.best.outcomes[0].metrics)
        return {
            "schema": 1,
            "kind": "comparison",
            "evengraph": evengraph.__version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "metric": self.metric,
            "protocol": dict(self.protocol),
            "seeds": list(self.seeds),
            "complete": len(self.seeds) == self.wanted and not self.failed,
            "overlap": self.overlap,
            "budget": self.budget,
            "classes": list(self.classes),
            "class_counts": list(self.class_counts),
            "positive": None if self.positive is None else self.classes[self.positive],
            "verdict": asdict(self.verdict),
            "methods": [
                {
                    "label": one.label,
                    "title": one.title,
                    "settings": dict(one.settings),
                    "seconds": one.seconds,
                    "figures": {name: one.figure(name)._asdict() for name in names},
                    "runs": [asdict(outcome) for outcome in one.outcomes],
                }
                for one in self.standings
            ],
            "pairs": [asdict(pair) for pair in self.pairs],
            "failed": dict(self.failed),
            "environment": dict(self.environment),
        }


def compare(
    graph: Data,
    methods: Sequence[str] | Mapping[str, Method],
    protocol: SplitProtocol,
    *,
    seeds: Sequence[int] = range(5),
    budget: int = 1,
    metric: str = "balanced_accuracy",
    positive: int | None = None,
    k: int | None = None,
    device: torch.device | str = "cpu",
    jobs: int = 1,
    time_limit: float | None = None,
    on_trial: Callable[[Outcome | Failure], None] = lambda _: None,
) -> Comparison:
    """Train several methods on the same splits and say which is better.

    Every method has the same budget: as many settings, of which validation chooses one for each
    split. Test nodes are looked at once, with that one. A method that fails is left out, the
    rest goes on. Where time runs out, the splits count that all methods went through.

    Args:
        graph: Features, edges and labels; -1 is unlabelled.
        methods: Names, for methods with `Method.graph_defaults` of the graph; or methods with
            settings of your own, under names of your own.
        protocol: Makes a split of a seed, such as `Natural()` or `Folds()`.
        seeds: One split each.
        budget: Settings to try for each method; the first is the one given.
        metric: What to compare by.
        positive: Of two classes the one that matters; by default the rarer.
        k: How many of its likeliest nodes precision at k looks at; by default as many as it has.
        device: Where to train.
        jobs: Processes to share the work, on the CPU.
        time_limit: Seconds after which no more is begun.
        on_trial: Called when a fit has ended or failed.
    """
    entries = _entries(methods, graph)
    seeds = list(dict.fromkeys(seeds))
    _check(seeds, time_limit, metric)
    counts = _class_counts(graph)
    if len(counts) == 2 and positive is None:
        positive = positive_class(counts)
    _check_two(metric, positive, k, len(counts))
    terms = Terms(graph=graph, protocol=protocol, positive=positive, k=k, device=str(device))
    overlap = _overlap(terms, seeds)
    trials = [
        Trial(label=label, place=place, method=one, seed=seed)
        for seed in seeds  # split by split: what is left when time runs out has whole splits
        for label, method in entries.items()
        for place, one in enumerate(candidates(method, budget))
    ]
    ended, stopped = run_trials(trials, terms, jobs, time_limit, on_trial)
    standings, failed, common = _gather(entries, ended, seeds, budget, metric)
    values = {one.label: one.values(metric) for one in standings}
    fixed = isinstance(protocol, Given | ByTime)
    pairs = compare_pairs(
        values, overlap=overlap, independent=not isinstance(protocol, Folds), fixed=fixed
    )
    verdict = judge(
        values,
        pairs,
        seconds={one.label: one.seconds for one in standings},
        titles={one.label: one.title for one in standings},
        metric=metric,
    )
    sentences = _beware(standings, len(counts)) or verdict.sentences
    verdict = replace(verdict, sentences=(*sentences, ONE_SPLIT) if fixed else sentences)
    names = getattr(graph, "class_names", None) or range(len(counts))
    return Comparison(
        metric=metric,
        protocol={"name": type(protocol).__name__.lower(), **_fields(protocol)},
        seeds=common,
        wanted=len(seeds),
        overlap=overlap,
        budget=budget,
        standings=standings,
        pairs=pairs,
        failed=failed,
        verdict=verdict,
        positive=positive,
        classes=[str(name) for name in names],
        class_counts=counts.tolist(),
        stopped=stopped,
        environment=describe(torch.device(device)),
    )


def _entries(methods: Sequence[str] | Mapping[str, Method], graph: Data) -> dict[str, Method]:
    """Methods by their names, each with settings."""
    if isinstance(methods, Mapping):
        entries = dict(methods)
    else:
        for name in methods:
            if name not in METHODS:
                raise ValueError(unknown("method", name, METHODS))
        entries = {name: METHODS[name](**METHODS[name].graph_defaults(graph)) for name in methods}
    if not entries:
        raise ValueError("methods must name at least one method.")
    return entries


def _check(seeds: Sequence[int], time_limit: float | None, metric: str) -> None:
    """Refuse what nothing can be compared with."""
    if not seeds:
        raise ValueError("seeds must hold at least one seed.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be above 0, got {time_limit}.")
    if metric not in comparable_metrics():
        raise ValueError(unknown("metric", metric, comparable_metrics()))


def _class_counts(graph: Data) -> torch.Tensor:
    """Labelled nodes of each class."""
    if graph.y is None or not (graph.y >= 0).any():
        raise ValueError("graph.y must hold labels; this graph has none.")
    counts = torch.bincount(graph.y[graph.y >= 0])
    if len(counts) < 2:
        raise ValueError("There must be at least two classes, got one.")
    return counts


def _check_two(metric: str, positive: int | None, k: int | None, num_classes: int) -> None:
    """Refuse what has a meaning for two classes alone, and a class that is not there."""
    named = METRICS[metric].binary
    if num_classes == 2:
        if positive not in (0, 1):
            raise ValueError(f"positive must be class 0 or 1, got {positive}.")
        if k is not None and k < 1:
            raise ValueError(f"k must be at least 1, got {k}.")
    elif named or positive is not None or k is not None:
        what = f"metric {metric}" if named else "positive" if positive is not None else "k"
        raise ValueError(f"{what} is for two classes, this graph has {num_classes}.")


def _overlap(terms: Terms, seeds: Sequence[int]) -> float:
    """Test nodes over other labelled nodes; also finds out whether the graph can be split."""
    shares = []
    for seed in seeds:
        task = terms.protocol(terms.graph, seed=seed)
        shares.append(float(task.test.sum() / (task.train.sum() + task.val.sum())))
    return fmean(shares)


def _beware(standings: Sequence[Standing], num_classes: int) -> tuple[str, ...]:
    """A warning where no method has learnt to tell the classes apart."""
    most = max(fmean(one.values("balanced_accuracy")) for one in standings)
    guessing = 100 / num_classes
    if most > guessing + 1:
        return ()
    return (
        f"No method is better than guessing, which has a balanced accuracy of {guessing:.1f}: the "
        "rare classes are not found. More labels, other features or a class-weighted method may "
        "help.",
    )


def _fields(protocol: SplitProtocol) -> dict[str, Any]:
    """What JSON can hold of a protocol's fields."""
    plain = (str, int, float, bool, type(None))
    return {name: value for name, value in vars(protocol).items() if isinstance(value, plain)}


def _gather(
    entries: Mapping[str, Method],
    ended: Sequence[Outcome | Failure],
    seeds: Sequence[int],
    budget: int,
    metric: str,
) -> tuple[list[Standing], dict[str, str], list[int]]:
    """The methods that ran, the best first; those that failed; the splits that all have."""
    failed = {one.label: one.reason for one in ended if isinstance(one, Failure)}
    done: dict[tuple[str, int], list[Outcome]] = {}
    for one in ended:
        if isinstance(one, Outcome):
            done.setdefault((one.label, one.seed), []).append(one)
    chosen = {
        key: max(sorted(tried, key=lambda one: one.place), key=lambda one: one.validation)
        for key, tried in done.items()
        if len(tried) == budget
    }
    for (label, seed), outcome in chosen.items():
        if not math.isfinite(outcome.metrics[metric]):
            failed[label] = f"its {METRICS[metric].title} is undefined on split {seed}."
    begun = {label for label, _ in chosen}
    for label in entries:
        if begun and label not in begun:
            failed.setdefault(label, "it finished no split in time; allow more, or leave it out.")
    labels = [label for label in entries if label not in failed]
    common = [seed for seed in seeds if all((label, seed) in chosen for label in labels)]
    if not labels:
        label, reason = next(iter(failed.items()))
        raise ValueError(f"No method ran; {entries[label].full_title}: {reason}")
    if not common:
        raise ValueError("No split was finished in time; allow more of it.")
    standings = [
        Standing(
            label=label,
            title=_title(entries, label),
            settings=asdict(entries[label]),
            outcomes=[chosen[label, seed] for seed in common],
            seconds=fmean(one.seconds for seed in common for one in done[label, seed]),
        )
        for label in labels
    ]
    standings.sort(key=lambda one: -fmean(one.values(metric)))
    return standings, failed, common


def _title(entries: Mapping[str, Method], label: str) -> str:
    """A method's own name, or the caller's where two are of one kind."""
    title = entries[label].full_title
    return label if sum(one.full_title == title for one in entries.values()) > 1 else title
