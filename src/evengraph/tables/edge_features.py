"""Features of nodes from columns of the edges table: count, mean, sum, recency, count per value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from evengraph.core.stored_types import check_types
from evengraph.tables.cells import (
    Floats,
    Ints,
    canonical_names,
    check_columns,
    column_kind,
    table_name,
    to_numbers,
    to_signs,
)
from evengraph.tables.column_encoders import Category
from evengraph.tables.date_forms import check_form, date_form, seconds_of
from evengraph.tables.notes import NoteKind, Notes
from evengraph.tables.number_encoders import UselessColumnError

MAX_VALUES = 10
"""Values of a column that are counted apart, the most common."""

MAX_FEATURES = 50
DAY = 86_400.0
Kind = Literal["number", "boolean", "date", "time", "category"]


@dataclass(frozen=True, kw_only=True)
class EdgeColumn:
    """A column of the edges table, and how it is aggregated to nodes.

    Numbers give mean and sum over a node's edges, booleans the mean, times how long before the
    newest edge of the table its newest one is (dates: in days), categories a count per value.
    """

    column: str
    kind: Kind
    values: tuple[str, ...] = ()
    form: str = ""  # of dates that are not as in ISO 8601

    def __post_init__(self) -> None:
        check_form(self.form)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the aggregates."""
        if self.kind == "category":
            return tuple(f"count({self.column}={value})" for value in self.values)
        words = {"number": ("mean", "sum"), "boolean": ("mean",)}.get(self.kind, ("recency",))
        return tuple(f"{word}({self.column})" for word in words)

    def aggregate(
        self, values: Any, table: str, rows: Ints, nodes: Ints, size: int
    ) -> Iterator[Floats]:
        """The aggregates over rows, each of which counts for one node; (size,) each."""
        if self.kind == "category":
            names = canonical_names(values)[rows].astype(str)
            for value in self.values:
                yield _counts(nodes[names == value], size)
            return
        numbers = self.numbers(values, table)
        if self.kind in ("date", "time"):
            yield _recency(numbers, rows, nodes, size)
            return
        known = ~np.isnan(numbers[rows])
        sums = np.bincount(nodes[known], weights=numbers[rows][known], minlength=size)
        counts = _counts(nodes[known], size)
        yield np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        if self.kind == "number":
            yield np.asarray(sums, dtype=np.float64)

    def numbers(self, values: Any, table: str) -> Floats:
        """The cells as numbers, NaN where empty."""
        if self.kind == "boolean":
            return to_signs(values, table)
        if self.kind == "date":
            return seconds_of(values, table, self.form) / DAY
        return to_numbers(values, table)


