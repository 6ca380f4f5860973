"""Edges: look up ends, read weights, list both directions, make relations and features."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from evengraph.core.errors import short
from evengraph.core.untrusted import sorted_unique
from evengraph.ops.links import Link
from evengraph.tables.cells import (
    Bools,
    Floats,
    Ints,
    canonical_name,
    canonical_names,
    check_columns,
    check_form,
    column_kind,
    date_form,
    distinct_names,
    is_empty,
    is_id_name,
    is_unnamed,
    location,
    plural,
    seconds_of,
    table_name,
    to_numbers,
    to_signs,
)
from evengraph.tables.encoders import MIN_FREQUENCY_OF_FEW, Category, check_varies
from evengraph.tables.notes import NoteKind, Notes
from evengraph.tables.text import UselessColumnError

if TYPE_CHECKING:
    from evengraph.tables.columns import TableColumns

MAX_RELATIONS = 10  # the most common types; edges of others only count as edges


class Relations(NamedTuple):
    """What a graph holds about its relations."""

    names: tuple[str, ...]
    arcs: Tensor  # (3, R), relation, node and neighbour
    weight: Tensor | None  # float32, (R,)


def common_types(values: Any, notes: Notes) -> tuple[str, ...]:
    """The types of edges that become relations, sorted."""
    names = canonical_names(values[~is_empty(values)])
    distinct, counts = np.unique(names.astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MAX_RELATIONS]
    types = tuple(str(distinct[i]) for i in sorted(order) if counts[i] >= MIN_FREQUENCY_OF_FEW)
    if len(types) < 2:
        notes.add(NoteKind.RELATIONS, "No two types of edges are common: there are no relations.")
    elif len(types) < len(distinct):
        text = f"Edges of the {len(types)} most common of {len(distinct)} types are relations."
        notes.add(NoteKind.RELATIONS, text)
    return types


def make_relations(rows: EdgeRows, num_nodes: int, columns: TableColumns) -> Relations | None:
    """Edges as relations: one per type, and one per direction; None if that makes only one."""
    edges, source, target, weight = rows
    codes, directed, types = np.zeros(len(source), np.int64), columns.directed, columns.relations
    if types:
        index = pd.Index(types, dtype=object)
        codes = np.asarray(index.get_indexer(canonical_names(edges[columns.type])), np.int64)
    names = list(types or [""])
    if directed:
        names = [" ".join(filter(None, (name, way))) for name in names for way in ("out", "in")]
    if len(names) < 2:
        return None
    kept = (codes >= 0) & (source != target)
    codes, source, target = codes[kept], source[kept], target[kept]
    values = np.ones(len(codes)) if weight is None else weight[kept]
    forward = 2 * codes if directed else codes
    arcs = np.stack([np.concatenate(pair) for pair in (
        (forward, forward + directed), (source, target), (target, source)
    )])  # fmt: skip
    keys = (arcs[0] * num_nodes + arcs[1]) * num_nodes + arcs[2]
    keys, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    sums = np.bincount(inverse, weights=np.tile(values, 2), minlength=len(keys))
    weights = None if weight is None else torch.from_numpy(sums).float()
    return Relations(tuple(names), torch.from_numpy(arcs[:, first]), weights)


_WHOLE_NUMBER = re.compile(r"(-?\d+)\.0+")


class Links(NamedTuple):
    """Edges in both directions, with weights and relations if there are any."""

    edge_index: Tensor  # (2, E), sorted
    edge_weight: Tensor | None = None  # float32, (E,)
    relations: Relations | None = None


class EdgeRows(NamedTuple):
    """The rows of an edges table that are edges, with the row numbers of their ends, (M,)."""

    edges: Any
    source: Ints
    target: Ints
    weight: Floats | None


class UnknownNodeError(ValueError):
    """Edges name an id that no node has: `node` is the first, `num_edges` how many edges do."""

    def __init__(self, message: str, *, node: str, num_edges: int) -> None:
        super().__init__(message)
        self.node, self.num_edges = node, num_edges


def id_index(values: Any, table: str) -> Any:
    """A pandas Index of the canonical ids; a missing or repeated id raises an error."""
    empty = is_empty(values)
    if empty.any():
        raise ValueError(
            f"{location(table, values.name, int(empty.argmax()))} is empty; every node needs an id "
            f"(empty ids: {int(empty.sum())})."
        )
    ids = pd.Index(canonical_names(values), dtype=object)
    repeated = ids.duplicated()
    if repeated.any():
        row = int(repeated.argmax())
        first = int(ids.get_indexer_for([ids[row]])[0])
        raise ValueError(
            f"{location(table, values.name, row)} repeats the id {short(ids[row])} of row "
            f"{first + 1}; ids must be unique (repeated ids: {int(repeated.sum())})."
        )
    return ids


def edge_rows(sources: Any, targets: Any, ids: Any, table: str) -> tuple[Ints, Ints]:
    """Row numbers of both ends of every edge, (M,) each; unknown ids raise an error."""
    source, target = node_rows(sources, ids, table), node_rows(targets, ids, table)
    unknown = (source < 0) | (target < 0)
    if unknown.any():
        row = int(unknown.argmax())
        end = sources if source[row] < 0 else targets
        node, count = canonical_name(end.iloc[row]), int(unknown.sum())
        hint = "; is the id column the right one?" if unknown.all() else "."
        raise UnknownNodeError(
            f"{location(table, end.name, row)} names {short(node)}, which is not the id of a node; "
            f"{count} of {len(unknown)} edges have such an end{hint}",
            node=node,
            num_edges=count,
        )
    return source, target


def node_rows(values: Any, ids: Any, table: str) -> Ints:
    """The row number of the node that each cell names, -1 for an unknown one, (M,)."""
    codes, names = distinct_names(values)
    blank = np.append(names == "", True)  # code -1, missing, reads the last
    if blank[codes].any():
        row = int(blank[codes].argmax())
        raise ValueError(f"{location(table, values.name, row)} is empty; an edge needs both ends.")
    rows = np.array(ids.get_indexer(names), dtype=np.int64)
    unknown = np.flatnonzero(rows < 0)
    # pandas turns 3 into "3.0" in a column that also holds text
    whole = [_WHOLE_NUMBER.fullmatch(name) for name in names[unknown]]
    rows[unknown] = ids.get_indexer([None if match is None else match[1] for match in whole])
    return rows[codes] if len(rows) else rows


def read_edge_rows(edges: Any, ids: Any, columns: TableColumns, notes: Notes) -> EdgeRows:
    """Look up the ends of every edge and read its weight; rows of weight 0 are dropped."""
    table = table_name(edges, "edges")
    source, target = edge_rows(edges[columns.source], edges[columns.target], ids, table)
    if columns.weight is None:
        return EdgeRows(edges, source, target, None)
    weight, positive = read_weights(edges[columns.weight], table, notes)
    if not positive.all():
        edges = edges[positive].reset_index(drop=True)  # pandas keeps its attrs
    return EdgeRows(edges, source[positive], target[positive], weight)


def undirected_edges(
    source: Ints, target: Ints, num_nodes: int, notes: Notes, weights: Floats | None = None
) -> Links:
    """Drop self-loops, merge repeated edges and add the reverse of each; row numbers, (M,) each.

    Weights of repeated edges are summed; where both directions are given, the larger sum counts.
    """
    between = source != target
    if loops := len(source) - int(between.sum()):
        notes.add(NoteKind.DROPPED_EDGES, f"Dropped {plural(loops, 'self-loop')}.")
    source, target = source[between], target[between]
    keys = source * num_nodes + target
    directed = sorted_unique(keys)
    if repeated := len(source) - len(directed):
        summed = "" if weights is None else ", their weights summed"
        notes.add(NoteKind.MERGED_EDGES, f"Merged {plural(repeated, 'repeated edge')}{summed}.")
    ahead, back = directed, directed % num_nodes * num_nodes + directed // num_nodes
    both = sorted_unique(np.concatenate([ahead, back]))
    if mutual := (2 * len(directed) - len(both)) // 2:
        text = f"Merged {plural(mutual, 'edge')} given in both directions."
        notes.add(NoteKind.MERGED_EDGES, text)
    if mutual * 2 < len(directed):
        notes.add(NoteKind.UNDIRECTED, "Edges are treated as undirected.")
    edge_index = torch.from_numpy(np.stack([both // num_nodes, both % num_nodes]))
    if weights is None:
        return Links(edge_index)
    sums = np.bincount(np.searchsorted(directed, keys), weights[between], len(directed))
    largest = np.zeros(len(both))
    for direction in (ahead, back):
        np.maximum.at(largest, np.searchsorted(both, direction), sums)
    return Links(edge_index, torch.from_numpy(largest).float())


def link_edges(links: Sequence[Link]) -> Links:
    """A few edges among the rows of every value of each link."""
    parts = zip(*(link.edges() for link in links), strict=True)
    source, target, weight = map(np.concatenate, parts)
    return undirected_edges(source, target, links[0].size, Notes(), weight)


def read_weights(weights: Any, table: str, notes: Notes) -> tuple[Floats, Bools]:
    """The weights above 0, (P,), and which rows have one, (M,); wrong ones raise an error."""
    numbers = to_numbers(weights, table)
    wrong = ~(numbers >= 0)
    if wrong.any():
        row = int(wrong.argmax())
        value = "empty" if np.isnan(numbers[row]) else f"{numbers[row]:g}"
        raise ValueError(
            f"{location(table, weights.name, row)} is {value}; a weight must be a number from 0 "
            f"on, leave out other rows (there are {int(wrong.sum())})."
        )
    positive = numbers > 0
    if zero := len(numbers) - int(positive.sum()):
        notes.add(NoteKind.DROPPED_EDGES, f"Dropped {plural(zero, 'edge')}: weight 0.")
    return numbers[positive], positive


WINDOWS = (7, 30)  # days
MAX_VALUES, MAX_FEATURES = 10, 50  # values of a column that are counted apart, the most common
Kind = Literal["number", "boolean", "date", "time", "category"]


@dataclass(frozen=True, kw_only=True)
class EdgeColumn:
    """A column of the edges table, and how it is aggregated to nodes.

    Numbers give mean and sum over a node's edges, booleans the mean, times how long before the
    newest edge of the table its newest one is (dates: in days), categories a count per value. Dates
    that are the times of edges also give the numbers of edges in the last days.
    """

    column: str
    kind: Kind
    values: tuple[str, ...] = ()
    form: str = ""  # of dates that are not as in ISO 8601
    windows: tuple[int, ...] = ()  # days before the newest edge in which edges are counted

    def __post_init__(self) -> None:
        check_form(self.form)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the aggregates."""
        if self.kind == "category":
            return tuple(f"count({self.column}={value})" for value in self.values)
        words = {"number": ("mean", "sum"), "boolean": ("mean",)}.get(self.kind, ("recency",))
        counts = (f"{days} days({self.column})" for days in self.windows)
        return (*(f"{word}({self.column})" for word in words), *counts)

    def _aggregate(
        self, values: Any, table: str, rows: Ints, nodes: Ints, size: int
    ) -> Iterator[Floats]:
        """The aggregates over rows, each of which counts for one node; (size,) each."""
        if self.kind == "category":
            names = canonical_names(values)[rows].astype(str)
            for value in self.values:
                yield _counts(nodes[names == value], size)
            return
        numbers = self.numbers(values, table)
        known = ~np.isnan(numbers[rows])
        if self.kind in ("date", "time"):
            # how long before the newest time a node's newest is; the oldest for one without any
            if np.isnan(numbers).all():
                yield from (np.zeros(size) for _ in self.names)
                return
            last = np.full(size, np.nanmin(numbers))
            np.maximum.at(last, nodes[known], numbers[rows][known])
            newest = np.nanmax(numbers)
            yield np.asarray(newest - last)
            for days in self.windows:
                yield _counts(nodes[known][numbers[rows][known] > newest - days], size)
            return
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
            return seconds_of(values, table, self.form) / 86_400.0  # in days
        return to_numbers(values, table)


