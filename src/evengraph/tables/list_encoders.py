"""Encoders of lists: items as 0/1 features, vectors (embeddings) as numbers.

Written by hand, though scikit-learn is as fast: two million items in 100,000 lists take
MultiLabelBinarizer 0.42 s, CountVectorizer 0.73 s and `Items.fit` 0.56 s. MultiLabelBinarizer has
no rule for rare items, and of all that either does only the names of the items would be left:
splitting cells, spelling 3 and 3.0 alike and encoding from plain JSON stay ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from evengraph.core.arrays import sorted_unique
from evengraph.core.errors import ArgumentError
from evengraph.tables.cells import (
    LISTS,
    Floats,
    Ints,
    distinct_names,
    import_pandas,
    is_empty,
    location,
    text_without,
)
from evengraph.tables.entries import Entries
from evengraph.tables.number_encoders import MAX_FEATURE, UselessColumnError

MIN_NODES, MIN_NODES_OF_FEW, FEW_ITEMS = 5, 2, 10
"""How many nodes must have an item for it to be saved by its name, as for categories."""

MAX_BYTES = 2**30
"""Bound of the 0/1 features of one column, which methods hold as a dense float32 matrix; beyond it
only the most frequent items are used."""

LIST_FILE = "features.json"
"""The column of lists that come from a file {node: [items]} beside the tables."""
LARGEST = 1e100  # in a vector, so that sums of squares stay finite


class Lists(NamedTuple):
    """The items of a column of lists, one after another: row of each, (I,), and the items."""

    rows: Ints
    items: Any


@dataclass(frozen=True, kw_only=True)
class Items:
    """Lists of items: 1 where a node has an item, 0 elsewhere; unknown items are ignored.

    Args:
        column: The column.
        items: Names of the items, one per feature.
        separator: What separates items in a cell; empty for JSON and for lists as objects.
        nodes: How many nodes had a list at fitting.
        rare: How many items were left out because too few nodes have them.
        beyond: How many more were left out to bound the memory.
    """

    column: str
    items: tuple[str, ...]
    separator: str
    nodes: int
    rare: int
    beyond: int

    @classmethod
    def fit(cls, values: Any, table: str) -> Self:
        """Find the items that enough nodes have."""
        separator = _separator(values)
        return cls.fit_lists(values, separator, parse_lists(values, table, separator))

    @classmethod
    def fit_lists(cls, values: Any, separator: str, lists: Lists) -> Self:
        """Find the items that enough nodes have among the lists of a column."""
        rows, codes, names = _pairs(lists)
        counts = np.bincount(codes, minlength=len(names))
        distinct = int((counts > 0).sum())
        least = MIN_NODES_OF_FEW if distinct <= FEW_ITEMS else MIN_NODES
        common = np.flatnonzero(counts >= least)
        varying = common[counts[common] < len(values)]
        if not len(varying):
            reason = "every node has the same items" if len(common) else ""
            raise UselessColumnError(
                reason or f"none of its {distinct} items occurs on {least} nodes"
            )
        most = max(1, MAX_BYTES // (4 * len(values)))
        frequent = varying[np.argsort(-counts[varying], kind="stable")][:most]
        return cls(
            column=str(values.name),
            items=tuple(sorted(str(names[index]) for index in frequent)),
            separator=separator,
            nodes=len(sorted_unique(rows)),
            rare=distinct - len(common),
            beyond=len(varying) - len(frequent),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"{self.column}={item}" for item in self.items)

    def transform(self, values: Any, table: str) -> Entries:
        """The features of every row, (N, len(items))."""
        rows, codes, names = _pairs(parse_lists(values, table, self.separator))
        index = import_pandas().Index(self.items, dtype=object).get_indexer(names)[codes]
        known = index >= 0
        return Entries((len(values), len(self.items)), rows[known], index[known])

    def describe(self) -> str:
        """What became of the column, in one sentence."""
        left_out = [f"rare items left out: {self.rare:,}"] if self.rare else []
        if self.beyond:
            left_out.append(f"less frequent items left out to save memory: {self.beyond:,}")
        title = self.column if self.column == LIST_FILE else f"Column {self.column!r}"
        items = f"{title}: {len(self.items):,} items of {self.nodes:,} nodes as 0/1 features"
        return "; ".join([items, *left_out]) + "."


@dataclass(frozen=True, kw_only=True)
class Vector:
    """Vectors of one length, such as embeddings: centred, then divided by one number.

    Dimensions keep their proportions, which carry meaning; an empty cell is the mean.
    """

    column: str
    mean: tuple[float, ...]
    scale: float

    def __post_init__(self) -> None:
        if self.scale == 0:
            raise ValueError("scale of an encoder must not be 0")

    @classmethod
    def fit(cls, values: Any, table: str) -> Self:
        """Compute the mean vector and the standard deviation of all dimensions together."""
        vectors = _vectors(values, table, None)
        vectors = vectors[~np.isnan(vectors).any(axis=1)]
        if not np.abs(vectors).max(initial=0) <= LARGEST:
            raise ValueError(
                f"{location(table, values.name)} holds a vector with a number above {LARGEST:g}."
            )
        mean = vectors.mean(axis=0)
        scale = float(np.sqrt(((vectors - mean) ** 2).mean()))
        if not scale:
            raise UselessColumnError("it is constant")
        return cls(column=str(values.name), mean=tuple(map(float, mean)), scale=scale)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"{self.column}[{index}]" for index in range(len(self.mean)))

    def transform(self, values: Any, table: str) -> Floats:
        """The features of every row, (N, len(mean))."""
        scaled = (_vectors(values, table, len(self.mean)) - np.array(self.mean)) / self.scale
        bounded: Floats = np.clip(np.nan_to_num(scaled), -MAX_FEATURE, MAX_FEATURE)
        return bounded

    def describe(self) -> str:
        """What became of the column, in one sentence."""
        title = self.column if self.column == LIST_FILE else f"Column {self.column!r}"
        return f"{title}: vectors of {len(self.mean):,} numbers, scaled together."


def fit_list(values: Any, table: str) -> Items | Vector:
    """Fit an encoder to a column of lists: vectors if they cannot be lists of items."""
    separator = _separator(values)
    lists = parse_lists(values, table, separator)
    if _are_vectors(lists):
        return Vector.fit(values, table)
    return Items.fit_lists(values, separator, lists)


def without_item(values: Any, table: str, item: str) -> Any:
    """A column of lists without one item."""
    lists = parse_lists(values, table, _separator(values))
    codes, names = distinct_names(lists.items)
    if item not in names:
        raise ValueError(f"{location(table, values.name)}: no list holds the item {item!r}.")
    kept = np.append(names != item, True)[codes]
    items = lists.items[kept].tolist()
    ends = np.searchsorted(lists.rows[kept], np.arange(len(values) + 1))
    cells = [items[start:stop] for start, stop in pairwise(ends)]
    return import_pandas().Series(cells, index=values.index, name=values.name, dtype=object)


def describe_lists(encoders: Iterable[object]) -> list[str]:
    """One sentence for each column of lists."""
    return [encoder.describe() for encoder in encoders if isinstance(encoder, Items | Vector)]


def parse_lists(values: Any, table: str, separator: str) -> Lists:
    """The items of every cell; a cell that is no list raises an error, unless it is one item."""
    pandas = import_pandas()
    rows = np.flatnonzero(~is_empty(values))
    text = text_without(values)
    if text is not None and separator:
        lengths, items = text.split(separator)
        return Lists(np.repeat(rows, lengths), items.rename(values.name))
    cells, lists = values.iloc[rows], list[Any]()
    if text is None:  # a cell may also be a single item
        lists = [cell if isinstance(cell, LISTS) else [cell] for cell in cells.to_numpy(object)]
    else:
        lists = text.lists or _parse_json(cells, rows, table)
    lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    if len(lists) and all(isinstance(cell, np.ndarray) for cell in lists):
        items = np.concatenate(lists)
    else:
        items = list(chain.from_iterable(lists))
    column = pandas.Series(items, dtype=None if len(items) else object, name=values.name)
    column.attrs["file"] = table  # for errors
    return Lists(np.repeat(rows, lengths), column)


def _parse_json(cells: Any, rows: Ints, table: str) -> list[Any]:
    from evengraph.tables.text_column import parse_lists as parse

    lists = parse(cells)
    if lists is not None:
        return lists
    for row, cell in zip(rows, cells, strict=True):  # one by one, to find the first error
        if parse([cell]) is None:
            where = location(table, cells.name, row)
            shown = cell if len(cell) <= 40 else f"{cell[:37]}..."
            raise ValueError(f"{where} holds {shown!r}; expected a list such as [1, 2].")
    raise ValueError(f"{location(table, cells.name)} holds lists that are not JSON.")


def _separator(values: Any) -> str:
    text = text_without(values)
    return "" if text is None else text.list_separator() or ""


def _pairs(lists: Lists) -> tuple[Ints, Ints, NDArray[Any]]:
    """Row and item of every distinct pair, (P,) each, and the names of the items."""
    codes, names = distinct_names(lists.items)
    named = np.append(names != "", False)[codes]  # not for blanks, nor for -1: missing
    count = max(len(names), 1)
    pairs = sorted_unique(lists.rows[named] * count + codes[named])
    return pairs // count, pairs % count, names


def _are_vectors(lists: Lists) -> bool:
    """Whether lists hold numbers that are not whole or negative, or of one length with repeats.

    A list of items such as ids holds whole numbers and each of them once.
    """
    if lists.items.dtype.kind not in "iuf" or not len(lists.items):
        return False
    numbers = lists.items.to_numpy(np.float64)
    finite = numbers[np.isfinite(numbers)]
    if (finite < 0).any() or (finite % 1 != 0).any():
        return True
    _, lengths = np.unique(lists.rows, return_counts=True)
    order = np.lexsort((numbers, lists.rows))
    with np.errstate(invalid="ignore"):  # infinity minus itself is no repeat
        repeated = (np.diff(numbers[order]) == 0) & (np.diff(lists.rows[order]) == 0)
    return bool(lengths[0] > 1 and (lengths == lengths[0]).all() and repeated.any())


def _vectors(values: Any, table: str, size: int | None) -> Floats:
    """Vectors of every row, NaN where the cell is empty, (N, D)."""
    lists = parse_lists(values, table, "")
    owners, lengths = np.unique(lists.rows, return_counts=True)
    expected = size or int(np.bincount(lengths).argmax())
    numbers = np.asarray(import_pandas().to_numeric(lists.items, errors="coerce"), np.float64)
    wrong = lists.rows[~np.isfinite(numbers)]
    if len(wrong):
        raise ValueError(
            f"{location(table, values.name, int(wrong[0]))} holds a list in which an item is not a "
            "finite number; other rows hold vectors."
        )
    odd = np.flatnonzero(lengths != expected)
    if len(odd):
        raise ArgumentError(
            f"{location(table, values.name, int(owners[odd[0]]))} holds {lengths[odd[0]]} numbers, "
            f"expected {expected}: vectors must have one length; fix the cell or drop the column.",
            argument="drop",
            value=str(values.name),
        )
    vectors = np.full((len(values), expected), np.nan)
    vectors[owners] = numbers.reshape(-1, expected)
    return vectors