@dataclass(frozen=True, kw_only=True)
class EdgeFeatures:
    """Makes columns of the nodes table from columns of the edges table, also for new tables.

    Args:
        columns: What to aggregate, beside the count of a node's edges.
        directed: Aggregate edges from a node apart from edges to it.
    """

    columns: tuple[EdgeColumn, ...] = ()
    directed: bool = False

    @classmethod
    def fit(
        cls,
        edges: Any,
        columns: Sequence[str],
        *,
        type: str | None = None,
        time: str | None = None,
        directed: bool = False,
        date_order: str | None = None,
        notes: Notes,
    ) -> Self | None:
        """Find out how to aggregate columns of the edges table; None if there is nothing to.

        Args:
            edges: The edges table.
            columns: Its columns, those that name the ends excepted.
            type: The column with the types of edges, if there is one.
            time: The column with their times.
            directed: Keep out- and in-edges apart.
            date_order: That of `from_frames`.
            notes: Says what is made, and what was left out.
        """
        table, features = table_name(edges, "edges"), cls(directed=directed)
        for column in columns:
            try:
                item = _fit(edges[column], table, column == type, column == time, date_order)
                larger = replace(features, columns=(*features.columns, item))
                if len(larger.names) > MAX_FEATURES:
                    raise UselessColumnError(f"edges give at most {MAX_FEATURES} features of nodes")
                features = larger
            except ValueError as reason:
                text = f"Left out column {column!r} of {table}: {str(reason).rstrip('.')}."
                notes.add(NoteKind.FEATURES, text)
        if not features.columns and not directed:
            return None
        notes.add(NoteKind.FEATURES, features._describe(table))
        return features

    def _describe(self, table: str) -> str:
        """Such as `4 features of nodes from edges.csv: count, mean and sum of amount.`"""
        words = {"number": "mean and sum of", "boolean": "mean of", "category": "count per"}
        parts = [f"{words.get(item.kind, 'recency of')} {item.column}" for item in self.columns]
        apart = ", out- and in-edges apart" if self.directed else ""
        listed = ", ".join(["count", *parts])
        return f"{len(self.names)} features of nodes from {table}: {listed}{apart}."

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the new columns."""
        names = ["count", *(name for item in self.columns for name in item.names)]
        ways = ("out.", "in.") if self.directed else ("",)
        return tuple(f"edges.{way}{name}" for way in ways for name in names)

    def compute(self, edges: Any, source: Ints, target: Ints, size: int) -> dict[str, Floats]:
        """The new columns, (N,) each; rows from a node to itself do not count.

        Shapes:
            source, target: (M,), row numbers of nodes
        """
        check_columns(edges, [item.column for item in self.columns], "edges")
        rows = np.flatnonzero(source != target)
        ends = [source[rows], target[rows]]
        if not self.directed:
            rows, ends = np.tile(rows, 2), [np.concatenate(ends)]
        results = (values for nodes in ends for values in self._aggregate(edges, rows, nodes, size))
        return dict(zip(self.names, results, strict=True))

    def _aggregate(self, edges: Any, rows: Ints, nodes: Ints, size: int) -> Iterator[Floats]:
        """The count of rows per node, then the aggregates of each column."""
        table = table_name(edges, "edges")
        yield _counts(nodes, size)
        for item in self.columns:
            yield from item.aggregate(edges[item.column], table, rows, nodes, size)

    def as_dict(self) -> dict[str, Any]:
        """The object as a dict that JSON can hold."""
        columns = [asdict(item) | {"values": list(item.values)} for item in self.columns]
        return {"columns": columns, "directed": self.directed}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """The object from the dict of `as_dict`."""
        columns = (EdgeColumn(**{**c, "values": tuple(c["values"])}) for c in stored["columns"])
        edges = cls(columns=tuple(columns), directed=bool(stored["directed"]))
        for column in edges.columns:
            check_types(column)
        return edges


def _counts(nodes: Ints, size: int) -> Floats:
    return np.bincount(nodes, minlength=size).astype(np.float64)


def _recency(times: Floats, rows: Ints, nodes: Ints, size: int) -> Floats:
    """How long before the newest time each node's newest is; the oldest for a node without any."""
    if np.isnan(times).all():
        return np.zeros(size)
    newest, oldest = np.nanmax(times), np.nanmin(times)
    last = np.full(size, oldest)
    known = ~np.isnan(times[rows])
    np.maximum.at(last, nodes[known], times[rows][known])
    return np.asarray(newest - last)


def _fit(
    values: Any, table: str, is_type: bool, is_time: bool, date_order: str | None
) -> EdgeColumn:
    form = None if is_type else date_form(values, table, date_order)
    kind: Any = "text" if is_type else "date" if form else column_kind(values, table)
    if is_time and kind == "number":
        kind = "time"
    if kind == "empty":
        raise UselessColumnError("it is empty")
    if kind == "text":
        category = Category.fit(values, table)
        names = canonical_names(values).astype(str)
        common = sorted(category.common, key=lambda name: -int((names == name).sum()))
        if len(common) < 2:
            raise UselessColumnError("it has no two common values")
        return EdgeColumn(
            column=str(values.name), kind="category", values=tuple(sorted(common[:MAX_VALUES]))
        )
    item = EdgeColumn(column=str(values.name), kind=kind, form=form or "")
    numbers = item.numbers(values, table)
    known = numbers[~np.isnan(numbers)]
    if not len(known) or (known == known[0]).all():
        raise UselessColumnError("it is constant")
    return item
