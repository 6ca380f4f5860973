"""Rank methods, test their differences for significance, and put the verdict in words."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Literal

from evengraph.experiment.standing import Standing
from evengraph.metrics import METRICS
from evengraph.metrics.significance import (
    ENOUGH_SPLITS,
    FEWEST_SPLITS,
    Evidence,
    format_p,
    holm,
    t_test,
)

LEVEL = 0.05
SIMILAR_COST = 1.5  # ratio of seconds
CLOSE = 2.0  # points by which a cheaper method may be worse

Strength = Literal["clear", "here", "noise"]
"""Significant; significant on this graph's labelled nodes only; not significant."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One method against another on the same splits, in points.

    Args:
        ahead: The method with the higher mean.
        behind: The other.
        difference: Mean difference.
        low: Lower end of its usual 95% interval, corrected for all comparisons.
        high: Upper end.
        p: P-value of the usual paired t-test, corrected likewise (Holm).
        wide_low: Lower end of the interval that allows for nodes shared between splits.
        wide_high: Upper end.
        wide_p: P-value of the test that allows for them, corrected likewise.
        strength: How significant the difference is.

    A corrected interval excludes 0 if and only if the corrected p is below 0.05.
    """

    ahead: str
    behind: str
    difference: float
    low: float
    high: float
    p: float
    wide_low: float
    wide_high: float
    wide_p: float
    strength: Strength

    @property
    def interval(self) -> tuple[float, float]:
        """The interval that belongs to `strength`."""
        if self.strength == "here":
            return self.low, self.high
        return self.wide_low, self.wide_high


def compare_pairs(
    values: Mapping[str, Sequence[float]],
    *,
    overlap: float,
    independent: bool,
    fixed: bool = False,
) -> list[Pair]:
    """Test the difference between every two methods.

    The tests are corrected for all pairs, since the best method is only known afterwards.

    Args:
        values: One value per split, by method.
        overlap: Test nodes over the other labelled nodes of a split.
        independent: Whether splits are drawn independently. The usual test then holds for this
            graph's labelled nodes, but not for others.
        fixed: Whether all splits have the same test nodes, so that only the initialisation
            differs: then no difference counts as significant.
    """
    names, differences = list[tuple[str, str]](), list[list[float]]()
    for first, second in combinations(values, 2):
        if fmean(values[first]) < fmean(values[second]):
            first, second = second, first
        names.append((first, second))
        differences.append([a - b for a, b in zip(values[first], values[second], strict=True)])
    usual, wide = _corrected(differences, 0.0), _corrected(differences, overlap)
    pairs = []
    for (ahead, behind), plain, allowed in zip(names, usual, wide, strict=True):
        strength: Strength = "noise"
        enough = len(values[ahead]) >= FEWEST_SPLITS and not fixed
        if enough and allowed.p < LEVEL:
            strength = "clear"
        elif enough and independent and plain.p < LEVEL:
            strength = "here"
        pairs.append(
            Pair(
                ahead=ahead,
                behind=behind,
                difference=plain.mean,
                low=plain.low,
                high=plain.high,
                p=plain.p,
                wide_low=allowed.low,
                wide_high=allowed.high,
                wide_p=allowed.p,
                strength=strength,
            )
        )
    return pairs


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
    """Which method to use, and why.

    Args:
        best: The method with the highest mean.
        take: The method to use: the cheapest that is close to the best and not significantly worse.
        sentences: The reasons.
    """

    best: str
    take: str
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

    Args:
        standings: The methods.
        pairs: Every two of them.
        metric: Metric to judge by.
        alone: Methods that ignore the graph. If one of them is best, the verdict begins with
            that, or with a doubt if the difference is not significant, and the method to use is
            one of them.
        fixed: Whether all splits have the same test nodes, so that more of them do not help.
    """
    enough = FEWEST_SPLITS if fixed else ENOUGH_SPLITS
    verdict = _judge(standings, pairs, metric, alone, enough)
    means = {standing.label: fmean(standing.values(metric)) for standing in standings}
    with_graph = [label for label in means if label not in alone]
    best = max(with_graph, key=lambda label: means[label], default=None)
    if best is None or verdict.best not in alone:
        return verdict
    titles = {standing.label: standing.title for standing in standings}
    rival = [pair for pair in pairs if (pair.ahead, pair.behind) == (verdict.best, best)]
    few = len(standings[0].values(metric)) < FEWEST_SPLITS
    certain = not few and bool(rival) and rival[0].strength != "noise"
    start = "The graph does not help" if certain else "Whether the graph helps is unclear"
    sentence = (
        f"{start}: {titles[verdict.best]}, which ignores it, reaches "
        f"{means[verdict.best]:.1f}, the best method that uses it, {titles[best]}, "
        f"{means[best]:.1f}."
    )
    return replace(verdict, sentences=(sentence, *verdict.sentences))


