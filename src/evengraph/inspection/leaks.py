"""Leaks: a label or an id among the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evengraph.inspection.measures import Columns, Ints, Matrix

SUSPICIOUS = 0.95  # share of the error that a leaking column removes
LEAST_ROWS = 20  # with fewer rows, every column looks like an id
DISTINCT = 0.99  # share of distinct values from which a column looks like an id
BLOCK = 256  # columns to copy at a time
MOST_VALUES = 64  # a column with more distinct values is cut into this many ranges
LEAST_IN_RANGE = 5
LEAST_EVIDENCE = 10  # labelled nodes of a class below which a perfect fit may be luck
MOST_ROWS = 20_000  # labelled rows to use; more would not change the result


@dataclass(frozen=True, kw_only=True)
class Leak:
    """A column that should not be among the features."""

    column: str
    kind: str  # "copy" of the label, predicts the "label" or one "class", or looks like an "id"
    strength: float | None = None  # share of the error that it removes, for "label" and "class"
    class_name: str | None = None  # the class that it predicts


def leaks_in_features(
    x: Matrix, columns: Columns, labels: Ints, names: Sequence[str], column_names: Sequence[str]
) -> list[Leak]:
    """Check every column of x by itself; labels are -1 for nodes whose class may not be used."""
    rows = sample_rows(labels, len(names))
    classes = labels[rows]
    totals = np.bincount(classes, minlength=len(names))
    leaks = list[Leak]()
    for start in range(0, x.shape[1], BLOCK):
        block = np.ascontiguousarray(x[:, start : start + BLOCK][rows].T)
        for index, values in enumerate(block, start):
            name = column_names[index] if column_names else f"feature {index}"
            leak = _label_leak(name, _table(values, classes, totals), names)
            if leak is None and _evenly_spaced(x, columns, index):
                leak = Leak(column=name, kind="id")
            leaks += [leak] if leak else []
    return leaks


def leaks_in_table(table: Any, label: str, id: str | None) -> list[Leak]:
    """Check every column of a node table by itself, before encoding."""
    import pandas as pd

    for name in (label, id):
        if name is not None and name not in table.columns:
            known = ", ".join(map(str, table.columns))
            raise ValueError(f"the table must have a column {name!r}; it has: {known}.")
    texts = table[label].astype(object).where(table[label].notna(), "").astype(str).str.strip()
    labels, names = pd.factorize(texts.where(texts != ""))
    labels, names = labels.astype(np.int64), [str(name) for name in names]
    rows = sample_rows(labels, len(names))
    classes = labels[rows]
    leaks = list[Leak]()
    for name, column in table.drop(columns=[label] if id is None else [label, id]).items():
        leak = None
        if names:
            groups = _groups(column.iloc[rows], len(names))
            leak = _label_leak(str(name), _counts(groups, classes, len(names)), names)
        if leak is None and _looks_like_id(column, None if id is None else table[id]):
            leak = Leak(column=str(name), kind="id")
        leaks += [leak] if leak else []
    return leaks


def _label_leak(column: str, counts: Ints, names: Sequence[str]) -> Leak | None:
    """The leak of a column with these class counts per group of equal values, if there is one."""
    label, by_class, copy = label_signal(counts)
    if copy:
        return Leak(column=column, kind="copy", strength=1.0)
    if label >= SUSPICIOUS:
        return Leak(column=column, kind="label", strength=label)
    best = int(by_class.argmax())
    if by_class[best] < SUSPICIOUS:
        return None
    strength = float(by_class[best])
    return Leak(column=column, kind="class", strength=strength, class_name=names[best])


def _table(values: NDArray[Any], classes: Ints, totals: Ints) -> Ints:
    """Class counts per group of equal values, (groups, C); only non-zero values are sorted."""
    filled = np.flatnonzero(values)
    if not len(filled):
        return totals[None, :]
    groups = group_values(values[filled], len(totals))
    counts = _counts(groups, classes[filled], len(totals))
    return np.vstack([counts, totals - counts.sum(0)])


def _counts(groups: Ints, classes: Ints, num_classes: int) -> Ints:
    """Class counts per group, (groups, C)."""
    number = int(groups.max()) + 1
    counts = np.bincount(groups * num_classes + classes, minlength=number * num_classes)
    return counts.reshape(number, num_classes)


def _evenly_spaced(x: Matrix, columns: Columns, index: int) -> bool:
    """Whether a column numbers the nodes: all values distinct and equally spaced."""
    number = len(x)
    span = columns.high[index] - columns.low[index]
    if number < LEAST_ROWS or columns.missing[index] or not span > 0:
        return False
    # mean and variance of such a column are known in advance, so hardly any column is sorted
    middle = (columns.mean[index] - columns.low[index]) / span
    spread = columns.variance[index] / span**2 * 12 * (number - 1) / (number + 1)
    if abs(middle - 0.5) > 1e-3 or abs(spread - 1) > 1e-2:
        return False
    steps = np.diff(np.sort(x[:, index].astype(np.float64))) * (number - 1) / span
    return bool((np.abs(steps - 1) < 0.25).all())


def _groups(column: Any, num_classes: int) -> Ints:
    """Group ids of the values of a table's column; missing values form a group."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column):
        column = column.astype("int64")
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return group_values(column.to_numpy(dtype=np.float64, na_value=np.nan), num_classes)
    texts = column.astype(object).where(column.notna(), "").astype(str)
    return np.asarray(pd.factorize(texts)[0], dtype=np.int64)


