"""How well a single column predicts the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evengraph.inspection.edges import Ints

MOST_VALUES = 64  # a column with more distinct values is cut into this many ranges
LEAST_IN_RANGE = 5
LEAST_EVIDENCE = 10  # labelled nodes of a class below which a perfect fit may be luck
MOST_ROWS = 20_000  # labelled rows to use; more would not change the result


@dataclass(frozen=True, kw_only=True)
class LabelSignal:
    """How well a column predicts the label.

    Args:
        label: Share of the error of always predicting the largest class that it removes, at most 1.
        by_class: The same for each class against the rest.
        copy: Whether values and classes correspond one to one.

    Shapes:
        by_class: (C,)
    """

    label: float
    by_class: NDArray[np.float64]
    copy: bool


def sample_rows(labels: Ints, num_classes: int) -> Ints:
    """Labelled rows, at most about MOST_ROWS, including all of the rare classes.

    Shapes:
        labels: (N,), -1 for unlabelled
    """
    most = max(MOST_ROWS // max(num_classes, 1), LEAST_EVIDENCE)
    rng = np.random.default_rng(0)
    sampled = []
    for label in range(num_classes):
        rows = np.flatnonzero(labels == label)
        sampled.append(rows if len(rows) <= most else rng.choice(rows, most, replace=False))
    return np.sort(np.concatenate(sampled)) if sampled else np.empty(0, dtype=np.int64)


def group_values(values: NDArray[Any], num_classes: int) -> Ints:
    """Group id of each value of a column; many distinct values are cut into ranges of equal counts.

    NaN is a group of its own.

    Shapes:
        values, returns: (M,)
    """
    distinct, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(distinct) > max(MOST_VALUES, 2 * num_classes):
        ranges = max(min(MOST_VALUES, len(values) // LEAST_IN_RANGE), 1)
        middle = np.cumsum(counts) - counts / 2  # equal values stay together
        of_value = np.minimum((middle * ranges / len(values)).astype(np.int64), ranges - 1)
        of_value[np.isnan(distinct)] = ranges
        group = of_value[group]
    return group.astype(np.int64)


def label_signal(table: NDArray[np.int64]) -> LabelSignal:
    """Measure how well groups of equal values predict the label.

    A node is predicted by the other nodes of its group, so a unique value predicts nothing.

    Shapes:
        table: (groups, C), labelled nodes of each class in each group
    """
    sizes, totals = table.sum(1), table.sum(0)
    number = int(sizes.sum())
    ordered = np.sort(table, axis=1)
    second = ordered[:, -2] if table.shape[1] > 1 else np.zeros(len(table), dtype=np.int64)
    label = _gain(_hits(ordered[:, -1], second).sum(), totals.max(initial=0), number)
    others = sizes[:, None] - table
    hits = _hits(np.maximum(table, others), np.minimum(table, others)).sum(0)  # (C,)
    bases = np.maximum(totals, number - totals)
    scarce = np.minimum(totals, number - totals) < LEAST_EVIDENCE
    by_class = np.array([_gain(h, b, number) for h, b in zip(hits, bases, strict=True)])
    by_class[scarce] = 0.0
    full = table[sizes > 0]
    copy = bool(
        len(full) == (totals > 0).sum() > 1
        and ((full > 0).sum(1) == 1).all()
        and ((full > 0).sum(0) <= 1).all()
    )
    if number - totals.max(initial=0) < LEAST_EVIDENCE:
        label, copy = 0.0, False
    return LabelSignal(label=label, by_class=by_class, copy=copy)


def _hits(top: Ints, second: Ints) -> Ints:
    """Nodes of the largest class that the rest of their group predicts correctly."""
    return np.where((top >= 2) & (top - 1 > second), top, 0)


def _gain(hits: int, base: int, number: int) -> float:
    return float((hits - base) / (number - base)) if number > base else 0.0
