"""Contributions to the mean of several models' probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data

from evengraph.nn.tracing import Contributions


def with_features(graph: Data, x: Tensor) -> Data:
    """The graph with other features; everything else is shared."""
    other = copy(graph)
    other.x = x
    return other


def margin_slope(first: Tensor, second: Tensor) -> Tensor:
    """(log a - log b) / (a - b), which makes a difference of logarithms linear in a and b."""
    gap, middle = first - second, (first + second) / 2
    close = gap.abs() <= 1e-6 * middle
    return torch.where(close, 1 / middle, (first.log() - second.log()) / gap)


def vote_shares(
    probabilities: Tensor, margins: Tensor, weights: Tensor, direction: Tensor
) -> Tensor:
    """What the margin of each member of a vote counts in the margin of the vote, (M,).

    The margin is the difference between the logarithms of two probabilities; that of the mean
    probability is exactly the sum of the members' margins times their shares. With one class in
    `direction`, the shares are those of the gradient.

    Shapes:
        probabilities: (M, C), of one node
        margins, weights: (M,)
        direction: (C,), 1 for the first class and -1 for the second, if there is one
    """
    p, margins, weights = probabilities.double(), margins.double(), weights.double()
    first = p[:, int(direction.argmax())]
    if direction.min() >= 0:
        return weights * first / (weights @ first)
    second = p[:, int(direction.argmin())]
    least = torch.finfo(torch.float32).tiny  # which a probability that is zero counts as
    slope = margin_slope((weights @ first).clamp(min=least), (weights @ second).clamp(min=least))
    return weights * slope * torch.where(margins.abs() < 1e-6, first, (first - second) / margins)


def weighted_sum(parts: Sequence[Contributions], weights: Sequence[float]) -> Contributions:
    """Contributions to a weighted sum of values, without clusters."""
    columns: dict[str, Tensor] = {}
    for part, weight in zip(parts, weights, strict=True):
        for origin, values in part.columns.items():
            columns[origin] = _add(columns.get(origin), weight * values.double())
    pairs = list(zip(parts, weights, strict=True))
    value = torch.stack([weight * part.value.double() for part, weight in pairs]).sum()
    total = torch.stack([weight * part.total.double() for part, weight in pairs]).sum(0)
    return Contributions(value, total, columns=columns)


def _add(one: Tensor | None, other: Tensor) -> Tensor:
    """The sum of two vectors; the shorter is filled up with zeros."""
    if one is None:
        return other
    width = max(len(one), len(other))
    return pad(one, (0, width - len(one))) + pad(other, (0, width - len(other)))