@dataclass(frozen=True, kw_only=True)
class EdgeFeatures:
    """Makes columns of the nodes table from columns of the edges table, also for new tables."""

    columns: tuple[EdgeColumn, ...] = ()  # to aggregate, beside the count of a node's edges
    directed: bool = False  # aggregate edges from a node apart from edges to it

    @classmethod
    def fit(cls, edges: Any, columns: TableColumns, notes: Notes) -> Self | None:
        """Find out how to aggregate columns of the edges table; None if there is nothing to."""
        table, features = table_name(edges, "edges"), cls(directed=columns.directed)
        for column in edges.columns:
            if column in (columns.source, columns.target) or is_unnamed(column):
                continue
            try:
                item = _fit_column(edges[column], table, columns)
                larger = replace(features, columns=(*features.columns, item))
                if len(larger.names) > MAX_FEATURES:
                    raise UselessColumnError(f"edges give at most {MAX_FEATURES} features of nodes")
                features = larger
            except ValueError as reason:
                text = f"Left out column {column!r} of {table}: {str(reason).rstrip('.')}."
                notes.add(NoteKind.FEATURES, text)
        if not features.columns and not features.directed:
            return None
        words = {"number": "mean and sum of", "boolean": "mean of", "category": "count per"}
        parts = [f"{words.get(item.kind, 'recency of')} {item.column}" for item in features.columns]
        listed = ", ".join(["count", *parts])
        text = f"{len(features.names)} features of nodes from {table}: {listed}"
        apart = ", out- and in-edges apart" if features.directed else ""
        notes.add(NoteKind.FEATURES, f"{text}{apart}.")
        return features

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the new columns."""
        names = ["count", *(name for item in self.columns for name in item.names)]
        ways = ("out.", "in.") if self.directed else ("",)
        return tuple(f"edges.{way}{name}" for way in ways for name in names)

    def compute(self, edges: Any, source: Ints, target: Ints, size: int) -> dict[str, Floats]:
        """The new columns, (N,) each; rows from a node to itself do not count."""
        check_columns(edges, [item.column for item in self.columns], "edges")
        rows = np.flatnonzero(source != target)
        ends = [source[rows], target[rows]]
        if not self.directed:
            rows, ends = np.tile(rows, 2), [np.concatenate(ends)]
        table, results = table_name(edges, "edges"), list[Floats]()
        for nodes in ends:
            results.append(_counts(nodes, size))
            for item in self.columns:
                results += item._aggregate(edges[item.column], table, rows, nodes, size)
        return dict(zip(self.names, results, strict=True))


def _counts(nodes: Ints, size: int) -> Floats:
    return np.bincount(nodes, minlength=size).astype(np.float64)


def _fit_column(values: Any, table: str, columns: TableColumns) -> EdgeColumn:
    is_type = values.name == columns.type
    form = None if is_type else date_form(values, table, columns.date_order)
    kind: Any = "text" if is_type else "date" if form else column_kind(values, table)
    if values.name == columns.edge_time and kind == "number":
        kind = "time"
    if kind == "empty":
        raise UselessColumnError("it is empty")
    if kind == "number" and is_id_name(str(values.name)) and values.is_unique:
        raise UselessColumnError("all its values are distinct, like ids")
    if kind == "text":
        category = Category.fit(values, table)
        names = canonical_names(values).astype(str)
        common = sorted(category.common, key=lambda name: -int((names == name).sum()))
        if len(common) < 2:
            raise UselessColumnError("it has no two common values")
        shown = tuple(sorted(common[:MAX_VALUES]))
        return EdgeColumn(column=str(values.name), kind="category", values=shown)
    item = EdgeColumn(column=str(values.name), kind=kind, form=form or "")
    numbers = item.numbers(values, table)
    known = numbers[~np.isnan(numbers)]
    check_varies(known)
    if kind == "date" and values.name == columns.edge_time:
        item = replace(item, windows=tuple(days for days in WINDOWS if days < np.ptp(known)))
    return item
