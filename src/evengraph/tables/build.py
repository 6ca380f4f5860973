"""Build a graph from a nodes table and an edges table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from evengraph.tables.cells import import_pandas, table_name
from evengraph.tables.columns import (
    TableColumns,
    feature_columns,
    normalize_table,
    note_mixed_columns,
    resolve_columns,
)
from evengraph.tables.edges import positive_weights, undirected_edges
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.ids import edge_rows, id_index
from evengraph.tables.notes import NoteKind, Notes
from evengraph.tables.roles import NoLabelError, label_candidates
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
    """Build a graph from a table of nodes and a table of edges.

    Edges are treated as undirected; self-loops are dropped and repeated edges merged. With
    weights, rows of weight 0 or without a weight are dropped, negative weights raise an error, and
    all other rows are edges alike, since no method uses weights. The notes of the result report
    all of this. An id may be spelt 3, 3.0 or "3". Empty labels are unlabelled nodes; classes are
    sorted.

    Args:
        nodes: A pandas DataFrame with one row per node.
        edges: A pandas DataFrame with one row per edge.
        label: Column of `nodes` with the classes. Default: one called label or class.
        id: Column of `nodes` with the ids. Default: one called id, node or node_id, in any case;
            else row numbers from 0, if the edges hold such.
        source: Column of `edges` with one end. Default: source, src or from, else the first.
        target: Column of `edges` with the other end. Default: target, dst or to, else the second.
        weight: Column of `edges` with weights.
        split: Column of `nodes` with train, val or test. Default: one called split, if it holds
            nothing else.
        time: Column of `nodes` with dates or numbers, for `ByTime`.
        features: Columns of `nodes` to make features from. Default: all without another role.
        encoder: A fitted encoder, to encode new rows as before; then `features` is not used, and
            there are labels only if `label` is named.
    """
    columns = TableColumns(id, label, split, time, source, target, weight, features)
    return build_graph(nodes, edges, columns, encoder)


def build_graph(
    nodes: Any, edges: Any, columns: TableColumns, encoder: FeatureEncoder | None = None
) -> TableGraph:
    """Build a graph like `from_frames`, with its column arguments as one object."""
    pandas = import_pandas()
    for name, table in (("nodes", nodes), ("edges", edges)):
        if not isinstance(table, pandas.DataFrame):
            raise ValueError(f"{name} must be a pandas DataFrame, got {type(table).__name__}.")
    nodes, edges = normalize_table(nodes, "nodes"), normalize_table(edges, "edges")
    if not len(nodes):
        raise ValueError(f"{table_name(nodes, 'nodes')} has no rows; at least one node is needed.")
    notes = Notes()
    columns = resolve_columns(nodes, edges, columns, notes, guess_label=encoder is None)
    ids = pandas.Series(range(len(nodes)), name="row") if columns.id is None else nodes[columns.id]
    edge_index = _edge_index(ids, nodes, edges, columns, notes)
    candidates: tuple[str, ...] = ()
    if encoder is None:
        if columns.label is None:
            candidates = label_candidates(nodes, columns.of_nodes.values())
        features = feature_columns(nodes, columns, notes)
        encoder = FeatureEncoder.fit(nodes, features, edge_index=edge_index)
        notes += encoder.notes
        note_mixed_columns(nodes, features, encoder, notes)
    if columns.label is None:
        notes.add(NoteKind.NO_LABEL, str(NoLabelError(candidates)))
    return assemble(
        nodes,
        edge_index,
        columns,
        encoder,
        notes,
        ids=ids.to_numpy(),
        label_candidates=candidates,
    )


def _edge_index(ids: Any, nodes: Any, edges: Any, columns: TableColumns, notes: Notes) -> Tensor:
    """Row numbers of both ends of every edge, (2, E)."""
    table = table_name(edges, "edges")
    index = id_index(ids, table_name(nodes, "nodes"))
    source, target = edge_rows(edges[columns.source], edges[columns.target], index, table)
    if columns.weight is not None:
        positive = positive_weights(edges[columns.weight], table, notes)
        source, target = source[positive], target[positive]
    return undirected_edges(source, target, len(nodes), notes)