def _looks_like_id(column: Any, ids: Any) -> bool:
    """Whether a column holds integers or single words that hardly ever repeat, or the ids."""
    import pandas as pd

    known, types = column.dropna(), pd.api.types
    if types.is_bool_dtype(column) or types.is_datetime64_any_dtype(column):
        return False
    if len(known) < LEAST_ROWS:
        return False
    if ids is not None and bool((known.astype(str) == ids[known.index].astype(str)).all()):
        return True
    numbers = pd.to_numeric(known, errors="coerce")  # cells of a file are text
    if types.is_numeric_dtype(column) or numbers.notna().all():
        possible = (numbers == np.floor(numbers)).all()
    else:  # texts of several words are distinct as well, and may be informative
        known = known.astype(str)
        possible = known.str.contains(r"\s", regex=True).mean() <= 1 - DISTINCT
    return bool(possible and known.nunique() >= DISTINCT * len(known))


class LabelSignal(NamedTuple):
    """How well a column predicts the label, as shares of the error of the largest class."""

    label: float  # strength for all classes, at most 1
    by_class: NDArray[np.float64]  # strength for each class against the rest, (C,)
    copy: bool  # whether values and classes correspond one to one


def sample_rows(labels: Ints, num_classes: int) -> Ints:
    """Labelled rows, at most about MOST_ROWS, including all of the rare classes."""
    most = max(MOST_ROWS // max(num_classes, 1), LEAST_EVIDENCE)
    rng = np.random.default_rng(0)
    sampled = []
    for label in range(num_classes):
        rows = np.flatnonzero(labels == label)
        sampled.append(rows if len(rows) <= most else rng.choice(rows, most, replace=False))
    return np.sort(np.concatenate(sampled)) if sampled else np.empty(0, dtype=np.int64)


def group_values(values: NDArray[Any], num_classes: int) -> Ints:
    """Group id of each value, NaN apart; many distinct values are cut into ranges."""
    distinct, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(distinct) > max(MOST_VALUES, 2 * num_classes):
        ranges = max(min(MOST_VALUES, len(values) // LEAST_IN_RANGE), 1)
        middle = np.cumsum(counts) - counts / 2  # equal values stay together
        of_value = np.minimum((middle * ranges / len(values)).astype(np.int64), ranges - 1)
        of_value[np.isnan(distinct)] = ranges
        group = of_value[group]
    return group.astype(np.int64)


def label_signal(table: Ints) -> LabelSignal:
    """Measure how well groups of equal values predict the label, by counts, (groups, C).

    A node is predicted by the other nodes of its group, so a unique value predicts nothing.
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
    pure = ((full > 0).sum(1) == 1).all() and ((full > 0).sum(0) <= 1).all()
    copy = bool(len(full) == (totals > 0).sum() > 1 and pure)
    if number - totals.max(initial=0) < LEAST_EVIDENCE:
        label, copy = 0.0, False
    return LabelSignal(label=label, by_class=by_class, copy=copy)


def _hits(top: Ints, second: Ints) -> Ints:
    """Nodes of the largest class that the rest of their group predicts correctly."""
    return np.where((top >= 2) & (top - 1 > second), top, 0)


def _gain(hits: int, base: int, number: int) -> float:
    return float((hits - base) / (number - base)) if number > base else 0.0
