"""New nodes attached to a graph: propagation over both without building the larger matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from evengraph.ops.propagate import Normalisation, Sparse, scatter_sum, take


@dataclass(frozen=True, eq=False)
class Attached:
    """A graph of N nodes with M new ones, normalised, for use as `attached @ x`.

    Row v of the product is the weighted sum over v's neighbours divided by the sum of the
    weights (`row`), or the symmetric form of it; a row without weights gives zeros. The weights
    may carry gradients.

    Args:
        known: Weights among the N nodes.
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

    known: Sparse
    known_sums: Tensor
    nodes: Tensor
    new: Tensor
    weights: Tensor
    num_new: int
    both_ways: bool = True
    loop: float = 0.0
    how: Normalisation = "row"

    def __matmul__(self, x: Tensor) -> Tensor:
        num_known = self.known.shape[0]
        inverse = _inverse(self._sums()).unsqueeze(1)  # (N + M, 1)
        if self.how == "symmetric":
            inverse = inverse.sqrt()
            x = inverse * x
        known, new = x.tensor_split([num_known])
        weights = self.weights.unsqueeze(1)
        heard = self.known @ known
        if self.both_ways:
            heard = heard + scatter_sum(weights * take(new, self.new), self.nodes, num_known)
        arrived = scatter_sum(weights * take(known, self.nodes), self.new, self.num_new)
        arrived = arrived + self.loop * new
        return inverse * torch.cat([heard, arrived])

    def _sums(self) -> Tensor:
        """Sums of the weights of every row, (N + M,)."""
        known = self.known_sums
        if self.both_ways:
            known = known + scatter_sum(self.weights, self.nodes, known.numel())
        arrived = scatter_sum(self.weights, self.new, self.num_new) + self.loop
        return torch.cat([known, arrived])


def _inverse(sums: Tensor) -> Tensor:
    """One over each sum; 0 for a row without weights, which has nothing to average."""
    positive = sums > 0
    return torch.where(positive, 1 / torch.where(positive, sums, 1.0), 0.0)
