"""Statistics over seeds and splits: intervals, paired tests, correction for many tests, ranks.

Every command and page takes its intervals and p values from here.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

RESAMPLES = 10_000  # of runs, for the chance that few of them reach a mean
FEWEST_SPLITS = 3  # for a significance test
ENOUGH_SPLITS = 5  # for an interval that says something, and for a test that finds nothing
TOLERANCE = 1e-9  # values closer than this are equal up to rounding


class Evidence(NamedTuple):
    """Result of testing whether the mean of several values is zero."""

    mean: float
    low: float  # ends of the confidence interval of the mean
    high: float
    p: float  # two-sided p value of a mean this far from zero


def t_test(values: Sequence[float], *, overlap: float = 0.0, level: float = 0.95) -> Evidence:
    """Student's t interval and two-sided test of a mean, corrected for overlapping splits.

    Values from splits of the same nodes are not independent, so the standard test finds too many
    differences: the variance of their mean is about s²(1/n + overlap) instead of s²/n, where
    overlap is the number of test nodes over that of other labelled nodes. The interval and p value
    are NaN for a single value. Equal non-zero values have no variance to test with; their p value
    is that of the sign test, 2 ** (1 - n).

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
    if max(values) - min(values) < TOLERANCE:
        p = 1.0 if abs(mean) < TOLERANCE else 2.0 ** (1 - count)
        return Evidence(mean, mean, mean, p)
    from scipy.special import stdtr, stdtrit  # of Student's t; scipy.stats takes 50 MB

    # scipy's ttest_1samp is this test for overlap=0 only: it cannot be given a standard error
    error = stdev(values) * math.sqrt(1 / count + overlap)
    margin = float(stdtrit(count - 1, (1 + level) / 2)) * error
    p = 2 * float(stdtr(count - 1, -abs(mean) / error))
    return Evidence(mean, mean - margin, mean + margin, p)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction, in the order of the input; scipy has none."""
    corrected, largest = [1.0] * len(p_values), 0.0
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(order):
        largest = max(largest, min(p_values[index] * (len(p_values) - rank), 1.0))
        corrected[index] = largest
    return corrected


def mean_ranks(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Mean rank of each method over settings, 1 for the highest value; ties share their rank."""
    table = np.asarray(list(values.values()), dtype=float)  # (methods, settings)
    if not table.size:
        return {}
    above = (table > table[:, None]).sum(axis=1)  # how many methods are better, in each setting
    equal = (table == table[:, None]).sum(axis=1)  # one of them is the method itself
    ranks = above + (equal + 1) / 2
    ranks[:, np.isnan(table).any(axis=0)] = np.nan
    return dict(zip(values, ranks.mean(axis=1).tolist(), strict=True))


def format_p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


Z = 1.959964  # of a 95% interval

Interval = tuple[float, float]


def share_interval(hits: float, count: float) -> Interval | None:
    """Wilson's 95% interval of a share, as fractions; None without any count.

    Reference:
        Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 1927.
    """
    if count <= 0:
        return None
    share, square = hits / count, Z * Z
    middle = (share + square / (2 * count)) / (1 + square / count)
    margin = Z * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    margin /= 1 + square / count
    return max(middle - margin, 0.0), min(middle + margin, 1.0)


def ranking_interval(value: float, positives: int) -> list[float]:
    """Ends in percent of the 95% interval of an average precision: a share of the positive nodes.

    It holds with a handful of them, where the bootstrap is far too narrow.

    Reference:
        Boyd, Eng and Page, "Area under the Precision-Recall Curve", ECML PKDD 2013.
    """
    return [100 * end for end in share_interval(value * positives, positives) or (0.0, 1.0)]


def mean_recall_interval(confusion: Sequence[Sequence[float]]) -> Interval | None:
    """95% interval of balanced accuracy, as fractions; None if no class has test nodes.

    The variance of each recall is that of Agresti and Coull, with two hits and two misses added,
    so that a class that is all right or all wrong is not taken for certain.
    """
    recalls, variance = [], 0.0
    for index, row in enumerate(confusion):
        count = math.fsum(row)
        if count > 0:
            recalls.append(row[index] / count)
            share = (row[index] + 2) / (count + 4)
            variance += share * (1 - share) / (count + 4)
    if not recalls:
        return None
    mean = math.fsum(recalls) / len(recalls)
    margin = Z * math.sqrt(variance) / len(recalls)
    return max(mean - margin, 0.0), min(mean + margin, 1.0)
