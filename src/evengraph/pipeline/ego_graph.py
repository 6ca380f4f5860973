"""The ego graph of one node: distances to all others, and a small subgraph to draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.ops import undirected_adjacency

MAX_NODES = 40  # more make a picture unreadable
MAX_PATH = 4  # edges of the longest path that is drawn


class Distances:
    """Distances from one node to all others, with edges read in both directions."""

    def __init__(self, edge_index: Tensor, num_nodes: int, node: int) -> None:
        self.node = node
        self.matrix = undirected_adjacency(edge_index, num_nodes)
        self.steps = np.full(num_nodes, -1)  # -1: no path
        self.steps[node] = 0
        frontier = np.array([node])
        while frontier.size:
            neighbours = np.unique(self.matrix[frontier].indices)
            unvisited = neighbours[self.steps[neighbours] < 0]
            self.steps[unvisited] = self.steps[frontier[0]] + 1
            frontier = unvisited

    def to(self, other: int) -> int | None:
        """The distance to another node; None without a path."""
        return int(self.steps[other]) if self.steps[other] >= 0 else None

    def path(self, other: int) -> list[int]:
        """The nodes of a shortest path from another node, which comes first."""
        nodes = [other]
        while self.steps[nodes[-1]] > 0:
            neighbours = self.matrix[[nodes[-1]]].indices
            closer = neighbours[self.steps[neighbours] < self.steps[nodes[-1]]]
            nodes.append(int(closer.min()))
        return nodes


def ego_graph(
    distances: Distances, required: Sequence[int], weight: Tensor, **values: Tensor
) -> Data:
    """The subgraph of a node, of required nodes with the paths to them, and of near nodes.

    Near nodes lie within two steps; those with the largest absolute weight come first.

    Args:
        distances: From the node that the graph is drawn around.
        required: Nodes to include, whatever their distance.
        weight: The weight of every node, (N,).
        values: Values of every node to carry over to the subgraph, (N,).
    """
    steps = distances.steps
    selected = dict.fromkeys([distances.node])  # a set in order
    for other in required:
        draw_path = 0 <= steps[other] <= MAX_PATH
        selected |= dict.fromkeys(reversed(distances.path(other)) if draw_path else [other])
    close = np.flatnonzero((steps >= 0) & (steps <= 2))
    by_weight = np.argsort(-weight.abs().numpy()[close], kind="stable")
    for other in close[by_weight].tolist():
        if len(selected) >= MAX_NODES:
            break
        selected[other] = None
    nodes = torch.tensor(list(selected))
    part = distances.matrix[nodes.numpy()][:, nodes.numpy()].tocoo()
    edges = np.stack([part.row, part.col]).astype(np.int64)
    return Data(
        node_id=nodes,
        edge_index=torch.from_numpy(edges),
        num_nodes=nodes.numel(),
        distance=torch.from_numpy(steps)[nodes],
        **{name: value[nodes] for name, value in values.items()},
    )
