"""A user's own tables in: one of nodes, one of edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evengraph.tables.cells import need_pandas, table_name
from evengraph.tables.columns import (
    edge_columns,
    feature_columns,
    mixed_columns,
    need_row_numbers,
    node_columns,
    plain_tables,
)
from evengraph.tables.edges import tidy_edges, weighed
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.ids import find_both, node_names
from evengraph.tables.notes import Note, NoteKind
from evengraph.tables.roles import (
    NoLabelError,
    encode_labels,
    label_candidates,
    read_split,
    read_times,
)
from evengraph.tables.table_graph import TableGraph, assemble


def from_frames(
    nodes: Any,
    edges: Any,
    *,
    label: str | None = None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    split: str | None = None,
    time: str | None = None,
    features: Sequence[str] | None = None,
    encoder: FeatureEncoder | None = None,
) -> TableGraph:
    """Make a graph of a table of nodes and a table of edges.

    Edges are taken as undirected; an edge from a node to itself is dropped and repeated ones are
    merged. With weights, a row of weight 0 or without one is dropped, a negative one refused, and
    every other row is an edge like any other, for no method uses weights. All of it is told in
    the notes of the result. An id may be spelt 3, 3.0 or "3". Empty labels are unlabelled nodes;
    classes are in sorted order.

    Args:
        nodes: A pandas DataFrame with a row a node.
        edges: A pandas DataFrame with a row an edge.
        label: Column of `nodes` with the classes. Default: one called label or class.
        id: Column of `nodes` with the ids. Default: one called id, node or node_id, in any case;
            else rows are counted from 0, if that is what the edges name.
        source: Column of `edges` with one end. Default: source, src or from, else the first.
        target: Column of `edges` with the other end. Default: target, dst or to, else the second.
        weight: Column of `edges` with weights.
        split: Column of `nodes` that says train, val or test. Default: one called split, if it
            says nothing else.
        time: Column of `nodes` with dates or numbers, for `ByTime`.
        features: Columns of `nodes` to make features of. Default: all that are nothing else.
        encoder: Makes the features as it did before, for rows of later; then `features` is not
            used, and there are labels only if `label` is named.
    """
    pandas = need_pandas()
    for name, table in (("nodes", nodes), ("edges", edges)):
        if not isinstance(table, pandas.DataFrame):
            raise ValueError(f"{name} must be a pandas DataFrame, got {type(table).__name__}.")
    nodes, edges = plain_tables(nodes, edges)
    if not len(nodes):
        raise ValueError(f"{table_name(nodes, 'nodes')} has no rows; at least one node is needed.")
    asked = {"id": id, "label": label, "split": split, "time": time}
    columns, notes = node_columns(nodes, asked, guess_label=encoder is None)
    first, second, more = edge_columns(edges, source, target, weight)
    notes += more
    if columns["id"] is None:
        need_row_numbers(nodes, edges, first, second)
        text = "Nodes have no id column: their ids are row numbers from 0."
        notes.append(Note(NoteKind.ROW_NUMBER_IDS, text))
    ids = np.arange(len(nodes)) if columns["id"] is None else nodes[columns["id"]].to_numpy()
    edge_index, more = _edges(nodes, edges, columns["id"], first, second, weight)
    notes += more
    candidates: tuple[str, ...] = ()
    if encoder is None:
        if columns["label"] is None:
            candidates = label_candidates(nodes, columns.values())
        chosen, more = feature_columns(nodes, features, columns)
        encoder = FeatureEncoder.fit(nodes, chosen, edge_index=edge_index)
        notes += [*more, *encoder.notes, *mixed_columns(nodes, chosen, encoder)]
    said = _said(nodes, columns, candidates)
    return assemble(
        features=encoder.transform(nodes, edge_index=edge_index),
        edge_index=edge_index,
        ids=ids,
        encoder=encoder,
        columns={
            **columns,
            "source": first,
            "target": second,
            "weight": weight,
            "features": list(encoder.needs),
        },
        notes=notes + said.pop("notes"),
        label_candidates=candidates,
        **said,
    )


def _edges(
    nodes: Any, edges: Any, id: str | None, source: str, target: str, weight: str | None
) -> tuple[Any, list[Note]]:
    """Edges as positions of nodes, (2, E), and notes."""
    notes: list[Note] = []
    table = table_name(edges, "edges")
    values = nodes[id] if id is not None else need_pandas().Series(range(len(nodes)), name="row")
    names = node_names(values, table_name(nodes, "nodes"))
    ends: tuple[NDArray[np.int64], ...] = find_both(edges[source], edges[target], names, table)
    if weight is not None:
        kept, notes = weighed(edges[weight], table)
        ends = tuple(end[kept] for end in ends)
    edge_index, more = tidy_edges(ends[0], ends[1], len(nodes))
    return edge_index, notes + more


def _said(nodes: Any, columns: dict[str, str | None], candidates: Sequence[str]) -> dict[str, Any]:
    """Labels, masks and times, as far as there are columns of them."""
    table = table_name(nodes, "nodes")
    label, split, time = columns["label"], columns["split"], columns["time"]
    missing = Note(NoteKind.NO_LABEL, str(NoLabelError(candidates)))
    coded: tuple[Any, tuple[str, ...], list[Note]] = (None, (), [missing])
    if label is not None:
        coded = encode_labels(nodes[label], table)
    return {
        "labels": coded[0],
        "class_names": coded[1],
        "masks": read_split(nodes[split], table) if split is not None else {},
        "times": read_times(nodes[time], table) if time is not None else None,
        "notes": coded[2],
    }
