"""Uni-GNN's structural connectivity for other networks, as a PyTorch Geometric transform."""

from __future__ import annotations

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform
from torch_geometric.utils import to_undirected

from evengraph.ops.structural import structural_adjacency


class StructuralConnectivity(BaseTransform):  # type: ignore[misc]
    """Add edges between all nodes at most alpha steps apart, with weight 1 / distance.

    Edges are read in both directions. The transform copies its input and keeps `edge_index`.

    Args:
        alpha: Largest distance to connect.
        memory_limit: Largest size of the matrix in bytes; a larger one is not built to the end.

    Shapes:
        structural_edge_index: int64, (2, E_alpha), both directions, sorted, no self-loops
        structural_edge_weight: (E_alpha,), 1 / distance
    """

    def __init__(self, alpha: int = 2, *, memory_limit: float = 4 * 2**30) -> None:
        self.alpha, self.memory_limit = alpha, memory_limit

    def forward(self, data: Data) -> Data:
        if data.edge_index is None:
            raise ValueError("StructuralConnectivity needs edge_index.")
        num_nodes = data.num_nodes
        edges = to_undirected(data.edge_index, num_nodes=num_nodes)
        matrix = structural_adjacency(edges, num_nodes, self.alpha, memory_limit=self.memory_limit)
        degrees = matrix.crow_indices().diff().long()
        sources = torch.repeat_interleave(degrees)
        data.structural_edge_index = torch.stack([sources, matrix.col_indices().long()])
        data.structural_edge_weight = matrix.values()
        return data
