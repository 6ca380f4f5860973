"""Double balancing: balanced losses of labels and of pseudo-labels, as one epoch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from evengraph.core.ranks import ALONE, Ranks
from evengraph.core.task import Task
from evengraph.metrics import validation_score
from evengraph.nn import GraphNetwork, Inputs, PlainNetwork
from evengraph.ops import balanced_softmax, labelled_loss, weighted_adjacency
from evengraph.ops.losses import NamedLoss
from evengraph.training import Epoch


def double_balancing_epoch(
    net: GraphNetwork | PlainNetwork,
    inputs: Inputs,
    task: Task,
    loss: NamedLoss,
    pseudo_weight: float,
) -> Epoch:
    """An epoch of self-training: `loss` on labels, balanced softmax on pseudo-labels."""
    graph, nodes = task.graph, task.train_nodes
    matrix = weighted_adjacency(graph)
    on_labels = labelled_loss(loss, matrix, nodes, graph.y[nodes], task.class_counts)
    others = (~task.train).nonzero().squeeze(1)

    def epoch() -> tuple[Tensor, Tensor]:
        first = net.encoder(*inputs)  # no dropout before it: both passes share it
        with torch.no_grad():
            clean = net.classify(first, inputs.propagation)
            confidence, predicted = clean[others].softmax(1).max(1)
        logits = net.classify(first, inputs.propagation, dropout=True)
        balanced = pseudo_label_loss(logits[others], predicted, above_mean(confidence))
        return on_labels(logits[nodes]) + pseudo_weight * balanced, validation_score(clean, task)

    return epoch


def above_mean(confidence: Tensor, ranks: Ranks = ALONE, total: int = 0) -> Tensor:
    """Which nodes are predicted with at least the mean confidence, bool, (n,) or (M, n).

    Of several processes each has some of the `total` nodes.
    """
    mean = ranks.sum(ranks.share_of_mean(confidence, total))
    if not ranks.is_alone:
        largest = ranks.max(pad(confidence, (0, 1)).amax(-1))  # a process may have no node
    else:
        largest = confidence.amax(-1)
    return confidence >= mean.minimum(largest).unsqueeze(-1)  # a mean is rounded


def pseudo_label_loss(
    logits: Tensor, predicted: Tensor, selected: Tensor, ranks: Ranks = ALONE
) -> Tensor:
    """Mean balanced softmax of the selected pseudo-labels, at least one, by their class sizes.

    Of several processes each has some of the nodes, and gets a share of the loss.

    Shapes:
        logits: (n, C), or (M, n, C) of several members
        predicted, selected: (n,) or (M, n)
        returns: () or (M,)
    """
    classes = torch.arange(logits.shape[-1], device=logits.device)
    hits = (predicted.unsqueeze(-1) == classes) & selected.unsqueeze(-1)
    counts = ranks.sum(hits.sum(-2, keepdim=True))
    losses = balanced_softmax(logits, predicted, counts, reduction="none")
    return torch.where(selected, losses, 0.0).sum(-1) / counts.sum((-2, -1))
