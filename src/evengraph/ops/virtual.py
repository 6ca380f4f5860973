"""Virtual nodes of classes, linked to nodes whose predictions are at risk (BAT)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from evengraph.ops.attach import AttachedGraph
from evengraph.ops.kmeans import cluster_means
from evengraph.ops.propagate import Normalisation, with_self_loops
from evengraph.ops.sparse import Sparse, scatter_sum

Variant = Literal["BAT0", "BAT1"]


@dataclass(frozen=True, eq=False)
class VirtualNodes:
    """A graph in which each class may get a virtual node, with links of its own every time.

    Args:
        adjacency: Of the graph, undirected and without self-loops.
        x: Features of its nodes.
        nodes: Those with labels.
        labels: Their classes.
        class_counts: Labelled nodes of each class.
        variant: What a node may be instead of what it is predicted to be: `BAT0` asks its own
            prediction, `BAT1` what its neighbours are predicted to be.
        how: Kind of normalisation of the larger graph.

    Shapes:
        adjacency: (N, N)
        x: (N, F)
        nodes, labels: (n,)
        class_counts: (C,)
    """

    adjacency: sp.spmatrix
    x: Tensor | Sparse
    nodes: Tensor
    labels: Tensor
    class_counts: Tensor
    variant: Variant
    how: Normalisation = "row"

    @torch.no_grad()
    def link(self, logits: Tensor) -> tuple[AttachedGraph, Tensor]:
        """Draw links by predictions: the larger graph, and the features of its virtual nodes.

        Nodes and virtual nodes hear one another. A virtual node has the mean features of all
        that are predicted to be of its class, or known to be.

        Shapes:
            logits: (N, C)
            returns: (N + C, N + C), and (C, F)
        """
        probabilities, num_classes = logits.softmax(1), logits.shape[1]
        predicted = probabilities.argmax(1).index_copy(0, self.nodes, self.labels)
        instead = probabilities
        if self.variant == "BAT1":
            instead = self._neighbours @ one_hot(predicted, num_classes).to(probabilities)
        chances = link_probabilities(probabilities, predicted, instead, self.class_counts)
        ends, virtual = (torch.rand_like(chances) < chances).nonzero(as_tuple=True)
        means = cluster_means(self.x, predicted, num_classes)
        graph = AttachedGraph(
            self._joined,
            self._degrees,
            ends,
            virtual,
            torch.ones_like(ends, dtype=means.dtype),
            num_classes,
            loop=1.0,
            how=self.how,
        )
        return graph, means

    @cached_property
    def _neighbours(self) -> Sparse:
        return Sparse.from_scipy(self.adjacency, self.nodes.device)

    @cached_property
    def _joined(self) -> Sparse:
        return with_self_loops(self.adjacency, self.nodes.device)

    @cached_property
    def _degrees(self) -> Tensor:
        """Sums of the rows of the graph with self-loops, (N,)."""
        ones = torch.ones(self.adjacency.shape[0], 1, device=self.nodes.device)
        return (self._joined @ ones).squeeze(1)


def link_probabilities(
    probabilities: Tensor, predicted: Tensor, instead: Tensor, class_counts: Tensor
) -> Tensor:
    """How likely each node is linked to the virtual node of each class.

    A node's risk is what its uncertainty exceeds the mean of its predicted class by, times the
    size of that class over the largest: a rare class keeps the nodes that it has won. The risk
    is shared among the other classes in proportion to what the node may be instead.

    Shapes:
        probabilities, instead: (N, C)
        predicted: (N,)
        class_counts: (C,), labelled nodes
        returns: (N, C)
    """
    uncertainty = 1 - probabilities.max(1).values
    sizes = torch.bincount(predicted, minlength=class_counts.numel()).clamp(min=1)
    means = scatter_sum(uncertainty, predicted, class_counts.numel()) / sizes
    risk = (uncertainty - means[predicted]).clamp(min=0)
    risk = risk * (class_counts / class_counts.max())[predicted]
    others = instead.scatter(1, predicted.unsqueeze(1), 0.0)
    total = others.sum(1, keepdim=True)
    return risk.unsqueeze(1) * others / torch.where(total > 0, total, 1.0)
