"""Topology-aware margins (TAM): how unusual for its class are the classes around a node."""

from __future__ import annotations

import torch
from torch import Tensor

from evengraph.ops.sparse import scatter_sum

LEAST = 1e-6  # of a share, or of a divergence, that something is divided by
SMOOTH = 0.6  # temperature of a class of no nodes, where that of all nodes is one


def soft_labels(
    logits: Tensor, nodes: Tensor, labels: Tensor, class_counts: Tensor, temperature: float
) -> Tensor:
    """Labels where they are known, elsewhere predictions, smoother towards rare classes.

    Args:
        logits: Of all nodes.
        nodes: Those with labels.
        labels: Their classes.
        class_counts: Labelled nodes of each class.
        temperature: What logits are multiplied by, for the largest class.

    Shapes:
        logits: (N, C)
        nodes, labels: (n,)
        returns: (N, C), rows sum to one
    """
    share = class_counts / class_counts.sum()
    warmth = (1 - SMOOTH) * share + SMOOTH
    scale = temperature * (warmth + 1 - warmth.max())
    predicted = (logits * scale).softmax(1)
    return predicted.index_copy(0, nodes, _own(labels, logits.shape[1]).to(predicted))


def topology_margins(
    around: Tensor, labels: Tensor, connectivity: float, distribution: float
) -> Tensor:
    """What to add to the logits of labelled nodes in training.

    The first margin, log of the connectivity (ACM), is negative for a class that is more present
    around a node, against its own class, than around others of its class. The second (ADM) is
    the larger the further the node's surroundings lie on the way from its class to the other.

    Args:
        around: Shares of the classes around each labelled node, itself included.
        labels: Its class; every class has a node.
        connectivity: Strength of the first margin.
        distribution: Strength of the second.

    Shapes:
        around: (n, C)
        labels: (n,)
        returns: (n, C), zero for a node's own class
    """
    num_classes = around.shape[1]
    own = _own(labels, num_classes)
    counts = own.sum(0).unsqueeze(1)
    usual = scatter_sum(around, labels, num_classes) / counts.clamp(min=1)  # (C, C)
    around, usual = around.clamp(min=LEAST), usual.clamp(min=LEAST)
    mine = usual[labels]  # what is usual in the class of each node, (n, C)
    place = labels.unsqueeze(1)  # of a node's own class in its row
    ratio = around.gather(1, place) / mine.gather(1, place) * mine / around
    first = ratio.clamp(max=1).log()
    to_class = divergences(around, usual)  # of each node from each class, (n, C)
    between = divergences(usual, usual).clamp(min=LEAST)[labels]  # of its class from each
    to_own = to_class.gather(1, place)
    second = (to_own**2 + between**2 - to_class**2) / (2 * between**2)
    return (connectivity * first - distribution * second).masked_fill(own, 0.0)


def _own(labels: Tensor, num_classes: int) -> Tensor:
    """Which class is a node's own, bool, (n, C)."""
    return labels.unsqueeze(1) == torch.arange(num_classes, device=labels.device)


def divergences(one: Tensor, other: Tensor) -> Tensor:
    """Jensen-Shannon divergences of every row of one from every row of the other.

    Shapes:
        one: (n, C), other: (m, C), positive
        returns: (n, m)
    """
    columns = []
    for row in other:  # few rows, and no n x m x C at once
        middle = ((one + row) / 2).log()
        halves = one * (one.log() - middle) + row * (row.log() - middle)
        columns.append(halves.sum(1) / 2)
    return torch.stack(columns, dim=1)
