"""Epochs of networks on rows: each sees some labelled rows and some others, drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from evengraph.core.ranks import ALONE, Part, Ranks
from evengraph.core.task import Task
from evengraph.methods.bases.network import above_mean, pseudo_label_loss
from evengraph.metrics.selection import batched_validation_scores, rare_class
from evengraph.nn.networks import GraphNetwork, PlainNetwork
from evengraph.ops.synthesis import Propagation
from evengraph.training.row_supply import RowSupply, Shard

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


class RowEpoch:
    """An epoch on drawn rows, or on all of few; the score is that of all validation rows.

    Args:
        net: A network without convolutions.
        supply: Where its rows come from; of several processes each gets a share of the loss.
        links: The identity matrix of a size, for layers that have the form of a convolution.
        on_labels: The loss of labels and their logits, a mean.
        pseudo_weight: Weight of the loss on pseudo-labels; 0 draws no unlabelled rows.
    """

    def __init__(
        self,
        net: GraphNetwork | PlainNetwork,
        supply: RowSupply,
        links: Callable[[int], Propagation],
        on_labels: Callable[[Tensor, Tensor], Tensor],
        pseudo_weight: float = 0.0,
    ) -> None:
        self.net, self.supply, self.links, self.on_labels = net, supply, links, on_labels
        self.pseudo_weight, self.rare = pseudo_weight, rare_class(supply.task)

    def __call__(self) -> tuple[Tensor, Tensor]:
        """Loss and score of the present weights."""
        net, ranks, shard = self.net, self.supply.ranks, self.supply.advance()
        part, known, labelled, others = _batch(shard, ranks, with_others=self.pseudo_weight > 0)
        matrix = self.links(len(part.rows))
        first = net.encoder(shard.rows[part.rows], matrix)
        logits = net.classify(first, matrix, dropout=True, part=part)
        labels = shard.labels[part.nodes[known]]
        loss = share_of_loss(self.on_labels, labels, logits[known], labelled)
        with torch.no_grad():
            score = self._score()
        if self.pseudo_weight and others:
            with torch.no_grad():
                clean = net.classify(first, matrix)[~known]
            confidence, predicted = clean.softmax(1).max(1)
            selected = above_mean(confidence, ranks, others)
            pseudo = pseudo_label_loss(logits[~known], predicted, selected, ranks)
            loss = loss + self.pseudo_weight * pseudo
        return loss, score

    def _score(self) -> Tensor:
        """The score of all validation rows, in a pass."""
        logits, labels = [], []
        for rows, known in self.supply.validation():
            logits.append(self.net(rows, self.links(len(rows))))
            labels.append(known)
        return row_score(torch.cat(logits), torch.cat(labels), self.rare, self.supply.ranks)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint stores beside the weights."""
        return self.supply.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.supply.load_state_dict(state)


def _batch(shard: Shard, ranks: Ranks, *, with_others: bool) -> _Batch:
    """The rows of an epoch: all of few, else some."""
    if len(shard.labels) <= FULL:
        part = ranks.part(torch.arange(len(shard.labels), device=shard.labels.device))
        train = torch.zeros(len(shard.labels), dtype=torch.bool, device=part.nodes.device)
        train[shard.labelled] = True
        return _Batch(part, train[part.nodes], len(shard.labelled), len(shard.others))
    some = draw(shard.labelled, BATCH)
    nodes = torch.cat([some, draw(shard.others, BATCH)]) if with_others else some
    part = ranks.part(nodes)
    known = torch.arange(len(part.rows), device=nodes.device) < part.before(len(some))
    return _Batch(part, known, len(some), len(nodes) - len(some))


def share_of_loss(
    loss: Callable[[Tensor, Tensor], Tensor], labels: Tensor, logits: Tensor, total: int
) -> Tensor:
    """What some nodes add to a loss that is a mean over `total` nodes."""
    if not len(labels):
        return 0 * logits.sum()
    return loss(labels, logits) * (len(labels) / total)


def row_score(logits: Tensor, labels: Tensor, rare: int | None, ranks: Ranks = ALONE) -> Tensor:
    """The validation score from the logits of the validation nodes of every process, (V, C)."""
    labels = labels.unsqueeze(0)
    mask = torch.ones_like(labels, dtype=torch.bool)
    which = labels.new_full((1,), -1 if rare is None else rare)
    return batched_validation_scores(labels, logits.unsqueeze(0), mask, which, ranks)[0]
