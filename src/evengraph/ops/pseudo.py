"""Class-balanced pseudo-labels (Eq. 9 to 12)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class PseudoLabels(NamedTuple):
    """Chosen nodes and the class each is taken for.

    Shapes:
        nodes: int64, (M,), ascending
        labels: int64, (M,)
    """

    nodes: Tensor
    labels: Tensor


def balanced_pseudo_labels(
    probabilities: Tensor, class_counts: Tensor, unlabelled: Tensor, threshold: float
) -> PseudoLabels:
    """Fill every class up to the size of the largest with its most confident unlabelled nodes.

    A node stands for its most probable class if that probability exceeds the threshold. Class c
    takes its max(counts) - counts[c] most confident nodes, or all it has; nodes of equal
    confidence are taken in the order of their ids.

    Args:
        probabilities: Predicted class probabilities of all nodes.
        class_counts: Labelled nodes of each class.
        unlabelled: Which nodes may get a pseudo-label.
        threshold: Confidence that a node must exceed.

    Shapes:
        probabilities: (N, C)
        class_counts: (C,)
        unlabelled: bool, (N,)
    """
    nodes, labels, confidence = _confident(probabilities, unlabelled, threshold)
    wanted = class_counts.max() - class_counts  # (C,)
    order = torch.argsort(confidence, descending=True, stable=True)
    order = order[torch.argsort(labels[order], stable=True)]  # by class, then by confidence
    sorted_labels = labels[order]
    found = torch.bincount(labels, minlength=probabilities.shape[1])
    first = found.cumsum(0) - found  # where each class starts
    rank = torch.arange(order.numel(), device=order.device) - first[sorted_labels]
    chosen = order[rank < wanted[sorted_labels]].sort().values
    return PseudoLabels(nodes[chosen], labels[chosen])


def balanced_pseudo_mask(
    probabilities: Tensor, wanted: Tensor, unlabelled: Tensor, threshold: Tensor
) -> tuple[Tensor, Tensor]:
    """The same choice for several replicas at once, as masks: shapes do not depend on values.

    Args:
        probabilities: Predicted class probabilities of all nodes.
        wanted: Nodes that each class lacks.
        unlabelled: Which nodes may get a pseudo-label.
        threshold: Confidence that a node must exceed.

    Shapes:
        probabilities: (R, N, C)
        wanted: int64, (R, C)
        unlabelled: bool, (R, N)
        threshold: (R, 1)
        returns: which nodes are chosen, bool, (R, N), and the class of every node, (R, N)
    """
    confidence, labels = probabilities.max(dim=2)
    able = unlabelled & (confidence > threshold)
    # Class by class, the most confident first; of equals the lower id, as the sort is stable.
    place = torch.where(able, labels.double() * 2 - confidence.double(), torch.inf)
    order = torch.argsort(place, dim=1, stable=True)
    sorted_labels = labels.gather(1, order)
    found = torch.zeros_like(wanted).scatter_add(1, labels, able.long())
    first = found.cumsum(1) - found
    position = torch.arange(labels.shape[1], device=labels.device)
    rank = position - first.gather(1, sorted_labels)
    taken = able.gather(1, order) & (rank < wanted.gather(1, sorted_labels))
    return torch.zeros_like(able).scatter(1, order, taken), labels


def confident_pseudo_labels(
    probabilities: Tensor, unlabelled: Tensor, threshold: float
) -> PseudoLabels:
    """Every confident unlabelled node, whatever its class: the paper's ablation of balance."""
    nodes, labels, _ = _confident(probabilities, unlabelled, threshold)
    return PseudoLabels(nodes, labels)


def _confident(
    probabilities: Tensor, unlabelled: Tensor, threshold: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Nodes, classes and confidences of the confident unlabelled nodes (Eq. 11)."""
    confidence, labels = probabilities.max(dim=1)
    nodes = (unlabelled & (confidence > threshold)).nonzero().squeeze(1)
    return nodes, labels[nodes], confidence[nodes]
