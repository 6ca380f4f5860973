"""TableGraph: a graph built from a user's tables or file, with its ids, encoder and notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from evengraph.tables.columns import TableColumns
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.notes import Note, NoteKind, Notes
from evengraph.tables.roles import NodeRoles


@dataclass(frozen=True, kw_only=True, eq=False)
class TableGraph:
    """A graph built from a user's tables or file.

    Args:
        graph: Features, edges and labels; where they are known also `class_names`, `train_mask`,
            `val_mask`, `test_mask` and `time`.
        ids: Ids of the nodes as given.
        encoder: Makes the features, also for new rows.
        columns: The column of each role; None where there is none.
        masks: Nodes of train, val and test, if a split was given.
        times: Time of every node, if there is one; dates in seconds since 1970.
        notes: What was guessed, dropped, merged or left out.
        label_candidates: Columns that may hold the classes, if there is no label column.

    Shapes:
        graph.x: float32, (N, F); graph.edge_index: int64, (2, E), both directions of every edge
        graph.y: int64, (N,), -1 for unlabelled
        ids: (N,); masks: bool, (N,) each; times: float64, (N,), NaN for unknown
    """

    graph: Data
    ids: NDArray[Any]
    encoder: FeatureEncoder
    columns: TableColumns
    masks: dict[str, Tensor] = field(default_factory=dict)
    times: Tensor | None = None
    notes: tuple[Note, ...] = ()
    label_candidates: tuple[str, ...] = ()

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes; empty without labels."""
        return tuple(self.graph.class_names) if "class_names" in self.graph else ()


def make_graph(
    nodes: Any,
    edge_index: Tensor,
    ids: NDArray[Any],
    encoder: FeatureEncoder,
    columns: TableColumns,
    roles: NodeRoles,
    notes: Notes,
    *,
    label_candidates: tuple[str, ...] = (),
) -> TableGraph:
    """Encode the features and put the parts of a graph together."""
    num_nodes = len(nodes)
    y = torch.full((num_nodes,), -1) if roles.labels is None else torch.tensor(roles.labels)
    graph = Data(x=encoder.transform(nodes, edge_index=edge_index), edge_index=edge_index, y=y)
    if roles.class_names:
        graph.class_names = list(roles.class_names)
    masks = {name: torch.tensor(mask) for name, mask in roles.masks.items() if mask.any()}
    for name, mask in masks.items():
        graph[f"{name}_mask"] = mask
        unlabelled = int((mask & (y < 0)).sum())
        if unlabelled and roles.labels is not None:
            text = f"Nodes marked {name} but left out, because they have no label: {unlabelled}."
            notes.add(NoteKind.SPLIT, text)
    times = None if roles.times is None else torch.tensor(roles.times)
    if times is not None:
        graph.time = times
        unknown = int(torch.isnan(times).sum())
        if unknown:
            notes.add(NoteKind.NO_TIME, f"Nodes without a time: {unknown} of {num_nodes}.")
    isolated = num_nodes - len(torch.unique(edge_index[0]))
    if isolated:
        notes.add(NoteKind.ISOLATED_NODES, f"Nodes without edges: {isolated} of {num_nodes}.")
    return TableGraph(
        graph=graph,
        ids=ids,
        encoder=encoder,
        columns=columns,
        masks=masks,
        times=times,
        notes=tuple(notes),
        label_candidates=label_candidates,
    )
