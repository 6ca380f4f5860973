"""Which method is better, whether that is more than noise, and both in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Literal

from evengraph.metrics import METRICS
from evengraph.metrics.significance import Evidence, holm, t_test

FEWEST = 3  # splits; with fewer nothing can be told
LEVEL = 0.05
MUCH_THE_SAME = 1.5  # times the seconds
CLOSE = 2.0  # points that a cheaper method may have less

Strength = Literal["clear", "here", "noise"]
"""More than noise; more than noise on this graph's labelled nodes; noise."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One method against another on the same splits, in points.

    Args:
        ahead: The one with the higher mean.
        behind: The other.
        difference: Mean of the differences.
        low: Lower end of its usual 95% interval, corrected for all comparisons.
        high: Upper end.
        p: Of the usual paired t-test, corrected likewise (Holm).
        wide_low: Lower end of the interval that allows for nodes shared between splits.
        wide_high: Upper end.
        wide_p: Of the test that allows for them, corrected likewise.
        strength: What may be said.

    A corrected interval leaves out 0 where the corrected p is below 0.05, and only there.
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
        """The interval that goes with what is said."""
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
    """Every two methods against one another.

    All pairs are corrected for, since the best is only known after looking.

    Args:
        values: Of each method, one for each split.
        overlap: Test nodes over the other labelled nodes of a split.
        independent: Whether splits are drawn anew each time. The usual test then holds for this
            graph's labelled nodes, and fails only for others.
        fixed: Whether all have the same test nodes, so that only starts of training differ: then
            nothing is said to be more than noise.
    """
    found = []
    for one, other in combinations(values, 2):
        if fmean(values[one]) < fmean(values[other]):
            one, other = other, one
        gaps = [a - b for a, b in zip(values[one], values[other], strict=True)]
        found.append((one, other, gaps))
    differences = [gaps for _, _, gaps in found]
    usual, wide = _corrected(differences, 0.0), _corrected(differences, overlap)
    pairs = []
    for (one, other, _), plain, allowed in zip(found, usual, wide, strict=True):
        strength: Strength = "noise"
        enough = len(values[one]) >= FEWEST and not fixed
        if enough and allowed.p < LEVEL:
            strength = "clear"
        elif enough and independent and plain.p < LEVEL:
            strength = "here"
        pairs.append(
            Pair(
                ahead=one,
                behind=other,
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
    """Test each, correct for all, and widen each interval as its p was raised."""
    alone = [t_test(gaps, overlap=overlap) for gaps in differences]
    if any(math.isnan(one.p) for one in alone):  # a single split tells nothing
        return [one._replace(p=math.nan) for one in alone]
    found = []
    for gaps, one, p in zip(differences, alone, holm([one.p for one in alone]), strict=True):
        share = one.p / p if p > 0 else 1 / len(alone)
        found.append(t_test(gaps, overlap=overlap, level=1 - LEVEL * share)._replace(p=p))
    return found


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What to take, and why.

    Args:
        best: The method with the highest mean.
        take: The one to take: the cheapest of those that nothing is ahead of and that are close.
        sentences: Why.
    """

    best: str
    take: str
    sentences: tuple[str, ...]


def judge(
    values: Mapping[str, Sequence[float]],
    pairs: Sequence[Pair],
    *,
    seconds: Mapping[str, float],
    titles: Mapping[str, str],
    metric: str,
) -> Verdict:
    """Say which method is better.

    Args:
        values: Of each method, one for each split.
        pairs: What `compare_pairs` made of them.
        seconds: What a fit of each takes.
        titles: What to call each.
        metric: What the values are.
    """
    order = sorted(values, key=lambda label: -fmean(values[label]))
    best, others = order[0], order[1:]
    splits, words = len(values[best]), METRICS[metric].title
    if not others:
        text = f"{titles[best]} stands alone: there is nothing to compare it with."
        return Verdict(best=best, take=best, sentences=(text,))
    if splits < FEWEST:
        text = (
            f"{titles[best]} has the highest {words}, but {splits} "
            f"{'split' if splits == 1 else 'splits'} cannot tell a difference from noise; ask for "
            f"at least {FEWEST}, better 10."
        )
        return Verdict(best=best, take=best, sentences=(text,))
    against = {pair.behind: pair for pair in pairs if pair.ahead == best}
    # of equal means either may stand first in a pair
    level = [o for o in others if o not in against or against[o].strength == "noise"]
    beaten = [label for label in others if label not in level]
    behind = {label: fmean(values[best]) - fmean(values[label]) for label in level}
    take, cheapest = _cheapest([best, *(o for o in level if behind[o] <= CLOSE)], seconds)
    far = [label for label in level if behind[label] > CLOSE]
    if far and take == best:
        cheapest = "the highest mean, and more splits to be sure"
    elif far:
        cheapest = f"{cheapest} within {CLOSE:g} points of the best"
    sentences = []
    if not beaten:
        sentences.append(
            f"{'No' if len(others) > 1 else 'Neither'} method is ahead of the other"
            f"{'s' if len(others) > 1 else ''} by more than noise; take {cheapest}: "
            f"{titles[take]}."
        )
    else:
        if level:
            names = _listed([titles[label] for label in (best, *level)])
            sentences.append(
                f"{names} are level: no difference between them is more than noise; take "
                f"{cheapest}: {titles[take]}."
            )
        sentences += _ahead(against[beaten[0]], titles, words)
        if len(beaten) > 1:
            rest = _listed([titles[label] for label in beaten[1:]])
            sentences.append(f"{titles[best]} is further ahead of {rest}.")
    return Verdict(best=best, take=take, sentences=tuple(sentences))


def _cheapest(labels: Sequence[str], seconds: Mapping[str, float]) -> tuple[str, str]:
    """Which to take of methods that are level, the best first; and what to call it."""
    least = min(labels, key=lambda label: seconds[label])
    # Seconds are noisy, too: where several cost about the same, the better one.
    take = next(one for one in labels if seconds[one] <= MUCH_THE_SAME * seconds[least])
    if take == least:
        return take, "the cheaper" if len(labels) == 2 else "the cheapest"
    return take, "the better at much the same cost" if len(labels) == 2 else (
        "the best of the cheap ones"
    )


def _ahead(pair: Pair, titles: Mapping[str, str], words: str) -> list[str]:
    clear = pair.strength == "clear"
    low, high = pair.interval
    by = (
        f"{titles[pair.ahead]} is ahead of {titles[pair.behind]} by {pair.difference:.1f} points "
        f"of {words} (95% interval {low:.1f} to {high:.1f}): more than noise"
    )
    if clear:
        return [f"{by}."]
    return [
        f"{by} on this graph's labelled nodes.",
        "Whether that holds for other nodes is less sure: the splits share many of theirs, and a "
        f"test that allows for it gives {p_words(pair.wide_p)}.",
    ]


def p_words(p: float) -> str:
    """A chance for people."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
