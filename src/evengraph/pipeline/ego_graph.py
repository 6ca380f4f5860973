"""The surroundings of one node: how far others are, and a small graph to draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.ops import undirected_adjacency

MOST = 40  # nodes of a picture that is still readable
LONGEST = 4  # steps of a path that is still drawn


class Surroundings:
    """Distances from a node, edges read in both directions.

    Args:
        edge_index: The edges.
        num_nodes: How many nodes there are.
        node: From where.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, node: int) -> None:
        self.node = node
        self.matrix = undirected_adjacency(edge_index, num_nodes)
        self.steps = np.full(num_nodes, -1)  # -1: no path
        self.steps[node] = 0
        edge = np.array([node])
        while edge.size:
            reached = np.unique(self.matrix[edge].indices)
            further = reached[self.steps[reached] < 0]
            self.steps[further] = self.steps[edge[0]] + 1
            edge = further

    def distance(self, other: int) -> int | None:
        """Steps to another node; none if no path leads there."""
        return int(self.steps[other]) if self.steps[other] >= 0 else None

    def path(self, other: int) -> list[int]:
        """The nodes of a shortest path to another node, that one first."""
        found = [other]
        while self.steps[found[-1]] > 0:
            around = self.matrix[[found[-1]]].indices
            found.append(int(around[self.steps[around] < self.steps[found[-1]]].min()))
        return found


def picture_of(
    around: Surroundings, listed: Sequence[int], weight: Tensor, **values: Tensor
) -> Data:
    """A node, some others with the ways to them, and the weightiest nodes within two steps.

    Args:
        around: The node and its surroundings.
        listed: Nodes that must be in it.
        weight: Of every node; its size counts.
        values: Of every node, to be told of those in the picture.

    Shapes:
        weight: (N,)
        values: (N,)
    """
    chosen = dict.fromkeys([around.node])
    for other in listed:
        near = 0 <= around.steps[other] <= LONGEST
        chosen |= dict.fromkeys(reversed(around.path(other)) if near else [other])
    close = np.flatnonzero((around.steps >= 0) & (around.steps <= 2))
    by_weight = np.argsort(-weight.abs().numpy()[close], kind="stable")
    for other in close[by_weight].tolist():
        if len(chosen) >= MOST:
            break
        chosen[other] = None
    nodes = torch.tensor(list(chosen))
    part = around.matrix[nodes.numpy()][:, nodes.numpy()].tocoo()
    edges = np.stack([part.row, part.col]).astype(np.int64)
    return Data(
        node_id=nodes,
        edge_index=torch.from_numpy(edges),
        num_nodes=nodes.numel(),
        distance=torch.from_numpy(around.steps)[nodes],
        **{name: value[nodes] for name, value in values.items()},
    )
