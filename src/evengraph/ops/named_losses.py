"""Losses of labelled nodes by name, for methods that can be combined with several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from evengraph.ops.conflict import conflict_weights
from evengraph.ops.losses import inverse_class_weights, log_sizes

ClassLoss = Literal["cross_entropy", "reweight", "balanced_softmax"]
CLASS_LOSSES: tuple[str, ...] = get_args(ClassLoss)

NamedLoss = Literal["cross_entropy", "reweight", "balanced_softmax", "renode"]
NAMED_LOSSES: tuple[str, ...] = get_args(NamedLoss)


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
