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
