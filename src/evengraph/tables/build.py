"""TableGraph: a graph built from a nodes table and an edges table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from evengraph.tables.cells import Bools, import_pandas, table_name
from evengraph.tables.columns import (
    TableColumns,
    feature_columns,
    normalize_table,
    note_mixed_columns,
    resolve_columns,
)
from evengraph.tables.edges import edge_rows, id_index, positive_weights, undirected_edges
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.ids import check_no_copy
from evengraph.tables.notes import Note, NoteKind, Notes
from evengraph.tables.roles import (
    NoLabelError,
    encode_labels,
    label_candidates,
    read_split,
    read_times,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class TableGraph:
    """A graph built from a user's tables or file.

    Args:
        graph: Features, edges and labels; where they are known also `class_names`, `train_mask`,
            `val_mask`, `test_mask` and `time`; dates are in seconds since 1970.
        ids: Ids of the nodes as given.
        encoder: Makes the features, also for new rows.
        columns: The column of each role; None where there is none.
        notes: What was guessed, dropped, merged or left out.
        label_candidates: Columns that may hold the classes, if there is no label column.

    Shapes:
        graph.x: float32, (N, F); graph.edge_index: int64, (2, E), both directions of every edge
        graph.y: int64, (N,), -1 for unlabelled; graph.time: float64, (N,), NaN for unknown
        ids: (N,)
    """

    graph: Data
    ids: NDArray[Any]
    encoder: FeatureEncoder
    columns: TableColumns
    notes: tuple[Note, ...] = ()
    label_candidates: tuple[str, ...] = ()

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes; empty without labels."""
        return tuple(self.graph.class_names) if "class_names" in self.graph else ()


def from_frames(
    nodes: Any,
    edges: Any,
    *,
    label: str | None = None,
    unlabelled: Sequence[Any] | None = None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    split: str | None = None,
    time: str | None = None,
    features: Sequence[str] | None = None,
    date_order: str | None = None,
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
        unlabelled: Labels that mean unlabelled, such as "unknown" or -1; empty cells always do.
        id: Column of `nodes` with the ids. Default: one called id, node or node_id, in any case;
            if the edges name none of its values, the column whose values they name; else row
            numbers from 0, if the edges hold such.
        source: Column of `edges` with one end. Default: source, src or from, else the first.
        target: Column of `edges` with the other end. Default: target, dst or to, else the second.
        weight: Column of `edges` with weights.
        split: Column of `nodes` with train, val or test. Default: one called split, if it holds
            nothing else.
        time: Column of `nodes` with dates or numbers, for `ByTime`.
        features: Columns of `nodes` to make features from. Default: all without another role.
        date_order: "dmy" or "mdy": how to read dates such as 03/04/2024 in a column in which no
            cell tells day from month.
        encoder: A fitted encoder, to encode new rows as before; then `features` is not used, and
            there are labels only if `label` is named.
    """
    columns = TableColumns(
        id, label, split, time, source, target, weight, features, unlabelled, date_order
    )
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
    if columns.label is not None:
        check_no_copy(nodes[columns.label], ids, table_name(nodes, "nodes"))
    edge_index = _edge_index(ids, nodes, edges, columns, notes)
    candidates: tuple[str, ...] = ()
    if encoder is None:
        if columns.label is None:
            candidates = label_candidates(nodes, columns.of_nodes.values())
        features = feature_columns(nodes, columns, notes)
        encoder = FeatureEncoder.fit(
            nodes, features, edge_index=edge_index, date_order=columns.date_order
        )
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


def assemble(
    nodes: Any,
    edge_index: Tensor,
    columns: TableColumns,
    encoder: FeatureEncoder,
    notes: Notes,
    *,
    ids: NDArray[Any],
    masks: Mapping[str, Bools] | None = None,
    label_candidates: tuple[str, ...] = (),
) -> TableGraph:
    """Encode the features of a nodes table and read its labels, split and times."""
    table, num_nodes = table_name(nodes, "nodes"), len(nodes)
    x = encoder.transform(nodes, edge_index=edge_index)
    graph = Data(x=x, edge_index=edge_index, y=torch.full((num_nodes,), -1))
    if columns.label is not None:
        labels, class_names = encode_labels(
            nodes[columns.label], table, notes, columns.unlabelled or ()
        )
        graph.y, graph.class_names = torch.tensor(labels), list(class_names)
    if columns.split is not None:
        masks = read_split(nodes[columns.split], table)
    for name, mask in (masks or {}).items():
        if not mask.any():
            continue
        graph[f"{name}_mask"] = torch.tensor(mask)
        unlabelled = int((graph[f"{name}_mask"] & (graph.y < 0)).sum())
        if unlabelled and columns.label is not None:
            text = f"Nodes marked {name} but left out, because they have no label: {unlabelled}."
            notes.add(NoteKind.SPLIT, text)
    if columns.time is not None:
        graph.time = torch.tensor(read_times(nodes[columns.time], table, columns.date_order))
        unknown = int(torch.isnan(graph.time).sum())
        if unknown:
            notes.add(NoteKind.NO_TIME, f"Nodes without a time: {unknown} of {num_nodes}.")
    isolated = num_nodes - len(torch.unique(edge_index[0]))
    if isolated:
        notes.add(NoteKind.ISOLATED_NODES, f"Nodes without edges: {isolated} of {num_nodes}.")
    return TableGraph(
        graph=graph,
        ids=ids,
        encoder=encoder,
        columns=replace(columns, features=list(encoder.input_columns)),
        notes=tuple(notes),
        label_candidates=label_candidates,
    )
