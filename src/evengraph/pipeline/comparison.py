"""Comparison: which of several methods is better on the same splits, and which one to use."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from statistics import fmean
from typing import Any

import pandas as pd

import evengraph
from evengraph.core.task import Record, mean_and_deviation
from evengraph.metrics.registry import HEADLINE, METRICS
from evengraph.metrics.significance import (
    ENOUGH_SPLITS,
    FEWEST_SPLITS,
    Evidence,
    holm,
    t_test,
)

PAIR_COLUMNS = ("difference", "low", "high", "p", "significant")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One method over all splits."""

    label: str  # name under which it was compared
    title: str  # name in the literature
    settings: Mapping[str, Any]
    records: Sequence[Record]  # one per split, with the settings selected on validation
    seconds: float  # mean duration of a fit
    candidates: Sequence[int] = ()  # index of the selected settings per split, among those tried
    changed: Sequence[str] = ()  # parameters that differ from the defaults
    result: dict[str, Any] = field(default_factory=dict)  # what `run` writes to result.json

    def values(self, metric: str) -> list[float]:
        """A metric in percent, one value per split."""
        return [record.all_metrics[metric] for record in self.records]

    def summary(self, metric: str) -> Evidence:
        """Mean and 95% interval over splits, clipped to the metric's range."""
        evidence = t_test(self.values(metric))
        low, high = (100 * limit for limit in METRICS[metric].range)
        return evidence._replace(low=max(evidence.low, low), high=min(evidence.high, high))


def pair_of(pairs: Sequence[Pair], label: str, other: str) -> Pair | None:
    return next((pair for pair in pairs if {pair.ahead, pair.behind} == {label, other}), None)


