"""Uni-GNN's two connectivities for other networks, as PyTorch Geometric transforms."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform
from torch_geometric.utils import to_undirected

from evengraph.ops.semantic import kmeans
from evengraph.ops.sparse import sparsify
from evengraph.ops.structural import structural_adjacency


class StructuralConnectivity(BaseTransform):  # type: ignore[misc]
    """Add edges between all nodes at most alpha steps apart, with weight 1 / distance.

    Edges are read in both directions. The transform copies its input and keeps `edge_index`.

    Args:
        alpha: Largest distance to connect.
        memory_limit: Largest size of the matrix in bytes; checked before it is built.

    Shapes:
        structural_edge_index: int64, (2, E_alpha), both directions, sorted, no self-loops
        structural_edge_weight: (E_alpha,), 1 / distance
    """

    def __init__(self, alpha: int = 2, *, memory_limit: float = 4 * 2**30) -> None:
        if isinstance(alpha, bool) or not isinstance(alpha, int) or alpha < 1:
            raise ValueError(f"alpha must be a whole number of at least 1, got {alpha!r}.")
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

    def __repr__(self) -> str:
        return f"StructuralConnectivity(alpha={self.alpha})"


class SemanticConnectivity(BaseTransform):  # type: ignore[misc]
    """Add the cluster of each node, from k-means of its features.

    Semantic connectivity joins all nodes of a cluster: about N^2 / K edges, too many for most
    graphs. The N cluster ids hold the same information, for `evengraph.ops.semantic_propagate`.

    Args:
        num_clusters: K, at most the number of nodes.
        seed: Seed of k-means.
        attribute: Attribute to cluster: features, or embeddings stored in the graph.

    Shapes:
        semantic_cluster: int64, (N,), from 0 to K - 1
    """

    def __init__(self, num_clusters: int, *, seed: int = 0, attribute: str = "x") -> None:
        if isinstance(num_clusters, bool) or not isinstance(num_clusters, int) or num_clusters < 1:
            raise ValueError(
                f"num_clusters must be a whole number of at least 1, got {num_clusters!r}."
            )
        self.num_clusters, self.seed, self.attribute = num_clusters, seed, attribute

    def forward(self, data: Data) -> Data:
        rows = data.get(self.attribute)
        if not isinstance(rows, Tensor) or rows.dim() != 2:
            raise ValueError(f"SemanticConnectivity needs {self.attribute}, one row per node.")
        if not torch.isfinite(rows).all():
            raise ValueError(f"{self.attribute} must be finite, got NaN or infinite entries.")
        data.semantic_cluster = kmeans(
            sparsify(rows.detach().float()), self.num_clusters, self.seed
        )
        return data

    def __repr__(self) -> str:
        return f"SemanticConnectivity({self.num_clusters})"
