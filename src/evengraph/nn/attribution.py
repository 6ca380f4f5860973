"""Contributions of features to the logits of a node, and to the mean of several models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data


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


TRACERS = {"UniGNN": "evengraph.fast.tracing"}
"""Modules whose `contributions` say more than gradients do, by the name of the method's class."""


OWN, OTHERS = "own", "others"
"""Whose features a column's contribution comes from: the node's own, or those of other nodes."""


class Contributions(NamedTuple):
    """Contribution of each node's features to a weighted sum of one node's logits.

    A ReLU network is locally linear, so gradient times input decomposes its output exactly. Input
    is measured from the mean over all nodes: what remains is what a graph of average nodes gets,
    biases included, and an indicator of a common category does not count as a peculiarity.

    Shapes:
        value: (), the sum of logits
        total: (N,)
        along_paths: (N,), the part of the total that went over A_struct only
        within_clusters: (N,), the part of the total that went through shared clusters only
        clusters: int64, (N,) per layer
        columns: (F,) per origin: `OWN`, the features of the node itself, and those of others; where
            the degree is one of a method's columns it is the last, (F + 1,)
    """

    value: Tensor
    total: Tensor
    along_paths: Tensor | None = None
    within_clusters: Tensor | None = None
    clusters: tuple[Tensor, ...] = ()
    columns: Mapping[str, Tensor] = {}


def gradient_times_input(
    value_of: Callable[[Tensor], Tensor], x: Tensor, node: int
) -> Contributions:
    """Contributions in any network, given as a function from features to the value to explain.

    Shapes:
        x: (N, F)
        value_of: (N, F) to ()
    """
    with torch.enable_grad():
        leaf = x.detach().float().requires_grad_()
        value = value_of(leaf)
        (gradient,) = torch.autograd.grad(value, leaf)
    parts = gradient * (leaf.detach() - leaf.detach().mean(0))
    columns = {OWN: parts[node], OTHERS: parts.sum(0) - parts[node]}
    return Contributions(value.detach(), parts.sum(1), columns=columns)
