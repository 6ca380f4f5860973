"""Edges: look up their ends by id, read their weights, list each in both directions."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from evengraph.core.arrays import sorted_unique
from evengraph.core.errors import short
from evengraph.tables.cells import (
    Bools,
    Floats,
    Ints,
    canonical_name,
    canonical_names,
    distinct_names,
    import_pandas,
    is_empty,
    location,
    plural,
    table_name,
    to_numbers,
)
from evengraph.tables.notes import NoteKind, Notes
from evengraph.tables.relations import Relations

_WHOLE_NUMBER = re.compile(r"(-?\d+)\.0+")


class Links(NamedTuple):
    """Edges in both directions, with weights and relations if there are any.

    Shapes:
        edge_index: int64, (2, E), sorted; edge_weight: float32, (E,)
    """

    edge_index: Tensor
    edge_weight: Tensor | None = None
    relations: Relations | None = None


class EdgeRows(NamedTuple):
    """The rows of an edges table that are edges, with the row numbers of their ends, (M,)."""

    edges: Any
    source: Ints
    target: Ints
    weight: Floats | None


class UnknownNodeError(ValueError):
    """Edges name an id that no node has.

    Args:
        message: What is wrong.
        node: The first such id.
        num_edges: Number of edges with such an end.
    """

    def __init__(self, message: str, *, node: str, num_edges: int) -> None:
        super().__init__(message)
        self.node = node
        self.num_edges = num_edges


def id_index(values: Any, table: str) -> Any:
    """A pandas Index of the canonical ids; a missing or repeated id raises an error."""
    empty = is_empty(values)
    if empty.any():
        raise ValueError(
            f"{location(table, values.name, int(empty.argmax()))} is empty; every node needs an id "
            f"(empty ids: {int(empty.sum())})."
        )
    ids = import_pandas().Index(canonical_names(values), dtype=object)
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
    source, target = _node_rows(sources, ids, table), _node_rows(targets, ids, table)
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


def are_row_numbers(values: Any, num_nodes: int) -> bool:
    """Whether every cell is a row number of the nodes table, counted from 0."""
    names = {canonical_name(value) for value in import_pandas().unique(values.dropna())}
    return all(name.isdecimal() and int(name) < num_nodes for name in names)


def _node_rows(values: Any, ids: Any, table: str) -> Ints:
    """Row numbers of the nodes that a column names, -1 for unknown ids, (M,)."""
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


def read_edge_rows(edges: Any, ids: Any, columns: Any, notes: Notes) -> EdgeRows:
    """Look up the ends of every edge and read its weight; rows of weight 0 are dropped."""
    table = table_name(edges, "edges")
    source, target = edge_rows(edges[columns.source], edges[columns.target], ids, table)
    if columns.weight is None:
        return EdgeRows(edges, source, target, None)
    weight = read_weights(edges[columns.weight], table)
    positive = positive_weights(weight, notes)
    if not positive.all():
        attributes, edges = edges.attrs, edges[positive].reset_index(drop=True)
        edges.attrs = attributes
    return EdgeRows(edges, source[positive], target[positive], weight[positive])


def undirected_edges(
    source: Ints, target: Ints, num_nodes: int, notes: Notes, weights: Floats | None = None
) -> Links:
    """Drop self-loops, merge repeated edges and add the reverse of each.

    Weights of repeated edges are summed; where both directions are given, the larger sum counts.

    Shapes:
        source, target, weights: (M,), row numbers of nodes
    """
    between = source != target
    loops = len(source) - int(between.sum())
    if loops:
        notes.add(NoteKind.DROPPED_EDGES, f"Dropped {plural(loops, 'self-loop')}.")
    source, target = source[between], target[between]
    keys = source * num_nodes + target
    directed = sorted_unique(keys)
    repeated = len(source) - len(directed)
    if repeated:
        summed = "" if weights is None else ", their weights summed"
        notes.add(NoteKind.MERGED_EDGES, f"Merged {plural(repeated, 'repeated edge')}{summed}.")
    ahead, back = directed, directed % num_nodes * num_nodes + directed // num_nodes
    both = sorted_unique(np.concatenate([ahead, back]))
    mutual = (2 * len(directed) - len(both)) // 2
    if mutual:
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


def read_weights(weights: Any, table: str) -> Floats:
    """Weights of all rows, (M,); empty, negative and infinite ones raise an error."""
    numbers = to_numbers(weights, table)
    wrong = ~(numbers >= 0)
    if wrong.any():
        row = int(wrong.argmax())
        value = "empty" if np.isnan(numbers[row]) else f"{numbers[row]:g}"
        raise ValueError(
            f"{location(table, weights.name, row)} is {value}; a weight must be a number from 0 "
            f"on, leave out other rows (there are {int(wrong.sum())})."
        )
    return numbers


def positive_weights(numbers: Floats, notes: Notes) -> Bools:
    """Which rows are edges by their weight, (M,): those above 0."""
    positive: Bools = numbers > 0
    zero = len(numbers) - int(positive.sum())
    if zero:
        notes.add(NoteKind.DROPPED_EDGES, f"Dropped {plural(zero, 'edge')}: weight 0.")
    return positive
