"""Networks of two layers that are trained side by side as one."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from evengraph.ops import relu_dropout


class Members(nn.Module):
    """Several independent networks on the same rows: one product per layer computes all of them.

    Shapes:
        x: (n, d)
        forward: (M, n, C)
    """

    decays = False  # each member has a weight decay of its own

    def __init__(
        self, count: int, inputs: int, hidden: int, num_classes: int, dropout: float
    ) -> None:
        super().__init__()
        self.count, self.dropout = count, dropout
        first, second = 1 / math.sqrt(max(inputs, 1)), 1 / math.sqrt(hidden)
        self.first = nn.Parameter(torch.empty(inputs, count * hidden).uniform_(-first, first))
        self.bias = nn.Parameter(torch.empty(count * hidden).uniform_(-first, first))
        self.second = nn.Parameter(
            torch.empty(count, hidden, num_classes).uniform_(-second, second)
        )
        self.second_bias = nn.Parameter(torch.zeros(count, 1, num_classes))

    def hidden(self, x: Tensor) -> Tensor:
        """The first layer before its activation, (n, M h)."""
        return torch.addmm(self.bias, x, self.first)

    def classify(self, hidden: Tensor, *, dropout: bool = False) -> Tensor:
        """Logits from the first layer, (M, n, C)."""
        active = relu_dropout(hidden, self.dropout, training=dropout)
        by_member = active.unflatten(1, (self.count, -1)).transpose(0, 1)
        return torch.baddbmm(self.second_bias, by_member, self.second)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of every member."""
        return self.classify(self.hidden(x))

    def penalty(self, decay: Tensor) -> Tensor:
        """Half the squared first layer of each member times its weight decay, added up.

        Shapes:
            decay: (M,)
        """
        squares = self.first.square().sum(0) + self.bias.square()
        per_member: Tensor = squares.unflatten(0, (self.count, -1)).sum(1)
        return (per_member * decay).sum() / 2

    @torch.no_grad()
    def take(self, other: Members, which: Tensor) -> None:
        """Copy the weights of some members of another network.

        Shapes:
            which: bool, (M,)
        """
        for mine, theirs in zip(self.parameters(), other.parameters(), strict=True):
            if mine.dim() == 3:  # members come first, elsewhere their units come last
                mask = which[:, None, None]
            else:
                mask = which.repeat_interleave(mine.shape[-1] // self.count)
            mine.copy_(torch.where(mask, theirs, mine))
