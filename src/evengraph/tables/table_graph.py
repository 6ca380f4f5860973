"""TableGraph: a graph built from a user's tables or file, with its ids, encoder and notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from evengraph.tables.cells import Bools, table_name
from evengraph.tables.columns import TableColumns
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.notes import Note, NoteKind, Notes
from evengraph.tables.roles import encode_labels, read_split, read_times


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
        labels, class_names = encode_labels(nodes[columns.label], table, notes)
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
        graph.time = torch.tensor(read_times(nodes[columns.time], table))
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
