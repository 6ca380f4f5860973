"""Rows to train on: all of them in memory, or a shard of them at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from evengraph.core.task import Task
from evengraph.metrics.multiclass import batched_validation_scores
from evengraph.training.ranks import ALONE, Ranks


class Shard(NamedTuple):
    """Nodes whose rows are in memory; of several processes each has every size-th row.

    Shapes:
        labels: int64, (n,), -1 where hidden
        labelled, others: int64, indices of the training nodes, and of all others
        rows: (..., rows of this process, width)
    """

    labels: Tensor
    labelled: Tensor
    others: Tensor
    rows: Tensor


class RowSupply(Protocol):
    """Where an epoch gets its rows from."""

    @property
    def task(self) -> Task:
        """The whole task: its labels give class counts."""
        ...

    @property
    def ranks(self) -> Ranks:
        """The processes that share the rows."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        ...

    def advance(self) -> Shard:
        """The shard of the next epoch."""
        ...

    def validation(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows and labels of this process's validation nodes, block by block."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """How far it has advanced, for a checkpoint."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        ...


def draw(nodes: Tensor, count: int) -> Tensor:
    """All nodes, or so many at random with replacement if there are more."""
    if nodes.numel() <= count:
        return nodes
    return nodes[torch.randint(nodes.numel(), (count,)).to(nodes.device)]


def validation_scores(logits: Tensor, labels: Tensor, rare: int | None, ranks: Ranks) -> Tensor:
    """Validation scores of several networks, (M,), the same in all processes.

    Shapes:
        logits: (M, V, C), of the validation nodes of this process
        labels: int64, (V,)
    """
    labels = labels.expand(len(logits), -1)
    which = labels.new_full((len(logits),), -1 if rare is None else rare)
    mask = ranks.gather(torch.ones_like(labels, dtype=torch.bool), 1)
    labels, logits = ranks.gather(labels, 1), ranks.gather(logits, 1)
    scores = batched_validation_scores(labels, logits, mask, which)
    return ranks.sum(scores if ranks.rank == 0 else torch.zeros_like(scores))


@dataclass(frozen=True, eq=False)
class MemoryRows:
    """All rows in memory: one shard, one block of validation rows.

    Args:
        task: The nodes of these rows.
        rows: Those of this process, (..., n, width).
        ranks: The processes that share them.
    """

    task: Task
    rows: Tensor
    ranks: Ranks = ALONE

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.rows.device

    @cached_property
    def _shard(self) -> Shard:
        others = (~self.task.train).nonzero().squeeze(1)
        return Shard(self.task.graph.y, self.task.train_nodes, others, self.rows)

    @cached_property
    def _validation(self) -> tuple[Tensor, Tensor]:
        part = self.ranks.part(self.task.val_nodes)
        return self.rows[..., part.rows, :], self.task.graph.y[part.nodes]

    def advance(self) -> Shard:
        """All rows."""
        return self._shard

    def validation(self) -> Iterator[tuple[Tensor, Tensor]]:
        """All validation rows at once."""
        yield self._validation

    def state_dict(self) -> dict[str, Any]:
        """Nothing: all epochs see the same rows."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to continue."""
