"""Intervals of scores on one set of test nodes, from counts of right and wrong predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
