"""Class-balanced pseudo-labels (Eq. 10 to 12)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

Selection = Literal["balanced", "all", "none"]
"""Which confident nodes get a pseudo-label: those that rare classes lack, all, or none."""


class PseudoLabels(NamedTuple):
    """Selected nodes, ascending, and the pseudo-label of each, (M,)."""

    nodes: Tensor
    labels: Tensor


def log_odds(logits: Tensor) -> Tensor:
    """Log-odds of the most probable class, in double precision: unlike its probability, they do
    not round to one value for many nodes.

    Shapes:
        logits: (..., C), result (...)
    """
    logits = logits.double()
    top, label = logits.max(dim=-1, keepdim=True)
    return top.squeeze(-1) - logits.scatter(-1, label, -torch.inf).logsumexp(-1)


def select_pseudo_labels(
    selection: Selection,
    probabilities: Tensor,
    class_counts: Tensor,
    unlabelled: Tensor,
    threshold: float,
    order: Tensor | None = None,
) -> PseudoLabels:
    """Pseudo-labels of one run; arguments are those of `balanced_pseudo_labels`."""
    if selection == "balanced":
        return balanced_pseudo_labels(probabilities, class_counts, unlabelled, threshold, order)
    eligible, labels, _ = _confident(probabilities, unlabelled, threshold)
    eligible &= selection == "all"  # the paper's ablation of balance, or no pseudo-labels
    nodes = eligible.nonzero().squeeze(1)
    return PseudoLabels(nodes, labels[nodes])


def _confident(
    probabilities: Tensor, unlabelled: Tensor, threshold: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Which unlabelled nodes exceed the threshold (Eq. 11), and class and confidence of all."""
    confidence, labels = probabilities.max(dim=-1)
    return unlabelled & (confidence > threshold), labels, confidence


def balanced_pseudo_labels(
    probabilities: Tensor,
    class_counts: Tensor,
    unlabelled: Tensor,
    threshold: float,
    order: Tensor | None = None,
) -> PseudoLabels:
    """Fill every class up to the size of the largest with its most confident unlabelled nodes.

    A node is a candidate for its most probable class if that probability exceeds the threshold.
    Class c takes its max(counts) - counts[c] most confident candidates, or all of them; nodes of
    equal confidence, in single precision, are taken in the order of their ids.

    Shapes:
        probabilities: (N, C)
        class_counts: (C,), labelled nodes
        unlabelled: bool, (N,), nodes that may get a pseudo-label
        order: (N,), what ranks the candidates instead of their probability
    """
    eligible, labels, confidence = _confident(probabilities, unlabelled, threshold)
    order, chosen = confidence.float() if order is None else order, torch.zeros_like(eligible)
    for label, wanted in enumerate((class_counts.max() - class_counts).tolist()):
        nodes = (eligible & (labels == label)).nonzero().squeeze(1) if wanted else labels[:0]
        if nodes.numel() > wanted:
            values = order[nodes]
            last = values.topk(wanted, sorted=False).values.min()
            above, equal = values > last, (values == last).nonzero().squeeze(1)
            above[equal[: wanted - int(above.sum())]] = True  # the first ids
            nodes = nodes[above]
        chosen[nodes] = True
    nodes = chosen.nonzero().squeeze(1)
    return PseudoLabels(nodes, labels[nodes])


def select_pseudo_mask(
    selection: Selection,
    probabilities: Tensor,
    wanted: Tensor,
    unlabelled: Tensor,
    threshold: float,
    order: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`select_pseudo_labels` of R replicas, as masks, (R, N): shapes do not depend on values."""
    # `wanted`: nodes that each class lacks, (R, C); returns the selected nodes and all classes
    eligible, labels, confidence = _confident(probabilities, unlabelled, threshold)
    if selection != "balanced":
        return (eligible if selection == "all" else torch.zeros_like(eligible)), labels
    # By class, then by confidence, then by id, as the sort is stable.
    bounded = confidence.double() if order is None else order / (1 + order.abs())
    key = torch.where(eligible, labels.double() * 2 - bounded, torch.inf)
    order = torch.argsort(key, dim=1, stable=True)
    sorted_labels = labels.gather(1, order)
    counts = torch.zeros_like(wanted).scatter_add(1, labels, eligible.long())
    first = counts.cumsum(1) - counts
    position = torch.arange(labels.shape[1], device=labels.device)
    rank = position - first.gather(1, sorted_labels)
    selected = eligible.gather(1, order) & (rank < wanted.gather(1, sorted_labels))
    return torch.zeros_like(eligible).scatter(1, order, selected), labels