def _judge(
    standings: Sequence[Standing],
    pairs: Sequence[Pair],
    metric: str,
    alone: Collection[str],
    enough: int,
) -> Verdict:
    """The verdict, without a word about the graph."""
    means = {standing.label: fmean(standing.values(metric)) for standing in standings}
    titles = {standing.label: standing.title for standing in standings}
    seconds = {standing.label: standing.seconds for standing in standings}
    best, *others = sorted(means, key=lambda label: -means[label])
    splits, metric_title = len(standings[0].values(metric)), METRICS[metric].title
    if not others:
        text = f"{titles[best]} is the only method: there is nothing to compare it with."
        return Verdict(best=best, take=best, sentences=(text,))
    against = {pair.behind: pair for pair in pairs if pair.ahead == best}
    # of equal means either may be first in a pair
    level = [o for o in others if o not in against or against[o].strength == "noise"]
    beaten = [label for label in others if label not in level]
    if splits < enough and not beaten:
        text = (
            f"{titles[best]} has the highest {metric_title}, but {splits} "
            f"{'split is' if splits == 1 else 'splits are'} too few to tell whether it is "
            f"better; use at least {enough}, better 10."
        )
        return Verdict(best=best, take=best, sentences=(text,))
    suited = [label for label in (best, *level) if best not in alone or label in alone]
    take, advice = _advice(suited, means, seconds)
    sentences = []
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
        sentences += _better(against[beaten[0]], titles, metric_title)
        if len(beaten) > 1:
            rest = _listed([titles[label] for label in beaten[1:]])
            sentences.append(f"{titles[best]} is further ahead of {rest}.")
    return Verdict(best=best, take=take, sentences=tuple(sentences))


def _advice(
    labels: Sequence[str], means: Mapping[str, float], seconds: Mapping[str, float]
) -> tuple[str, str]:
    """The method to use among those that do not differ significantly, and the sentence for it."""
    close = [label for label in labels if means[labels[0]] - means[label] <= CLOSE]
    take, advice = _cheapest(close, seconds)
    if len(labels) == 1:
        return take, "the one that ignores the graph"
    if len(close) == len(labels):
        return take, advice
    if take == labels[0]:
        return take, "the one with the highest mean, and run more splits to be sure"
    return take, f"{advice} within {CLOSE:g} points of the best"


def _cheapest(labels: Sequence[str], seconds: Mapping[str, float]) -> tuple[str, str]:
    """The cheapest of several methods, which are sorted by quality, and how to call it."""
    least = min(labels, key=lambda label: seconds[label])
    # seconds are noisy, too: of several with a similar cost, use the better one
    take = next(label for label in labels if seconds[label] <= SIMILAR_COST * seconds[least])
    if take == least:
        return take, "the cheaper one" if len(labels) == 2 else "the cheapest one"
    return take, "the better one at similar cost" if len(labels) == 2 else (
        "the best of the cheap ones"
    )


def _better(pair: Pair, titles: Mapping[str, str], metric_title: str) -> list[str]:
    low, high = pair.interval
    text = (
        f"{titles[pair.ahead]} is better than {titles[pair.behind]} by {pair.difference:.1f} "
        f"points of {metric_title} (95% interval {low:.1f} to {high:.1f}), which is significant"
    )
    if pair.strength == "clear":
        return [f"{text}."]
    return [
        f"{text} on this graph's labelled nodes.",
        "It is less certain for other nodes: the splits share many of theirs, and a test that "
        f"allows for it gives {format_p(pair.wide_p)}.",
    ]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
