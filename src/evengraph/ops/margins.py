"""Topology-aware margins (TAM): how unusual for its class a node's neighbourhood is."""

from __future__ import annotations

import torch
from torch import Tensor

from evengraph.ops.sparse import scatter_sum

LEAST = 1e-6  # lower bound of shares and divergences in denominators
SMOOTH = 0.6  # relative temperature of an empty class; 1 for a class of all nodes


def soft_labels(
    logits: Tensor, nodes: Tensor, labels: Tensor, class_counts: Tensor, temperature: float
) -> Tensor:
    """One-hot labels of labelled nodes, and predictions of others, smoother for rare classes.

    Args:
        temperature: Factor of the logits of the largest class.

    Shapes:
        logits: (N, C)
        nodes, labels: (n,), labelled nodes
        returns: (N, C), rows sum to one
    """
    share = class_counts / class_counts.sum()
    warmth = (1 - SMOOTH) * share + SMOOTH
    scale = temperature * (warmth + 1 - warmth.max())
    predicted = (logits * scale).softmax(1)
    return predicted.index_copy(0, nodes, _one_hot(labels, logits.shape[1]).to(predicted))


def topology_margins(
    around: Tensor, labels: Tensor, connectivity: float, distribution: float
) -> Tensor:
    """Terms to add to the logits of labelled nodes in training.

    The first margin, log of the connectivity (ACM), is negative for a class that is more common
    around a node, relative to its own class, than around other nodes of its class. The second
    (ADM) grows as the node's neighbourhood moves from its own class towards the other.

    Args:
        connectivity: Weight of the first margin.
        distribution: Weight of the second.

    Shapes:
        around: (n, C), class shares around each labelled node, itself included
        labels: (n,); every class occurs
        returns: (n, C), zero for a node's own class
    """
    num_classes = around.shape[1]
    is_label = _one_hot(labels, num_classes)
    counts = is_label.sum(0).unsqueeze(1)
    usual = scatter_sum(around, labels, num_classes) / counts.clamp(min=1)  # (C, C)
    around, usual = around.clamp(min=LEAST), usual.clamp(min=LEAST)
    expected = usual[labels]  # of the class of each node, (n, C)
    index = labels.unsqueeze(1)
    ratio = around.gather(1, index) / expected.gather(1, index) * expected / around
    first = ratio.clamp(max=1).log()
    to_class = divergences(around, usual)  # of each node from each class, (n, C)
    between = divergences(usual, usual).clamp(min=LEAST)[labels]  # of its class from each
    to_own = to_class.gather(1, index)
    second = (to_own**2 + between**2 - to_class**2) / (2 * between**2)
    return (connectivity * first - distribution * second).masked_fill(is_label, 0.0)


def _one_hot(labels: Tensor, num_classes: int) -> Tensor:
    """Labels as a bool mask, (n, C)."""
    return labels.unsqueeze(1) == torch.arange(num_classes, device=labels.device)


def divergences(x: Tensor, y: Tensor) -> Tensor:
    """Jensen-Shannon divergence of every row of x from every row of y.

    Shapes:
        x: (n, C), y: (m, C), positive
        returns: (n, m)
    """
    columns = []
    for row in y:  # few rows; avoids a tensor of n x m x C
        middle = ((x + row) / 2).log()
        halves = x * (x.log() - middle) + row * (row.log() - middle)
        columns.append(halves.sum(1) / 2)
    return torch.stack(columns, dim=1)
