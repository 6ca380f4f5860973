"""New nodes attached to a graph: propagation over both without building the larger matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from evengraph.ops.propagate import Normalisation
from evengraph.ops.sparse import Sparse, scatter_sum, take
from evengraph.ops.subset_products import SubsetMatrix


@dataclass(frozen=True, eq=False)
class AttachedGraph:
    """A graph of N nodes with M new ones, normalised, for use as `graph @ x`.

    Row v of the product is the weighted sum over v's neighbours divided by the sum of the
    weights (`row`), or its symmetric form; a row without weights gives zeros. The weights may
    carry gradients.

    Args:
        known: Weights among the N nodes; it may itself be an attached graph.
        known_sums: Their row sums.
        nodes: The known node of each new edge.
        new: Its new node, from 0 to M - 1.
        both_ways: Whether known nodes also receive from new ones.
        loop: Weight of a new node's self-loop.

    Shapes:
        known: (N, N), known_sums: (N,)
        nodes, new, weights: (K,)
        x: (N + M, d)
    """

    known: Sparse | AttachedGraph
    known_sums: Tensor
    nodes: Tensor
    new: Tensor
    weights: Tensor
    num_new: int
    both_ways: bool = True
    loop: float = 0.0
    how: Normalisation = "row"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, new nodes included."""
        size = self.known.shape[0] + self.num_new
        return size, size

    def __matmul__(self, x: Tensor) -> Tensor:
        num_known = self.known.shape[0]
        if self.how == "symmetric":
            x = self._scale * x
        known, new = x.tensor_split([num_known])
        weights = self.weights.unsqueeze(1)
        at_known = self.known @ known
        if self.both_ways:
            at_known = at_known + scatter_sum(weights * take(new, self.new), self.nodes, num_known)
        at_new = scatter_sum(weights * take(known, self.nodes), self.new, self.num_new)
        at_new = at_new + self.loop * new
        return self._scale * torch.cat([at_known, at_new])

    @cached_property
    def _scale(self) -> Tensor:
        """The factor of each row, (N + M, 1)."""
        known = self.known_sums
        if self.both_ways:
            known = known + scatter_sum(self.weights, self.nodes, known.numel())
        new = scatter_sum(self.weights, self.new, self.num_new) + self.loop
        return _scale(torch.cat([known, new]), self.how)


@dataclass(frozen=True, eq=False)
class StackedFeatures:
    """Features of N nodes and of M new ones below them, for use as `stacked @ weight`.

    The features of known nodes keep their form, sparse or dense, however often new ones change.

    Shapes:
        known: (N, F)
        new: (M, F)
    """

    known: Tensor | Sparse
    new: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, new nodes included."""
        return self.known.shape[0] + self.new.shape[0], self.new.shape[1]

    def __matmul__(self, weight: Tensor) -> Tensor:
        return torch.cat([self.known @ weight, self.new @ weight])


@dataclass(frozen=True, eq=False)
class GraphWithCopies:
    """A graph with copies of some nodes, including all their edges, for use as `graph @ x`.

    As a matrix it is the original with the rows and columns of the seeds repeated; a node with k
    copies, itself included, is connected to each of them. The matrix is never built: a node sends
    for its copies, and they receive what it receives.

    Shapes:
        matrix: (N, N), the graph's propagation matrix
        seeds: (M,), the original of each copy
        scale: (N,), factor of each row, and with `both_sides` of each column
        x: (N + M, d)
    """

    matrix: Sparse
    seeds: Tensor
    scale: Tensor | None = None
    both_sides: bool = False

    @classmethod
    def normalised(cls, looped: Sparse, seeds: Tensor, how: Normalisation) -> GraphWithCopies:
        """Copy nodes of a graph with self-loops, then normalise the larger graph."""
        ones = torch.ones(looped.shape[0] + seeds.numel(), 1, device=seeds.device)
        sums = (cls(looped, seeds) @ ones)[: looped.shape[0]].squeeze(1)
        return cls(looped, seeds, _scale(sums, how).squeeze(1), how == "symmetric")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, copies included."""
        size = self.matrix.shape[0] + self.seeds.numel()
        return size, size

    def __matmul__(self, x: Tensor) -> Tensor:
        num_known = self.matrix.shape[0]
        known, new = x.tensor_split([num_known])
        sent = known + scatter_sum(new, self.seeds, num_known)
        if self.scale is not None and self.both_sides:
            sent = self.scale.unsqueeze(1) * sent
        received = self.matrix @ sent
        if self.scale is not None:
            received = self.scale.unsqueeze(1) * received
        return torch.cat([received, take(received, self.seeds)])


def _scale(sums: Tensor, how: Normalisation) -> Tensor:
    """One over each row sum or its root, (N, 1); 0 for a row without weights."""
    positive = sums > 0
    inverse = torch.where(positive, 1 / torch.where(positive, sums, 1.0), 0.0).unsqueeze(1)
    return inverse.sqrt() if how == "symmetric" else inverse


Propagation = Sparse | AttachedGraph | GraphWithCopies | SubsetMatrix
"""The right-hand operands of a graph convolution's propagation."""
