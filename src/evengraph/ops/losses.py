"""Losses that take class sizes into account."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


class ClassTerms(NamedTuple):
    """What a loss does differently per class; None: nothing.

    Shapes:
        weights: (C,), weight of a labelled node in the mean
        train_offsets: (C,), added to the logits in training
        predict_offsets: (C,), subtracted from the logits when predicting
    """

    weights: Tensor | None = None
    train_offsets: Tensor | None = None
    predict_offsets: Tensor | None = None

    def predict(self, logits: Tensor) -> Tensor:
        """Logits to predict with, from those of the network."""
        return logits if self.predict_offsets is None else logits - self.predict_offsets


def class_cross_entropy(
    logits: Tensor, labels: Tensor, weights: Tensor | None = None, offsets: Tensor | None = None
) -> Tensor:
    """Weighted mean of the cross-entropy of logits plus offsets, of one run or of each of R.

    Runs in a batch differ in which nodes are labelled. They have all nodes, with a weight per node
    that is 0 for unlabelled ones and sums to 1.

    Shapes:
        logits: (n, C), or (R, N, C)
        labels: (n,), or (R, N)
        weights: per class, (C,), or per node, (R, N)
        offsets: (C,), or (R, 1, C)
        returns: (), or (R,)
    """
    if offsets is not None:
        logits = logits + offsets
    if logits.dim() == 2:
        return cross_entropy(logits, labels, weights)
    assert weights is not None
    return weighted_cross_entropy(logits, labels, weights)


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Sum over nodes of weight times cross-entropy, of one run or of each of R.

    Shapes:
        logits: (n, C), or (R, n, C)
        labels, weights: (n,), or (R, n)
        returns: (), or (R,)
    """
    losses = cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none")
    return (weights * losses.view_as(weights)).sum(-1)


def inverse_class_weights(class_counts: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """One over the number of labelled nodes of each class (Eq. 9), (C,); 0 for an empty class."""
    counts = class_counts.to(dtype)
    return torch.where(counts > 0, 1 / counts.clamp(min=1), torch.zeros_like(counts))


def effective_number_weights(
    class_counts: Tensor, beta: float, dtype: torch.dtype = torch.float32
) -> Tensor:
    """One over the effective number of nodes of each class, (1 - beta ** n) / (1 - beta).

    Of n nodes the k-th adds beta ** (k - 1): with `beta` 0 every class counts as one node, near 1
    as n nodes. An empty class has weight 0.
    """
    counts = class_counts.to(torch.float64)  # beta ** n is close to one
    effective = (1 - beta**counts) / (1 - beta)
    return torch.where(counts > 0, 1 / effective, 0.0).to(dtype)


def log_sizes(class_counts: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The logarithm of the size of each class, (C,), to add to logits in training.

    It is minus infinity for an empty class, which then has probability 0.
    """
    return class_counts.to(dtype).log()


def prior_offsets(class_counts: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """`log_sizes`, but infinity for an empty class, to subtract from logits when predicting.

    The logits of a network trained with unequal classes become those of equal classes.
    """
    return torch.where(class_counts > 0, log_sizes(class_counts, dtype), torch.inf)


def balanced_softmax(
    logits: Tensor, labels: Tensor, class_counts: Tensor, *, reduction: str = "mean"
) -> Tensor:
    """Cross-entropy of a softmax in which each class is multiplied by its number of nodes.

    The network then need not learn how frequent classes are.

    Shapes:
        logits: (n, C)
        labels: (n,)
        class_counts: (C,)
        returns: () or (n,)
    """
    return cross_entropy(
        logits + log_sizes(class_counts, logits.dtype), labels, reduction=reduction
    )


def focal_cross_entropy(
    logits: Tensor,
    labels: Tensor,
    gamma: float,
    weights: Tensor | None = None,
    *,
    on_mean: bool = False,
) -> Tensor:
    """Cross-entropy times (1 - p) ** gamma, which reduces the loss of well-classified nodes.

    Args:
        gamma: 0 is the plain loss.
        weights: Of the classes; the mean is then a weighted one.
        on_mean: Take p from the mean loss, one factor for all nodes, instead of per node.

    Shapes:
        logits: (n, C)
        labels: (n,)
        weights: (C,)
    """
    losses = cross_entropy(logits, labels, reduction="none")
    surprise = -torch.expm1(-(losses.mean() if on_mean else losses))  # 1 - p
    # below 1 the power has no gradient at zero: keep the base just above it
    factor = surprise.clamp(min=torch.finfo(losses.dtype).tiny) ** gamma
    if weights is None:
        return (factor * losses).mean()
    node_weights = weights[labels]
    return (factor * node_weights * losses).sum() / node_weights.sum()
