"""Epochs of networks on rows: each sees some labelled rows and some others, drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.core.ranks import ALONE, Part, Ranks
from evengraph.core.task import Task
from evengraph.methods.bases.self_training import above_mean, pseudo_label_loss
from evengraph.metrics.selection import batched_validation_scores, rare_class
from evengraph.nn import GraphNetwork, PlainNetwork
from evengraph.ops.attach import Propagation
from evengraph.training import Epoch

FULL = 2**16  # rows up to which an epoch sees all of them
BATCH = 2**13  # labelled rows, and others, in an epoch on more


def sees_all_rows(task: Task) -> bool:
    """Whether an epoch is on all rows of a task."""
    return len(task.train) <= FULL


def draw(nodes: Tensor, count: int) -> Tensor:
    """All nodes, or so many at random with replacement if there are more."""
    if nodes.numel() <= count:
        return nodes
    return nodes[torch.randint(nodes.numel(), (count,)).to(nodes.device)]


class _Batch(NamedTuple):
    """Rows of an epoch.

    Args:
        part: Those of this process.
        known: Which of these are labelled, bool, (n,).
        labelled: Labelled ones of all processes.
        others: Unlabelled ones of all processes.
    """

    part: Part
    known: Tensor
    labelled: int
    others: int


def batched_epoch(
    net: GraphNetwork | PlainNetwork,
    rows: Tensor,
    task: Task,
    links: Callable[[int], Propagation],
    on_labels: Callable[[Tensor, Tensor], Tensor],
    pseudo_weight: float = 0.0,
    ranks: Ranks = ALONE,
) -> Epoch:
    """An epoch on drawn rows, or on all of few; the score is that of all validation rows.

    Args:
        net: A network without convolutions.
        rows: What it takes, of the rows of this process, (n, F).
        links: The identity matrix of a size, for layers that have the form of a convolution.
        on_labels: The loss of nodes and their logits, a mean.
        pseudo_weight: Weight of the loss on pseudo-labels; 0 draws no unlabelled rows.
        ranks: The processes that have the rows. Each gets a share of the loss.
    """
    validation = ranks.part(task.val_nodes)
    validation_rows = rows[validation.rows]
    draw_batch = _batches(task, ranks, with_others=pseudo_weight > 0)

    def epoch() -> tuple[Tensor, Tensor]:
        part, known, labelled, others = draw_batch()
        matrix = links(len(part.rows))
        first = net.encoder(rows[part.rows], matrix)
        logits = net.classify(first, matrix, dropout=True, part=part)
        loss = share_of_loss(on_labels, part.nodes[known], logits[known], labelled)
        with torch.no_grad():
            clean = net(validation_rows, links(len(validation_rows)))
            score = row_score(clean, validation.nodes, task, ranks)
        if pseudo_weight and others:
            with torch.no_grad():
                clean = net.classify(first, matrix)[~known]
            confidence, predicted = clean.softmax(1).max(1)
            selected = above_mean(confidence, ranks, others)
            pseudo = pseudo_label_loss(logits[~known], predicted, selected, ranks)
            loss = loss + pseudo_weight * pseudo
        return loss, score

    return epoch


def _batches(task: Task, ranks: Ranks, *, with_others: bool) -> Callable[[], _Batch]:
    """A function that draws the rows of an epoch: all of few."""
    labelled, others = task.train_nodes, (~task.train).nonzero().squeeze(1)
    if sees_all_rows(task):
        part = ranks.part(torch.arange(len(task.train), device=labelled.device))
        whole = _Batch(part, task.train[part.nodes], len(labelled), len(others))
        return lambda: whole

    def batch() -> _Batch:
        some = draw(labelled, BATCH)
        nodes = torch.cat([some, draw(others, BATCH)]) if with_others else some
        part = ranks.part(nodes)
        known = torch.arange(len(part.rows), device=nodes.device) < part.before(len(some))
        return _Batch(part, known, len(some), len(nodes) - len(some))

    return batch


def share_of_loss(
    loss: Callable[[Tensor, Tensor], Tensor], nodes: Tensor, logits: Tensor, total: int
) -> Tensor:
    """What some nodes add to a loss that is a mean over `total` nodes."""
    if not len(nodes):
        return 0 * logits.sum()
    return loss(nodes, logits) * (len(nodes) / total)


def row_score(logits: Tensor, nodes: Tensor, task: Task, ranks: Ranks = ALONE) -> Tensor:
    """The validation score from the logits of the validation nodes of every process, (V, C)."""
    labels, rare = task.graph.y[nodes].unsqueeze(0), rare_class(task)
    mask = torch.ones_like(labels, dtype=torch.bool)
    which = labels.new_full((1,), -1 if rare is None else rare)
    return batched_validation_scores(labels, logits.unsqueeze(0), mask, which, ranks)[0]
