"""Losses that know about class sizes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def inverse_class_weights(class_counts: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """One over the number of labelled nodes of each class (Eq. 9); 0 for a class without any.

    Shapes:
        class_counts: (C,)
        returns: (C,)
    """
    counts = class_counts.to(dtype)
    return torch.where(counts > 0, 1 / counts.clamp(min=1), torch.zeros_like(counts))


def focal_cross_entropy(
    logits: Tensor,
    labels: Tensor,
    gamma: float,
    weights: Tensor | None = None,
    *,
    on_mean: bool = False,
) -> Tensor:
    """Cross-entropy times (1 - p) ** gamma: what is already learnt counts for less.

    Args:
        logits: Of the labelled nodes.
        labels: Their classes.
        gamma: Zero is the plain loss.
        weights: Of the classes; the mean is then a weighted one.
        on_mean: Take p from the mean loss, one factor for all nodes, instead of each node's own.

    Shapes:
        logits: (n, C)
        labels: (n,)
        weights: (C,)
    """
    losses = cross_entropy(logits, labels, reduction="none")
    surprise = -torch.expm1(-(losses.mean() if on_mean else losses))  # 1 - p
    # below 1 the power has no gradient at zero: a loss of nothing stays just above it
    factor = surprise.clamp(min=torch.finfo(losses.dtype).tiny) ** gamma
    if weights is None:
        return (factor * losses).mean()
    each = weights[labels]
    return (factor * each * losses).sum() / each.sum()
