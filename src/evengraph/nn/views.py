"""Views of a graph: features that are propagated once, before any network is trained on them."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from evengraph.ops.components import principal_components
from evengraph.ops.neighbours import neighbour_graph
from evengraph.ops.propagate import (
    diffuse,
    neighbour_means,
    propagation_matrix,
    undirected_adjacency,
)
from evengraph.ops.sparse import LinearMap, Sparse, sparsify

LENGTH = 0.5  # root mean square length of a view's rows, so that one learning rate suits all graphs
HOPS = 2  # of the ego view
NEIGHBOUR_STEPS, NEIGHBOUR_TELEPORT = 5, 0.2


class Diffusion(NamedTuple):
    """How far features travel: steps over the graph, and the share that starts again."""

    steps: int
    teleport: float


class Components(nn.Module):
    """Principal components of propagated features, centred and scaled.

    The propagation is given with every call, because it belongs to a graph and the components to
    the graph that they were fitted to.
    """

    basis: Tensor
    centre: Tensor
    scale: Tensor

    def __init__(self, num_features: int, count: int) -> None:
        super().__init__()
        width = min(count, num_features)
        self.register_buffer("basis", torch.zeros(num_features, width))
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("scale", torch.ones(()))

    def fit(self, x: Tensor | Sparse, propagate: LinearMap, transposed: LinearMap) -> Tensor:
        """Find the components and return them, (N, d)."""
        self.basis, rows = principal_components(x, propagate, transposed, self.basis.shape[1])
        self.centre = rows.mean(0)
        self.scale = scale_of(rows - self.centre)
        return (rows - self.centre) * self.scale

    def forward(self, x: Tensor | Sparse, propagate: LinearMap) -> Tensor:
        """The components of features, of this or another graph, (N, d)."""
        return (propagate(x @ self.basis) - self.centre) * self.scale


class Structural(nn.Module):
    """Personalised PageRank of the features: what lies near in the graph, at all distances."""

    def __init__(self, num_features: int, count: int, diffusion: Diffusion) -> None:
        super().__init__()
        self.components, self.diffusion = Components(num_features, count), diffusion
        self.width = self.components.basis.shape[1]

    def fit(self, x: Tensor | Sparse, graph: Data) -> Tensor:
        """Fit to a graph and return the view, (N, width)."""
        spread = self._propagation(graph)  # symmetric: its own transpose
        return self.components.fit(x, spread, spread)

    def forward(self, x: Tensor | Sparse, graph: Data) -> Tensor:
        """The view of a graph, (N, width)."""
        return cast(Tensor, self.components(x, self._propagation(graph)))

    def _propagation(self, graph: Data) -> LinearMap:
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        propagation = propagation_matrix(matrix, graph.x.device)
        steps, teleport = self.diffusion
        return lambda x: diffuse(propagation, x, steps, teleport)


class Semantic(nn.Module):
    """The structural view, averaged over nodes that are alike wherever they are in the graph."""

    scale: Tensor

    def __init__(
        self, num_features: int, count: int, diffusion: Diffusion, neighbours: int
    ) -> None:
        super().__init__()
        self.structural = Structural(num_features, count, diffusion)
        self.neighbours, self.width = neighbours, self.structural.width
        self.register_buffer("scale", torch.ones(()))

    def fit(self, x: Tensor | Sparse, graph: Data) -> Tensor:
        """Fit to a graph and return the view, (N, width)."""
        rows = self._averages(self.structural.fit(x, graph))
        self.scale = scale_of(rows)
        return rows * self.scale

    def forward(self, x: Tensor | Sparse, graph: Data) -> Tensor:
        """The view of a graph, (N, width)."""
        return self._averages(self.structural(x, graph)) * self.scale

    def _averages(self, rows: Tensor) -> Tensor:
        if rows.shape[0] < 2:
            return rows
        alike = neighbour_graph(rows.detach(), self.neighbours)
        propagation = propagation_matrix(alike, rows.device)
        return diffuse(propagation, rows, NEIGHBOUR_STEPS, NEIGHBOUR_TELEPORT)


class Ego(nn.Module):
    """A node's own features beside the means of its neighbours, one and two steps away."""

    def __init__(self, num_features: int, count: int) -> None:
        super().__init__()
        parts = [Components(num_features, count) for _ in range(HOPS + 1)]
        self.parts = nn.ModuleList(parts)
        self.width = sum(part.basis.shape[1] for part in parts)

    def fit(self, x: Tensor | Sparse, graph: Data) -> Tensor:
        """Fit to a graph and return the view, (N, width)."""
        means = self._means(graph)
        rows = []
        for hop, part in enumerate(self.parts):
            there = partial(_repeat, means.__matmul__, hop)
            back = partial(_repeat, means.transposed_product, hop)
            rows.append(cast(Components, part).fit(x, there, back))
        return self._joined(rows)

    def forward(self, x: Tensor | Sparse, graph: Data) -> Tensor:
        """The view of a graph, (N, width)."""
        means = self._means(graph)
        hops = [partial(_repeat, means.__matmul__, hop) for hop in range(len(self.parts))]
        rows = [part(x, there) for part, there in zip(self.parts, hops, strict=True)]
        return self._joined(rows)

    def _joined(self, parts: list[Tensor]) -> Tensor:
        """All parts side by side, as long as one view."""
        return torch.cat(parts, dim=1) / math.sqrt(len(parts))

    def _means(self, graph: Data) -> Sparse:
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        return neighbour_means(matrix, graph.x.device)


View = Structural | Semantic | Ego


def features(graph: Data) -> Tensor | Sparse:
    """Features as views take them, sparse if most are zero."""
    return sparsify(graph.x.float())


def scale_of(rows: Tensor) -> Tensor:
    """The factor that makes the root mean square length of rows `LENGTH`; 1 if all are zero."""
    length = rows.square().sum(1).mean().sqrt()
    return torch.where(length > 0, LENGTH / length, 1.0)


def _repeat(step: LinearMap, times: int, x: Tensor) -> Tensor:
    """Apply a step several times."""
    for _ in range(times):
        x = step(x)
    return x
