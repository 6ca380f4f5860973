"""What may be said of figures over seeds: intervals, ranks, and differences that are no noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy.stats import rankdata, ttest_rel

from evengraph.metrics.significance import holm
from evengraph.report.store.boards import Board

RESAMPLES = 10_000
FEWEST = 5  # common seeds; with fewer a test says nothing


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """A bootstrap interval of the mean; none for a single value.

    The same for the same values: the resamples come from a generator of its own.
    """
    if len(values) < 2:
        return None
    array = np.asarray(values, dtype=float)
    drawn = np.random.default_rng(0).integers(len(array), size=(RESAMPLES, len(array)))
    low, high = np.quantile(array[drawn].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def mean_ranks(board: Board, metric: str) -> dict[str, float]:
    """Mean rank of each method over the set-ups that all have; the best has rank 1."""
    labels = board.labels
    ranks: list[list[float]] = []
    for setup in board.setups:
        cells = [board.find(setup, label) for label in labels]
        means = [cell.mean(metric) for cell in cells if cell is not None]
        if len(means) == len(labels):
            ranks.append(rankdata([-mean for mean in means]).tolist())
    if not ranks:
        return {}
    return {label: fmean(one[place] for one in ranks) for place, label in enumerate(labels)}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A method against another on the same seeds.

    Args:
        setup: Name of the set-up.
        label: The one.
        against: The other.
        seeds: How many seeds both have.
        difference: Mean of the differences, in points.
        low: Lower end of its interval.
        high: Upper end.
        p: Of a paired t-test.
        corrected: The same, corrected for the number of comparisons (Holm).
    """

    setup: str
    label: str
    against: str
    seeds: int
    difference: float
    low: float
    high: float
    p: float
    corrected: float


def comparisons(board: Board, against: str, metric: str) -> list[Comparison]:
    """One method against every other in every set-up, where enough seeds are common."""
    found = []
    for setup in board.setups:
        other = board.find(setup, against)
        for label in board.labels:
            cell = board.find(setup, label)
            if cell is None or other is None or label == against:
                continue
            one, two = other.by_seed(metric), cell.by_seed(metric)
            common = sorted(set(one) & set(two))
            if len(common) < FEWEST:
                continue
            gaps = [one[seed] - two[seed] for seed in common]
            found.append((setup, label, gaps))
    raw = [_p(gaps) for _, _, gaps in found]
    corrected = holm(raw)
    result = []
    for (setup, label, gaps), p, adjusted in zip(found, raw, corrected, strict=True):
        low, high = interval(gaps) or (math.nan, math.nan)
        result.append(
            Comparison(
                setup=setup,
                label=against,
                against=label,
                seeds=len(gaps),
                difference=fmean(gaps),
                low=low,
                high=high,
                p=p,
                corrected=adjusted,
            )
        )
    return result


def _p(gaps: Sequence[float]) -> float:
    """Of a paired t-test; differences that are all the same leave no doubt, or are none."""
    if max(gaps) - min(gaps) < 1e-9:
        return 1.0 if abs(gaps[0]) < 1e-9 else 0.0
    return float(ttest_rel(gaps, [0.0] * len(gaps)).pvalue)
