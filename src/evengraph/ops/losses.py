"""Losses that know about class sizes."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

Reduction = Literal["mean", "none"]


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


def log_sizes(class_counts: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The logarithm of the size of each class; minus infinity, no chance, for an empty one.

    Shapes:
        class_counts, returns: (C,)
    """
    return class_counts.to(dtype).log()


def balanced_softmax(
    logits: Tensor, labels: Tensor, class_counts: Tensor, *, reduction: Reduction = "mean"
) -> Tensor:
    """Cross-entropy of a softmax in which every class counts as often as it has labelled nodes.

    The network then need not learn how frequent classes are: its own logits treat all alike.

    Args:
        logits: Of the labelled nodes.
        labels: Their classes.
        class_counts: Labelled nodes, or pseudo-labels, of each class.
        reduction: The mean, or the loss of each node.

    Shapes:
        logits: (n, C)
        labels: (n,)
        class_counts: (C,)
        returns: () or (n,)
    """
    return cross_entropy(
        logits + log_sizes(class_counts, logits.dtype), labels, reduction=reduction
    )


def logit_adjusted(
    logits: Tensor,
    labels: Tensor,
    class_counts: Tensor,
    tau: float,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    """Cross-entropy of logits raised by `tau` times the logarithm of their class's share.

    With `tau` 1 it is balanced softmax, with 0 cross-entropy. Arguments are as there.
    """
    raised = logits + tau * log_sizes(class_counts, logits.dtype) if tau else logits
    return cross_entropy(raised, labels, reduction=reduction)


def compensated(logits: Tensor, class_counts: Tensor) -> Tensor:
    """Logits of a network that learnt with unequal classes, as if they had been equal.

    The logarithm of a class's size is taken off; an empty class, which nothing was learnt of, is
    left with no chance.

    Shapes:
        logits, returns: (N, C)
        class_counts: (C,)
    """
    sizes = log_sizes(class_counts, logits.dtype)
    return torch.where(class_counts > 0, logits - sizes, -torch.inf)


def effective_number_weights(
    class_counts: Tensor, beta: float, dtype: torch.dtype = torch.float32
) -> Tensor:
    """One over the effective number of nodes of each class, (1 - beta ** n) / (1 - beta).

    Of n nodes the k-th adds beta ** (k - 1): with `beta` 0 a class counts as one node, however
    many it has, near 1 as n. A class without any weighs 0.

    Shapes:
        class_counts, returns: (C,)
    """
    counts = class_counts.to(torch.float64)  # beta ** n is close to one
    effective = (1 - beta**counts) / (1 - beta)
    return torch.where(counts > 0, 1 / effective, 0.0).to(dtype)


def class_balanced(logits: Tensor, labels: Tensor, class_counts: Tensor, beta: float) -> Tensor:
    """Cross-entropy, the mean weighted by one over the effective number of nodes of a class.

    With `beta` 0 it is the plain mean, near 1 that with inverse class weights. Arguments and
    shapes are those of `balanced_softmax`.
    """
    return cross_entropy(logits, labels, effective_number_weights(class_counts, beta, logits.dtype))
