"""Networks of two layers that are trained side by side as one."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from evengraph.core.ranks import Part
from evengraph.ops import relu_dropout

ROWS = 2**16  # rows that all members classify at a time


class Members(nn.Module):
    """Independent networks, several on each view: one product per layer computes all of them.

    Args:
        views: Number of views.
        count: Networks per view.
        inputs: Width of a view.
        hidden: Width of a network.
        num_classes: Number of classes.
        dropout: Dropout rate after the first layer.

    Shapes:
        rows: (V, n, inputs)
        forward: (M, n, C), view by view
    """

    decays = False  # each member has a weight decay of its own

    def __init__(
        self, views: int, count: int, inputs: int, hidden: int, num_classes: int, dropout: float
    ) -> None:
        super().__init__()
        self.count, self.dropout = count, dropout
        first, second = 1 / math.sqrt(max(inputs, 1)), 1 / math.sqrt(hidden)
        members, units = views * count, count * hidden
        self.first = nn.Parameter(torch.empty(views, inputs, units).uniform_(-first, first))
        self.bias = nn.Parameter(torch.empty(views, 1, units).uniform_(-first, first))
        shape = members, hidden, num_classes
        self.second = nn.Parameter(torch.empty(shape).uniform_(-second, second))
        self.second_bias = nn.Parameter(torch.zeros(members, 1, num_classes))

    def hidden(self, rows: Tensor) -> Tensor:
        """The first layer before its activation, (V, n, M / V h)."""
        return torch.baddbmm(self.bias, rows, self.first)

    def classify(
        self, hidden: Tensor, *, dropout: bool = False, part: Part | None = None
    ) -> Tensor:
        """Logits from the first layer, (M, n, C); `part` as in `relu_dropout`."""
        active = relu_dropout(hidden, self.dropout, training=dropout, part=part)
        by_member = active.unflatten(2, (self.count, -1)).transpose(1, 2).flatten(0, 1)
        return torch.baddbmm(self.second_bias, by_member, self.second)

    def forward(self, rows: Tensor) -> Tensor:
        """Logits of every member, some rows at a time: the first layer is wider than its input."""
        parts = [self.classify(self.hidden(part)) for part in rows.split(ROWS, dim=1)]
        return torch.cat(parts, dim=1)

    def networks(self) -> list[list[tuple[Tensor, Tensor]]]:
        """The two layers of every member, each a weight, (inputs, outputs), and a bias."""
        first, bias = (
            layer.unflatten(2, (self.count, -1)).transpose(1, 2).flatten(0, 1)
            for layer in (self.first, self.bias)
        )
        layers = zip(first, bias, self.second, self.second_bias, strict=True)
        return [[(one, shift[0]), (two, shift_two[0])] for one, shift, two, shift_two in layers]

    def penalty(self, decay: Tensor) -> Tensor:
        """Half the squared first layer of each member times its weight decay, added up.

        Shapes:
            decay: (M,)
        """
        squares = (self.first.square().sum(1) + self.bias.square().squeeze(1)).flatten()
        per_member: Tensor = squares.unflatten(0, (len(decay), -1)).sum(1)
        return (per_member * decay).sum() / 2

    @torch.no_grad()
    def take(self, other: Members, which: Tensor) -> None:
        """Copy the weights of some members of another network.

        Shapes:
            which: bool, (M,)
        """
        units = which.repeat_interleave(self.first.shape[2] // self.count)
        units = units.view(self.first.shape[0], 1, -1)
        members = which[:, None, None]
        for name, mask in (
            ("first", units),
            ("bias", units),
            ("second", members),
            ("second_bias", members),
        ):
            mine, theirs = getattr(self, name), getattr(other, name)
            mine.copy_(torch.where(mask, theirs, mine))
