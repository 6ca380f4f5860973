"""ModelInput: the graph that a model predicts, and which of its nodes are asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from evengraph.methods import Method
from evengraph.pipeline.alignment import align
from evengraph.pipeline.model_info import ModelInfo
from evengraph.pipeline.new_nodes import ID, NewNodes


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelInput:
    """A graph as the method takes it.

    Args:
        graph: With the columns that have moved as a whole moved back.
        rows: The nodes to predict, a slice or their indices.
        ids: Ids of these nodes, by the name of their column.
        aligned: Which columns were moved back; empty for none.
    """

    graph: Data
    rows: Any
    ids: dict[str, NDArray[Any]]
    aligned: str = ""

    @classmethod
    def of(cls, new: Data | NewNodes, method: Method, info: ModelInfo, aligns: bool) -> ModelInput:
        """What a model takes of a graph, or of tables that were opened.

        Args:
            method: The fitted method, whose training nodes are never moved.
            info: What is known about the training graph.
            aligns: Whether to move columns back. PyG graphs and nodes that attach to a known graph
                stay as they are.
        """
        if isinstance(new, Data):
            return cls(graph=new, rows=slice(None), ids={ID: np.arange(new.num_nodes)})
        graph, aligned = new.tables.graph, ""
        if aligns and not new.attached:
            graph, aligned = align(graph, method, info)
        return cls(graph=graph, rows=new.rows, ids={new.id_name: new.ids}, aligned=aligned)
