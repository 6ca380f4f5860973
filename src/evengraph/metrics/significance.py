"""Whether a difference is more than noise, when many are looked at and splits share nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple


class Evidence(NamedTuple):
    """What several values of a difference say about its mean.

    Args:
        mean: Of the values.
        low: Lower end of the interval of the mean.
        high: Upper end.
        p: Chance of a mean as far from zero if there were no difference.
    """

    mean: float
    low: float
    high: float
    p: float


def t_test(values: Sequence[float], *, overlap: float = 0.0, level: float = 0.95) -> Evidence:
    """Student's interval and two-sided test of a mean, for splits that share nodes if need be.

    Values from splits of one set of nodes are not independent, and the usual test finds too
    much: the variance of their mean is not s²/n but about s²(1/n + overlap). NaN for a single
    value. Values that are all the same have no spread to judge by: the test is then that of signs.

    Args:
        values: One for each split; the differences between two methods, say.
        overlap: Test nodes over the other labelled nodes of a split; 0 is the usual test.
        level: Of the interval.

    Reference:
        Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 2003.
    """
    if not values:
        raise ValueError("values must hold at least one value.")
    if not overlap >= 0:
        raise ValueError(f"overlap must be at least 0, got {overlap}.")
    mean, count = fmean(values), len(values)
    if count < 2 or not math.isfinite(mean):
        return Evidence(mean, math.nan, math.nan, math.nan)
    if max(values) - min(values) < 1e-9:
        p = 1.0 if abs(mean) < 1e-9 else 2.0 ** (1 - count)  # all on one side
        return Evidence(mean, mean, mean, p)
    from scipy.stats import t  # takes a while to import

    error = stdev(values) * math.sqrt(1 / count + overlap)
    reach = float(t.ppf((1 + level) / 2, count - 1)) * error
    p = 2 * float(t.sf(abs(mean) / error, count - 1))
    return Evidence(mean, mean - reach, mean + reach, p)


def holm(values: Sequence[float]) -> list[float]:
    """Holm's correction: the chance that any of so many differences is called one by luck."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    corrected = [1.0] * len(values)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(values[place] * (len(values) - rank), 1.0))
        corrected[place] = largest
    return corrected
