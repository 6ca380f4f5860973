"""Rows: every node as one row of numbers, in which near means alike."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.graphs import bare_graph, count_relations
from evengraph.nn.views import Diffusion, Views

COMPONENTS = 96  # of each of the two views
DIFFUSION = Diffusion(steps=10, teleport=0.1)
VIEWS = ("structural", "ego")


@torch.no_grad()
def node_rows(graph: Data) -> Tensor:
    """Principal components of a node's features, of its neighbours' and of those further away.

    Shapes:
        returns: float32, (N, d)
    """
    graph = bare_graph(graph).to("cpu")
    if not graph.x.shape[1]:
        return torch.zeros(graph.num_nodes, 1)
    relations = count_relations(graph)
    views = Views(VIEWS, graph.x.shape[1], COMPONENTS, DIFFUSION, 1, relations)
    rows: Tensor = torch.cat(list(views(graph, fit=True)), dim=1)
    used = (rows.amin(0) < 0) | (rows.amax(0) > 0)
    return rows[:, used] if used.any() else rows[:, :1]
