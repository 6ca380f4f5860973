"""How much a single column tells about the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evengraph.inspection.edges import Ints

MOST_VALUES = 64  # a column with more different values than this is cut into as many ranges
LEAST_IN_RANGE = 5
LEAST_EVIDENCE = 10  # labelled nodes of a class before a perfect fit counts as more than luck
MOST_ROWS = 20_000  # labelled rows that are looked at; more would not change the answer


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a column tells.

    Args:
        label: How much of the error of always guessing the largest class it takes away, at most 1.
        by_class: The same for each class against the rest.
        copy: Whether each value stands for one class and each class for one value.

    Shapes:
        by_class: (C,)
    """

    label: float
    by_class: NDArray[np.float64]
    copy: bool


def sample_rows(labels: Ints, num_classes: int) -> Ints:
    """Labelled rows, at most about MOST_ROWS of them, with rare classes kept whole.

    Shapes:
        labels: (N,), -1 for unlabelled
    """
    most = max(MOST_ROWS // max(num_classes, 1), LEAST_EVIDENCE)
    draw = np.random.default_rng(0)
    kept = []
    for label in range(num_classes):
        rows = np.flatnonzero(labels == label)
        kept.append(rows if len(rows) <= most else draw.choice(rows, most, replace=False))
    return np.sort(np.concatenate(kept)) if kept else np.empty(0, dtype=np.int64)


def group_numbers(values: NDArray[Any], num_classes: int) -> Ints:
    """Number the values of a column; many different ones are cut into ranges with equal counts.

    What is not a number is a group of its own.

    Shapes:
        values, returns: (M,)
    """
    distinct, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(distinct) > max(MOST_VALUES, 2 * num_classes):
        ranges = max(min(MOST_VALUES, len(values) // LEAST_IN_RANGE), 1)
        middle = np.cumsum(counts) - counts / 2  # equal values stay together
        of_value = np.minimum((middle * ranges / len(values)).astype(np.int64), ranges - 1)
        of_value[np.isnan(distinct)] = ranges
        place = of_value[place]
    return place.astype(np.int64)


def what_tells(table: NDArray[np.int64]) -> Told:
    """Judge a column by its groups of equal values.

    A node is guessed by the others of its group, so that a value nobody shares tells nothing.

    Shapes:
        table: (groups, C), labelled nodes of each class in each group
    """
    sizes, totals = table.sum(1), table.sum(0)
    number = int(sizes.sum())
    ordered = np.sort(table, axis=1)
    second = ordered[:, -2] if table.shape[1] > 1 else np.zeros(len(table), dtype=np.int64)
    label = _gain(_sure(ordered[:, -1], second).sum(), totals.max(initial=0), number)
    others = sizes[:, None] - table
    hits = _sure(np.maximum(table, others), np.minimum(table, others)).sum(0)  # (C,)
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
    return Told(label=label, by_class=by_class, copy=copy)


def _sure(top: Ints, second: Ints) -> Ints:
    """Nodes of the commonest class that the rest of their group still outvotes for them."""
    return np.where((top >= 2) & (top - 1 > second), top, 0)


def _gain(hits: int, base: int, number: int) -> float:
    return float((hits - base) / (number - base)) if number > base else 0.0