def comparison_rows(standings: Sequence[Standing], pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """One row per method: metrics, the paper's values where known, the difference to the best."""
    best = standings[0].label
    rows = []
    for standing in standings:
        row: dict[str, Any] = {"method": standing.label, "splits": len(standing.records)}
        row["complete"] = standing.result.get("complete", True)
        for name in standing.records[0].all_metrics:
            mean, low, high = standing.summary(name)[:3]
            row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
        paper = standing.result.get("paper") or {}
        _, deviation = mean_and_deviation(standing.records)
        for name in HEADLINE:
            row[f"{name}_std"] = deviation[name] if len(standing.records) > 1 else None
            row[f"{name}_paper"] = paper.get(name, {}).get("mean")
            row[f"{name}_paper_std"] = paper.get(name, {}).get("std")
        pair = None if standing.label == best else pair_of(pairs, standing.label, best)
        row |= {f"behind_{name}": getattr(pair, name, None) for name in PAIR_COLUMNS}
        row["seconds"] = standing.seconds
        rows.append({n: round(v, 6) if isinstance(v, float) else v for n, v in row.items()})
    return rows


LEVEL = 0.05
SIMILAR_COST = 1.5  # ratio of seconds
CLOSE = 2.0  # points by which a cheaper method may be worse


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One method against another on the same splits, in points.

    The interval (95%) and p-value allow for nodes shared between splits and are corrected for all
    comparisons (Holm): the interval excludes 0 if and only if p is below 0.05.
    """

    ahead: str  # the method with the higher mean
    behind: str
    difference: float
    low: float
    high: float
    p: float
    significant: bool


def compare_pairs(
    values: Mapping[str, Sequence[float]], *, overlap: float, fixed: bool = False
) -> list[Pair]:
    """Test the difference between every two methods, given one value per split.

    The tests are corrected for all pairs, since the best method is only known afterwards. If splits
    are `fixed`, all have the same test nodes, and no difference is significant.
    """
    names, differences = list[tuple[str, str]](), list[list[float]]()
    for first, second in combinations(values, 2):
        if fmean(values[first]) < fmean(values[second]):
            first, second = second, first
        names.append((first, second))
        differences.append([a - b for a, b in zip(values[first], values[second], strict=True)])
    return [
        Pair(
            ahead=ahead,
            behind=behind,
            difference=test.mean,
            low=test.low,
            high=test.high,
            p=test.p,
            significant=test.p < LEVEL and len(values[ahead]) >= FEWEST_SPLITS and not fixed,
        )
        for (ahead, behind), test in zip(names, _corrected(differences, overlap), strict=True)
    ]


def _corrected(differences: Sequence[Sequence[float]], overlap: float) -> list[Evidence]:
    """Test each difference, correct for all, and widen each interval as its p was raised."""
    tests = [t_test(gaps, overlap=overlap) for gaps in differences]
    if any(math.isnan(test.p) for test in tests):  # there is a single split
        return [test._replace(p=math.nan) for test in tests]
    corrected = []
    for gaps, test, p in zip(differences, tests, holm([test.p for test in tests]), strict=True):
        share = test.p / p if p > 0 else 1 / len(tests)
        corrected.append(t_test(gaps, overlap=overlap, level=1 - LEVEL * share)._replace(p=p))
    return corrected


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Which method to use, and why."""

    best: str  # the method with the highest mean
    take: str  # the cheapest that is close to the best and not significantly worse
    sentences: tuple[str, ...]


def judge(
    standings: Sequence[Standing],
    pairs: Sequence[Pair],
    metric: str,
    *,
    alone: Collection[str] = (),
    fixed: bool = False,
) -> Verdict:
    """Tell which method to use, given what `compare_pairs` returned.

    If one that ignores the graph (`alone`) is best, the verdict begins with that, or with a doubt
    if the difference is not significant, and the method to use is one of them.
    """
    means = {standing.label: fmean(standing.values(metric)) for standing in standings}
    titles = {standing.label: standing.title for standing in standings}
    seconds = {standing.label: standing.seconds for standing in standings}
    best, *others = sorted(means, key=lambda label: -means[label])
    splits, metric_title = len(standings[0].values(metric)), METRICS[metric].title
    against = {pair.behind: pair for pair in pairs if pair.ahead == best}
    # of equal means either may be first in a pair
    beaten = [label for label in others if label in against and against[label].significant]
    level = [label for label in others if label not in beaten]
    sentences = list[str]()
    rival = next((label for label in others if label not in alone), None)
    if best in alone and rival is not None:
        start = (
            "The graph does not help" if rival in beaten else "Whether the graph helps is unclear"
        )
        sentences.append(
            f"{start}: {titles[best]}, which ignores it, reaches {means[best]:.1f}, the best "
            f"method that uses it, {titles[rival]}, {means[rival]:.1f}."
        )
    enough = FEWEST_SPLITS if fixed else ENOUGH_SPLITS
    if not others:
        text = f"{titles[best]} is the only method: there is nothing to compare it with."
        return Verdict(best=best, take=best, sentences=(text,))
    if splits < enough and not beaten:
        sentences.append(
            f"{titles[best]} has the highest {metric_title}, but {splits} "
            f"{'split is' if splits == 1 else 'splits are'} too few to tell whether it is "
            f"better; use at least {enough}, better 10."
        )
        return Verdict(best=best, take=best, sentences=tuple(sentences))
    suited = [label for label in (best, *level) if best not in alone or label in alone]
    take, advice = _advice(suited, means, seconds)
    if not beaten:
        several = len(others) > 1
        start = "No method is" if several else "Neither method is"
        sentences.append(
            f"{start} significantly better than the other{'s' if several else ''}; use "
            f"{titles[take]}, {advice}."
        )
    else:
        if level:
            names = _listed([titles[label] for label in (best, *level)])
            sentences.append(f"{names} do not differ significantly; use {titles[take]}, {advice}.")
        pair = against[beaten[0]]
        sentences.append(
            f"{titles[best]} is better than {titles[pair.behind]} by {pair.difference:.1f} points "
            f"of {metric_title} (95% interval {pair.low:.1f} to {pair.high:.1f}), which is "
            "significant."
        )
        if len(beaten) > 1:
            rest = _listed([titles[label] for label in beaten[1:]])
            sentences.append(f"{titles[best]} is further ahead of {rest}.")
    return Verdict(best=best, take=take, sentences=tuple(sentences))


def _advice(
    labels: Sequence[str], means: Mapping[str, float], seconds: Mapping[str, float]
) -> tuple[str, str]:
    """The method to use among those that do not differ significantly, and the sentence for it.

    Labels are sorted by quality.
    """
    close = [label for label in labels if means[labels[0]] - means[label] <= CLOSE]
    least = min(close, key=lambda label: seconds[label])
    # seconds are noisy, too: of several with a similar cost, use the better one
    take = next(label for label in close if seconds[label] <= SIMILAR_COST * seconds[least])
    if take == least:
        advice = "the cheaper one" if len(close) == 2 else "the cheapest one"
    else:
        two = len(close) == 2
        advice = "the better one at similar cost" if two else "the best of the cheap ones"
    if len(labels) == 1:
        return take, "the one that ignores the graph"
    if len(close) == len(labels):
        return take, advice
    if take == labels[0]:
        return take, "the one with the highest mean, and run more splits to be sure"
    return take, f"{advice} within {CLOSE:g} points of the best"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The result of comparing methods."""

    metric: str  # that they were compared by
    protocol: Mapping[str, Any]  # name and parameters of the split protocol
    seeds: Sequence[int]  # splits on which all methods ran
    wanted: int  # number of splits that were asked for
    overlap: float  # test nodes over the other labelled nodes of a split
    budget: int  # settings tried per method
    standings: Sequence[Standing]  # the methods that ran, the best first
    pairs: Sequence[Pair]  # every two of them
    failed: Mapping[str, str]  # methods that did not run, and why
    verdict: Verdict  # which method to use
    positive: int | None  # of two classes
    classes: Sequence[str]  # names, or indices
    class_counts: Sequence[int]  # labelled nodes per class
    fixed: bool  # whether every seed has the same split
    stopped: bool  # whether the time limit or Ctrl-C ended it early
    environment: Mapping[str, Any]  # versions, device and commit

    @property
    def best(self) -> Standing:
        return self.standings[0]

    @property
    def frame(self) -> Any:
        """A DataFrame with one row per method, the best first: metrics with 95% intervals."""
        frame = pd.DataFrame(comparison_rows(self.standings, self.pairs))
        frame.insert(1, "title", [standing.title for standing in self.standings])
        return frame.set_index("method").dropna(axis="columns", how="all")

    def __str__(self) -> str:
        """A line per method with the metric and the gap to the best; the verdict."""
        columns = ["title", self.metric, "behind_difference", "seconds"]
        table = self.frame.reindex(columns=columns).set_index("title").rename_axis(None)
        failed = (f"{label}: {reason}" for label, reason in self.failed.items())
        shown = table.round(1).to_string(na_rep="")
        return "\n".join([shown, "", *self.verdict.sentences, *failed])

    def _repr_html_(self) -> str:
        """The sections of the comparison page, for notebooks."""
        from evengraph.report.notebook import comparison_html

        return comparison_html(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        names = list(self.best.records[0].all_metrics)
        plain = ("metric", "protocol", "seeds", "overlap", "budget", "classes", "class_counts")
        return {
            "schema": 1,
            "kind": "comparison",
            "evengraph": evengraph.__version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            **{name: getattr(self, name) for name in (*plain, "failed", "environment")},
            "complete": len(self.seeds) == self.wanted and not self.failed,
            "conclusive": len(self.seeds) >= FEWEST_SPLITS and not self.fixed,
            "positive": None if self.positive is None else self.classes[self.positive],
            "verdict": asdict(self.verdict),
            "methods": [
                {
                    "label": standing.label,
                    "title": standing.title,
                    "settings": dict(standing.settings),
                    "changed": list(standing.changed),
                    "seconds": standing.seconds,
                    "figures": {name: standing.summary(name)._asdict() for name in names},
                    "runs": [
                        _run(standing.label, candidate, record)
                        for candidate, record in zip(
                            standing.candidates or [0] * len(standing.records),
                            standing.records,
                            strict=True,
                        )
                    ],
                    **({"paper": paper} if (paper := standing.result.get("paper")) else {}),
                }
                for standing in self.standings
            ],
            "pairs": [asdict(pair) for pair in self.pairs],
        }


def _run(label: str, candidate: int, record: Record) -> dict[str, Any]:
    return {
        "label": label,
        "place": candidate,
        "seed": record.seed,
        "settings": record.settings,
        "metrics": record.all_metrics,
        "per_class": record.per_class,
        "train_counts": record.class_counts,
        "validation": record.validation,
        "criterion": record.criterion,
        "resolved": record.resolved,
        "calibrator": (record.calibration or {})["calibrator"],
        "epochs": record.total_epochs,
        "seconds": record.seconds,
    }


ONE_SPLIT = (
    "All methods had the same test nodes and only the random initialisation differed: one split "
    "cannot tell whether a method is better on other nodes."
)
