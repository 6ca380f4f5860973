"""Contributions of every node's features to the logits of one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

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
