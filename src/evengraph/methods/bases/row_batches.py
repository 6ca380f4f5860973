"""Epochs of networks on rows: each sees some labelled rows and some others, drawn at random."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from evengraph.core.task import Task
from evengraph.methods.bases.self_training import above_mean, pseudo_label_loss
from evengraph.metrics.selection import batched_validation_scores, rare_class
from evengraph.nn import GraphNetwork, PlainNetwork
from evengraph.ops.attach import Propagation
from evengraph.training import Epoch

FULL = 2**16  # rows up to which an epoch sees all of them
BATCH = 2**13  # labelled rows, and others, in an epoch on more


def draw(nodes: Tensor, count: int) -> Tensor:
    """All nodes, or so many at random with replacement if there are more."""
    if nodes.numel() <= count:
        return nodes
    return nodes[torch.randint(nodes.numel(), (count,)).to(nodes.device)]


def batched_epoch(
    net: GraphNetwork | PlainNetwork,
    rows: Tensor,
    task: Task,
    links: Callable[[int], Propagation],
    on_labels: Callable[[Tensor, Tensor], Tensor],
    pseudo_weight: float = 0.0,
) -> Epoch:
    """An epoch on drawn rows; the score is that of all validation rows.

    Args:
        net: A network without convolutions.
        rows: What it takes, (n, F).
        links: The identity matrix of a size, for layers that have the form of a convolution.
        on_labels: The loss of nodes and their logits.
        pseudo_weight: Weight of the loss on pseudo-labels; 0 draws no unlabelled rows.
    """
    others = (~task.train).nonzero().squeeze(1)
    validation = rows[task.val_nodes]

    def epoch() -> tuple[Tensor, Tensor]:
        labelled = draw(task.train_nodes, BATCH)
        unlabelled = draw(others, BATCH) if pseudo_weight else others[:0]
        size, nodes = len(labelled), torch.cat([labelled, unlabelled])
        first = net.encoder(rows[nodes], links(len(nodes)))
        logits = net.classify(first, links(len(nodes)), dropout=True)
        loss = on_labels(labelled, logits[:size])
        with torch.no_grad():
            score = row_score(net(validation, links(len(validation))), task)
            clean = net.classify(first, links(len(nodes)))[size:]
        if len(unlabelled):
            confidence, predicted = clean.softmax(1).max(1)
            selected = above_mean(confidence)
            loss = loss + pseudo_weight * pseudo_label_loss(logits[size:], predicted, selected)
        return loss, score

    return epoch


def row_score(logits: Tensor, task: Task) -> Tensor:
    """The validation score of the logits of the validation nodes alone, (V, C)."""
    labels, rare = task.graph.y[task.val_nodes].unsqueeze(0), rare_class(task)
    mask = torch.ones_like(labels, dtype=torch.bool)
    which = labels.new_full((1,), -1 if rare is None else rare)
    return batched_validation_scores(labels, logits.unsqueeze(0), mask, which)[0]
