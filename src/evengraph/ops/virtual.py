"""Virtual class nodes, linked to nodes with uncertain predictions (BAT)."""

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
    """A graph to which `link` adds one virtual node per class, with new links at every call.

    Args:
        adjacency: The graph, undirected and without self-loops, (N, N).
        variant: Source of a node's alternative classes: its own prediction (`BAT0`) or the
            predictions of its neighbours (`BAT1`).

    Shapes:
        x: (N, F)
        nodes, labels: (n,), labelled nodes
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
        """Draw links by predictions; return the larger graph and the features of virtual nodes.

        Links go both ways. A virtual node has the mean features of all nodes that are predicted
        or known to be of its class.

        Shapes:
            logits: (N, C)
            returns: (N + C, N + C), and (C, F)
        """
        probabilities, num_classes = logits.softmax(1), logits.shape[1]
        predicted = probabilities.argmax(1).index_copy(0, self.nodes, self.labels)
        alternatives = probabilities
        if self.variant == "BAT1":
            alternatives = self._neighbours @ one_hot(predicted, num_classes).to(probabilities)
        links = link_probabilities(probabilities, predicted, alternatives, self.class_counts)
        nodes, virtual = (torch.rand_like(links) < links).nonzero(as_tuple=True)
        means = cluster_means(self.x, predicted, num_classes)
        graph = AttachedGraph(
            self._looped,
            self._degrees,
            nodes,
            virtual,
            torch.ones_like(nodes, dtype=means.dtype),
            num_classes,
            loop=1.0,
            how=self.how,
        )
        return graph, means

    @cached_property
    def _neighbours(self) -> Sparse:
        return Sparse.from_scipy(self.adjacency, self.nodes.device)

    @cached_property
    def _looped(self) -> Sparse:
        return with_self_loops(self.adjacency, self.nodes.device)

    @cached_property
    def _degrees(self) -> Tensor:
        """Row sums of the graph with self-loops, (N,)."""
        ones = torch.ones(self.adjacency.shape[0], 1, device=self.nodes.device)
        return (self._looped @ ones).squeeze(1)


def link_probabilities(
    probabilities: Tensor, predicted: Tensor, alternatives: Tensor, class_counts: Tensor
) -> Tensor:
    """Probability of a link between each node and the virtual node of each class.

    A node's risk is the excess of its uncertainty over the mean of its predicted class, times
    the size of that class over the largest, so a rare class keeps its nodes. The risk is shared
    among the other classes in proportion to the alternatives.

    Shapes:
        probabilities, alternatives: (N, C)
        predicted: (N,)
        class_counts: (C,), labelled nodes
        returns: (N, C)
    """
    uncertainty = 1 - probabilities.max(1).values
    sizes = torch.bincount(predicted, minlength=class_counts.numel()).clamp(min=1)
    means = scatter_sum(uncertainty, predicted, class_counts.numel()) / sizes
    risk = (uncertainty - means[predicted]).clamp(min=0)
    risk = risk * (class_counts / class_counts.max())[predicted]
    others = alternatives.scatter(1, predicted.unsqueeze(1), 0.0)
    total = others.sum(1, keepdim=True)
    return risk.unsqueeze(1) * others / torch.where(total > 0, total, 1.0)
