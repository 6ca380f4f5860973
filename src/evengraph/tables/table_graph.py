"""TableGraph: somebody's own graph, ready for the protocols and methods, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.notes import Note, NoteKind

ROLES = ("id", "label", "split", "time", "source", "target", "weight", "features")
"""What `TableGraph.columns` tells the column of."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TableGraph:
    """A graph out of somebody's tables or file.

    Args:
        graph: Features, edges and labels; besides, where they are known, `class_names`,
            `train_mask`, `val_mask` and `test_mask`, and `time`.
        ids: The ids of the nodes as they came.
        encoder: What made the features, for rows of later.
        columns: Which column was what, by the argument's name; None for one that was not there.
        masks: The nodes of train, val and test where a split was given.
        times: The time of every node where there is one, dates in seconds since 1970.
        notes: What was done to the tables.
        label_candidates: Columns that may hold the classes, where no label column was found.

    Shapes:
        graph.x: float32, (N, F); graph.edge_index: int64, (2, E), both directions of every edge
        graph.y: int64, (N,), -1 for unlabelled
        ids: (N,); masks: bool, (N,) each; times: float64, (N,), NaN for unknown
    """

    graph: Data
    ids: NDArray[Any]
    encoder: FeatureEncoder
    columns: dict[str, Any]
    masks: dict[str, Tensor] = field(default_factory=dict)
    times: Tensor | None = None
    notes: tuple[Note, ...] = ()
    label_candidates: tuple[str, ...] = ()

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, empty without labels."""
        return tuple(self.graph.class_names) if "class_names" in self.graph else ()


def assemble(
    *,
    features: Tensor,
    edge_index: Tensor,
    labels: NDArray[Any] | None,
    class_names: tuple[str, ...],
    masks: dict[str, NDArray[Any]],
    times: NDArray[Any] | None,
    ids: NDArray[Any],
    encoder: FeatureEncoder,
    columns: dict[str, Any],
    notes: list[Note],
    label_candidates: tuple[str, ...] = (),
) -> TableGraph:
    """Put the parts together."""
    num_nodes = len(features)
    y = torch.full((num_nodes,), -1) if labels is None else torch.tensor(labels)
    graph = Data(x=features, edge_index=edge_index, y=y)
    if class_names:
        graph.class_names = list(class_names)
    known = {name: torch.tensor(mask) for name, mask in masks.items() if mask.any()}
    for name, mask in known.items():
        graph[f"{name}_mask"] = mask
        without = int((mask & (y < 0)).sum())
        if without and labels is not None:
            text = f"{without} of the {name} nodes have no label and are left out of it."
            notes.append(Note(NoteKind.SPLIT, text))
    when = None if times is None else torch.tensor(times)
    if when is not None:
        graph.time = when
        unknown = int(torch.isnan(when).sum())
        if unknown:
            notes.append(Note(NoteKind.NO_TIME, f"{unknown} of {num_nodes} nodes have no time."))
    lonely = num_nodes - len(torch.unique(edge_index[0]))
    if lonely:
        text = f"{lonely} of {num_nodes} nodes have no edge."
        notes.append(Note(NoteKind.ISOLATED_NODES, text))
    return TableGraph(
        graph=graph,
        ids=ids,
        encoder=encoder,
        columns=columns,
        masks=known,
        times=when,
        notes=tuple(notes),
        label_candidates=label_candidates,
    )
