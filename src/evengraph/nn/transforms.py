"""Uni-GNN's two connectivities for other networks: PyTorch Geometric transforms, and layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform
from torch_geometric.utils import to_undirected

from evengraph.ops.semantic import Clusters, kmeans, semantic_propagate
from evengraph.ops.sparse import Sparse, propagation_matrix, sparsify, undirected_adjacency
from evengraph.ops.structural import check_alpha, path_weights, structural_adjacency

BYTES_PER_EDGE = 20  # two 64-bit node ids and a 32-bit weight


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
        """Add the edges to the copy made by `__call__`."""
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
    graphs. The N cluster ids hold the same information, for `evengraph.ops.semantic_propagate`
    and `evengraph.nn.transforms.SemanticLayer`; edges are added only on request.

    Args:
        num_clusters: K, at most the number of nodes.
        seed: Seed of k-means.
        attribute: Attribute to cluster: features, or embeddings stored in the graph.
        edges: Whether to add the edges.
        memory_limit: Largest size of the edges in bytes; checked before they are made.

    Shapes:
        semantic_cluster: int64, (N,), from 0 to K - 1
        semantic_edge_index: with edges, int64, (2, about N^2 / K), both directions, no self-loops
        semantic_edge_weight: with edges, (about N^2 / K,), ones
    """

    def __init__(
        self,
        num_clusters: int,
        *,
        seed: int = 0,
        attribute: str = "x",
        edges: bool = False,
        memory_limit: float = 4 * 2**30,
    ) -> None:
        if isinstance(num_clusters, bool) or not isinstance(num_clusters, int) or num_clusters < 1:
            raise ValueError(
                f"num_clusters must be a whole number of at least 1, got {num_clusters!r}."
            )
        self.num_clusters, self.seed, self.attribute = num_clusters, seed, attribute
        self.edges, self.memory_limit = edges, memory_limit

    def forward(self, data: Data) -> Data:
        """Add the clusters to the copy made by `__call__`."""
        rows = data.get(self.attribute)
        if not isinstance(rows, Tensor) or rows.dim() != 2:
            raise ValueError(f"SemanticConnectivity needs {self.attribute}, one row per node.")
        if not torch.isfinite(rows).all():
            raise ValueError(f"{self.attribute} must be finite, got NaN or infinite entries.")
        clusters = kmeans(sparsify(rows.detach().float()), self.num_clusters, self.seed)
        data.semantic_cluster = clusters
        if self.edges:
            data.semantic_edge_index = self._edges(clusters)
            data.semantic_edge_weight = torch.ones(
                data.semantic_edge_index.shape[1], device=clusters.device
            )
        return data

    def _edges(self, clusters: Tensor) -> Tensor:
        """All pairs of nodes of a cluster, (2, E)."""
        sizes = torch.bincount(clusters)
        number = int((sizes * (sizes - 1)).sum())
        if number * BYTES_PER_EDGE > self.memory_limit:
            raise MemoryError(
                f"The semantic connectivity of {self.num_clusters} clusters would have {number:,} "
                f"edges, {number * BYTES_PER_EDGE / 2**30:.1f} GiB, over the limit of "
                f"{self.memory_limit / 2**30:.1f} GiB. Use the clusters, or more of them."
            )
        order = clusters.argsort(stable=True)
        first = sizes.cumsum(0) - sizes
        counts = sizes[clusters[order]]  # cluster size of each node, in that order
        source = torch.repeat_interleave(counts)
        start = counts.cumsum(0) - counts
        within = torch.arange(source.numel(), device=clusters.device) - start[source]
        target = first[clusters[order[source]]] + within
        pairs = torch.stack([order[source], order[target]])
        return pairs[:, pairs[0] != pairs[1]]

    def __repr__(self) -> str:
        return f"SemanticConnectivity({self.num_clusters}, edges={self.edges})"


def structural_connectivity(
    edge_index: Tensor, num_nodes: int, alpha: int = 2, *, memory_limit: float = 4 * 2**30
) -> Sparse:
    """D^-1/2 (A_struct + I) D^-1/2 for `StructuralLayer`; edges are read in both directions.

    The arguments are those of `evengraph.ops.structural_adjacency`.

    Shapes:
        edge_index: (2, E)
        returns: (N, N)
    """
    check_alpha(alpha)
    matrix = undirected_adjacency(edge_index, num_nodes)
    return propagation_matrix(path_weights(matrix, alpha, memory_limit), edge_index.device)


class _Layer(nn.Module):
    """Xavier weights without bias, as in the paper."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(inputs, outputs)))


class StructuralLayer(_Layer):
    """Propagation between nodes at most alpha steps apart, before any activation (Eq. 2).

    Shapes:
        x: (N, inputs), dense or sparse
        connectivity: (N, N), of `structural_connectivity`
        returns: (N, outputs)
    """

    def forward(self, x: Tensor | Sparse, connectivity: Sparse) -> Tensor:
        """Transform and propagate."""
        return connectivity @ (x @ self.weight)


class SemanticLayer(_Layer):
    """Propagation within clusters, before any activation, in time linear in N (Eq. 6).

    Clusters come from `evengraph.ops.semantic` of the layer's input, updated from time to time.

    Shapes:
        x: (N, inputs), dense or sparse
        clusters: int64, (N,), or the result of `evengraph.ops.prepare_clusters`
        returns: (N, outputs)
    """

    def forward(self, x: Tensor | Sparse, clusters: Tensor | Clusters) -> Tensor:
        """Transform and propagate."""
        return semantic_propagate(x @ self.weight, clusters)
