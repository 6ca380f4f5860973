"""Uni-GNN's two connectivities as layers for other networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from evengraph.ops.semantic import Clusters, semantic_propagate
from evengraph.ops.sparse import Sparse, propagation_matrix, undirected_matrix
from evengraph.ops.structural import check_alpha, path_weights


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
    matrix = undirected_matrix(edge_index, num_nodes)
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
