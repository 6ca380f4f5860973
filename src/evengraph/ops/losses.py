"""Losses that take class sizes into account, as functions and by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from evengraph.ops.sparse import Sparse, personalised_pagerank, propagation_matrix, scatter_sum

LEAST = 1e-6  # lower bound of shares and divergences in denominators
SMOOTH = 0.6  # relative temperature of an empty class; 1 for a class of all nodes


def soft_labels(
    logits: Tensor, nodes: Tensor, labels: Tensor, class_counts: Tensor, temperature: float
) -> Tensor:
    """One-hot labels of labelled nodes, and predictions of others, smoother for rare classes."""
    # `temperature` is the factor of the logits of the largest class
    share = class_counts / class_counts.sum()
    warmth = (1 - SMOOTH) * share + SMOOTH
    scale = temperature * (warmth + 1 - warmth.max())
    predicted = (logits * scale).softmax(1)
    return predicted.index_copy(0, nodes, _one_hot(labels, logits.shape[1]).to(predicted))


def topology_margins(
    around: Tensor, labels: Tensor, connectivity: float, distribution: float
) -> Tensor:
    """Terms to add to the logits of labelled nodes in training, (n, C); 0 for a node's own class.

    The first margin, log of the connectivity (ACM), is negative for a class that is more common
    around a node, relative to its own class, than around other nodes of its class. The second
    (ADM) grows as the node's neighbourhood moves from its own class towards the other. `around`
    holds the class shares around each labelled node, itself included, (n, C).
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
    """Jensen-Shannon divergence, (n, m), of every row of x from every row of y, all positive."""
    columns = []
    for row in y:  # few rows; avoids a tensor of n x m x C
        middle = ((x + row) / 2).log()
        halves = x * (x.log() - middle) + row * (row.log() - middle)
        columns.append(halves.sum(1) / 2)
    return torch.stack(columns, dim=1)


TELEPORT = 0.15


def conflict_weights(
    adjacency: sp.spmatrix,
    nodes: Tensor,
    labels: Tensor,
    class_counts: Tensor,
    least: float = 0.5,
    most: float = 1.5,
) -> Tensor:
    """Weight of each labelled node: the more influence of other classes reaches it, the lower."""
    propagation = propagation_matrix(adjacency, nodes.device)
    conflicts = conflict(propagation, nodes, labels, class_counts)
    ranks = conflicts.argsort(stable=True).argsort()
    angle = math.pi * ranks / max(ranks.numel() - 1, 1)
    return least + (most - least) * (1 + angle.cos()) / 2  # half a cosine, by rank


def conflict(propagation: Sparse, nodes: Tensor, labels: Tensor, class_counts: Tensor) -> Tensor:
    """Influence of other classes that reaches each labelled node, averaged over their nodes, (n,).

    Let Pi be personalised PageRank, which is symmetric here. Class c spreads g_c = Pi y_c / n_c,
    and node v of class y receives the sum over c other than y of (Pi g_c)_v: two products with C
    columns.
    """
    start = torch.zeros(propagation.shape[0], class_counts.numel(), device=nodes.device)
    start[nodes] = one_hot(labels, class_counts.numel()) / class_counts.float()
    spread = personalised_pagerank(propagation, start, TELEPORT)
    others = spread.sum(1, keepdim=True) - spread
    received = personalised_pagerank(propagation, others, TELEPORT)[nodes]
    return received.gather(1, labels.unsqueeze(1)).squeeze(1)


ClassLoss = Literal["cross_entropy", "reweight", "balanced_softmax"]
NamedLoss = Literal["cross_entropy", "reweight", "balanced_softmax", "renode"]
LabelledLoss = Callable[..., Tensor]


class ClassTerms(NamedTuple):
    """What a loss does differently per class, (C,) each; None: nothing."""

    weights: Tensor | None = None  # of a labelled node in the mean
    train_offsets: Tensor | None = None  # added to the logits in training
    predict_offsets: Tensor | None = None  # subtracted from the logits when predicting

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
    """Sum over nodes, (n,), of weight times cross-entropy, of one run or of each of R, (R, n)."""
    losses = cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none")
    return (weights * losses.view_as(weights)).sum(-1)


def inverse_class_weights(class_counts: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """One over the number of labelled nodes of each class (Eq. 9), (C,); 0 for an empty class."""
    counts = class_counts.to(dtype)
    return torch.where(counts > 0, 1 / counts.clamp(min=1), torch.zeros_like(counts))


def effective_number_weights(class_counts: Tensor, beta: float) -> Tensor:
    """One over the effective number of nodes of each class, (1 - beta ** n) / (1 - beta)."""
    # with `beta` 0 every class counts as one node, near 1 as n nodes; an empty class has weight 0
    counts = class_counts.to(torch.float64)  # beta ** n is close to one
    effective = (1 - beta**counts) / (1 - beta)
    return torch.where(counts > 0, 1 / effective, 0.0).float()


def log_sizes(class_counts: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The logarithm of the size of each class, (C,), to add to logits in training.

    It is minus infinity for an empty class, which then has probability 0.
    """
    return class_counts.to(dtype).log()


def prior_offsets(class_counts: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """`log_sizes`, but infinity for an empty class, to subtract from logits when predicting."""
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


def class_loss(
    name: ClassLoss, labels: Tensor, class_counts: Tensor, weights: Tensor | None = None
) -> LabelledLoss:
    """A loss that depends on class sizes alone: the mean of weight times cross-entropy.

    It is a function of the logits of the labelled nodes, (n, C), and of margins to add to them.

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

    def loss(logits: Tensor, margins: Tensor | None = None) -> Tensor:
        for term in (offsets, margins):
            if term is not None:
                logits = logits + term
        if weights is None:
            return cross_entropy(logits, labels)
        return (weights * cross_entropy(logits, labels, reduction="none")).mean()

    return loss


def labelled_loss(
    name: NamedLoss,
    adjacency: sp.spmatrix,
    nodes: Tensor,
    labels: Tensor,
    class_counts: Tensor,
    added: Tensor | None = None,
) -> LabelledLoss:
    """A `class_loss`, or `renode`: `reweight`, with a lower weight for nodes near other classes."""
    # `added`: classes of nodes outside the graph, whose logits follow; they count in the class
    # sizes, and `renode` leaves their weight at one
    weights = None
    if name == "renode":
        weights = conflict_weights(adjacency, nodes, labels, class_counts)
    if added is not None:
        labels = torch.cat([labels, added])
        class_counts = class_counts + torch.bincount(added, minlength=class_counts.numel())
        if weights is not None:
            weights = torch.cat([weights, weights.new_ones(added.numel())])
    return class_loss("reweight" if name == "renode" else name, labels, class_counts, weights)
