"""Losses that take class sizes into account, as functions and by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from evengraph.ops.conflict import conflict_weights

ClassLoss = Literal["cross_entropy", "reweight", "balanced_softmax"]
CLASS_LOSSES: tuple[str, ...] = get_args(ClassLoss)

NamedLoss = Literal["cross_entropy", "reweight", "balanced_softmax", "renode"]
NAMED_LOSSES: tuple[str, ...] = get_args(NamedLoss)


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
        logits: (n, C), or (M, n, C) of several members
        labels: (n,) or (M, n)
        class_counts: (C,) or (M, 1, C)
        returns: (), or the shape of the labels
    """
    logits = logits + log_sizes(class_counts, logits.dtype)
    return cross_entropy(logits.movedim(-1, 1), labels, reduction=reduction)


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


@dataclass(frozen=True, eq=False)
class LabelledLoss:
    """Mean over labelled nodes of weight times cross-entropy, called as `loss(logits)`.

    Shapes:
        labels, weights: (n,)
        offsets: (C,), added to the logits
    """

    labels: Tensor
    weights: Tensor | None = None
    offsets: Tensor | None = None

    def __call__(self, logits: Tensor, margins: Tensor | None = None) -> Tensor:
        """The loss of logits of the labelled nodes, (n, C), with margins added to them."""
        for term in (self.offsets, margins):
            if term is not None:
                logits = logits + term
        if self.weights is None:
            return cross_entropy(logits, self.labels)
        return (self.weights * cross_entropy(logits, self.labels, reduction="none")).mean()


def class_loss(
    name: ClassLoss, labels: Tensor, class_counts: Tensor, weights: Tensor | None = None
) -> LabelledLoss:
    """A loss that depends on class sizes alone.

    Args:
        name: `cross_entropy`, `reweight` (times mean class size over class size) or
            `balanced_softmax`.
        weights: A further weight of each node.

    Shapes:
        labels, weights: (n,)
        class_counts: (C,)
    """
    if name == "reweight":
        by_class = (class_counts.float().mean() * inverse_class_weights(class_counts))[labels]
        weights = by_class if weights is None else weights * by_class
    offsets = log_sizes(class_counts) if name == "balanced_softmax" else None
    return LabelledLoss(labels, weights, offsets)


def labelled_loss(
    name: NamedLoss,
    adjacency: sp.spmatrix,
    nodes: Tensor,
    labels: Tensor,
    class_counts: Tensor,
    added: Tensor | None = None,
) -> LabelledLoss:
    """A loss that may depend on where in the graph the labelled nodes are.

    Args:
        name: One of `class_loss`, or `renode`: `reweight`, with a lower weight for nodes near
            other classes.
        adjacency: Of the graph, undirected and without self-loops, (N, N).
        added: Classes of nodes outside the graph, whose logits follow. They count in the class
            sizes, and `renode` leaves their weight at one.

    Shapes:
        nodes, labels: (n,), labelled nodes
        class_counts: (C,)
        added: (m,)
    """
    weights = None
    if name == "renode":
        weights = conflict_weights(adjacency, nodes, labels, class_counts)
    if added is not None:
        labels = torch.cat([labels, added])
        class_counts = class_counts + torch.bincount(added, minlength=class_counts.numel())
        if weights is not None:
            weights = torch.cat([weights, weights.new_ones(added.numel())])
    return class_loss("reweight" if name == "renode" else name, labels, class_counts, weights)
