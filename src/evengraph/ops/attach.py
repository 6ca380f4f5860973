"""New nodes attached to a graph: propagation over both without building the larger matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from evengraph.ops.propagate import Normalisation, Sparse, scatter_sum, take
from evengraph.ops.subset_products import Between


@dataclass(frozen=True, eq=False)
class Attached:
    """A graph of N nodes with M new ones, normalised, for use as `attached @ x`.

    Row v of the product is the weighted sum over v's neighbours divided by the sum of the
    weights (`row`), or the symmetric form of it; a row without weights gives zeros. The weights
    may carry gradients.

    Args:
        known: Weights among the N nodes; some of them may themselves be attached to others.
        known_sums: Their row sums.
        nodes: The known node of each new edge.
        new: Its new node, from 0 to M - 1.
        weights: Its weight.
        num_new: M.
        both_ways: Whether known nodes hear from new ones, too.
        loop: Weight of a new node for itself.
        how: Kind of normalisation.

    Shapes:
        known: (N, N), known_sums: (N,)
        nodes, new, weights: (K,)
        x: (N + M, d)
    """

    known: Sparse | Attached
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
        heard = self.known @ known
        if self.both_ways:
            heard = heard + scatter_sum(weights * take(new, self.new), self.nodes, num_known)
        arrived = scatter_sum(weights * take(known, self.nodes), self.new, self.num_new)
        arrived = arrived + self.loop * new
        return self._scale * torch.cat([heard, arrived])

    @cached_property
    def _scale(self) -> Tensor:
        """What a row is multiplied by, (N + M, 1)."""
        return _scale(self._sums(), self.how)

    def _sums(self) -> Tensor:
        """Sums of the weights of every row, (N + M,)."""
        known = self.known_sums
        if self.both_ways:
            known = known + scatter_sum(self.weights, self.nodes, known.numel())
        arrived = scatter_sum(self.weights, self.new, self.num_new) + self.loop
        return torch.cat([known, arrived])


@dataclass(frozen=True, eq=False)
class Stacked:
    """Features of N nodes and of M new ones below them, for use as `stacked @ weight`.

    Those of the known nodes stay as they are, sparse or dense, however often new ones change.

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
class Repeated:
    """A graph in which some nodes stand once more, with all their links, for use as `repeated @ x`.

    As a matrix it is the graph's own with the rows and columns of the seeds repeated; a node
    that stands k times is linked to itself k times over. It is never built: what the copies of
    a node send is what the node sends for them, and what they hear is what it hears.

    Args:
        matrix: The graph's propagation matrix.
        seeds: The original of each copy.
        scale: What each row, and with `both_sides` each column, is multiplied by.
        both_sides: Whether columns are scaled, too.

    Shapes:
        matrix: (N, N)
        seeds: (M,)
        scale: (N,)
        x: (N + M, d)
    """

    matrix: Sparse
    seeds: Tensor
    scale: Tensor | None = None
    both_sides: bool = False

    @classmethod
    def normalised(cls, closed: Sparse, seeds: Tensor, how: Normalisation) -> Repeated:
        """Repeat nodes of a graph with self-loops, then normalise the larger graph."""
        ones = torch.ones(closed.shape[0] + seeds.numel(), 1, device=seeds.device)
        sums = (cls(closed, seeds) @ ones)[: closed.shape[0]].squeeze(1)
        return cls(closed, seeds, _scale(sums, how).squeeze(1), how == "symmetric")

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
        heard = self.matrix @ sent
        if self.scale is not None:
            heard = self.scale.unsqueeze(1) * heard
        return torch.cat([heard, take(heard, self.seeds)])


def _scale(sums: Tensor, how: Normalisation) -> Tensor:
    """One over each sum or its root, (N, 1); 0 for a row without weights, which means nothing."""
    positive = sums > 0
    inverse = torch.where(positive, 1 / torch.where(positive, sums, 1.0), 0.0).unsqueeze(1)
    return inverse.sqrt() if how == "symmetric" else inverse


Propagation = Sparse | Attached | Repeated | Between
"""What a graph convolution propagates with."""
