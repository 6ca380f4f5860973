"""Relations: kinds of edges, or their directions, whose neighbours are averaged apart."""

from __future__ import annotations

from typing import NamedTuple

import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.graphs import count_relations
from evengraph.ops.propagate import Matrix, adjacency, graph_matrix, neighbour_means
from evengraph.ops.sparse import Sparse


class Average(NamedTuple):
    """A mean over neighbours: the matrix, and how often it is applied."""

    matrix: Sparse
    steps: int

    def __call__(self, x: Tensor) -> Tensor:
        """The means of rows, (N, F)."""
        for _ in range(self.steps):
            x = self.matrix @ x
        return x


def neighbour_averages(
    graph: Data,
    hops: int,
    dtype: torch.dtype = torch.float32,
    union: Matrix | None = None,
) -> list[Average]:
    """The means over neighbours 1, 2, ... hops away in all edges, then over those per relation.

    Args:
        graph: The graph, with `relation_index` if its relations stay apart.
        hops: How many means to take over all edges; without any, there are none per relation.
        dtype: Of the matrices.
        union: `weighted_adjacency` or `graph_matrix` of the graph, if it is known already.
    """
    if not hops:
        return []
    device = graph.edge_index.device
    union = graph_matrix(graph) if union is None else union
    means = neighbour_means(union, device, dtype)
    averages = [Average(means, steps) for steps in range(1, hops + 1)]
    for relation in range(count_relations(graph)):
        matrix = relation_adjacency(graph, relation)
        averages.append(Average(neighbour_means(matrix, device, dtype), 1))
    return averages


def relation_adjacency(graph: Data, relation: int) -> sp.csr_matrix:
    """The neighbours of every node in one relation, (N, N); not symmetric if it has a direction."""
    chosen = graph.relation_index[0] == relation
    weight = graph.relation_weight[chosen] if "relation_weight" in graph else None
    return adjacency(graph.relation_index[1:, chosen], graph.num_nodes, weight)
