"""Runs of any method in one batch: labels, validation, the network of each run."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from evengraph.core.devices import free_memory
from evengraph.metrics.selection import batched_validation_scores, rare_class
from evengraph.training.batch.replicas import Replicas, Run

T = TypeVar("T", bound=Run)

NO_CLASS = -1  # in place of the rare class of two
COPIES = 13  # of the weights and of a layer's embeddings in memory at the peak of training, at most


class TaskReplicas(Replicas[T], Generic[T]):
    """Runs on one graph, each with its own labels.

    Args:
        runs: All runs to train; their networks have the same shape.
        slots: How many to train at a time; fewer where memory is short.
        width: Width of a node's embedding.
        training: Parameters of `Replicas`.
    """

    def __init__(self, runs: Sequence[T], slots: int, width: int, **training: Any) -> None:
        slots = min(slots, len(runs), _slots_in_memory(runs[0], width))
        super().__init__(runs[0].net, slots, **training)
        task, device = runs[0].task, self.alive.device
        nodes, self.num_classes = task.graph.num_nodes, task.num_classes
        max_val = max(int(run.task.val.sum()) for run in runs)
        self.labels = torch.zeros(slots, nodes, dtype=torch.long, device=device)
        self.weight = torch.zeros(slots, nodes, device=device)  # in the loss, of labelled nodes
        self.val = torch.zeros(slots, max_val, dtype=torch.long, device=device)
        self.counted = torch.zeros(slots, max_val, dtype=torch.bool, device=device)
        self.rare = torch.full((slots,), NO_CLASS, device=device)

    @abstractmethod
    def class_weights(self, run: T) -> Tensor:
        """Weight of a labelled node of each class in the loss, (C,)."""

    def load(self, slot: int, run: T) -> None:
        """Copy labels and their weights into a slot."""
        task, labels = run.task, run.task.graph.y
        self.labels[slot] = torch.where(task.train, labels, 0)
        weights = self.class_weights(run).float()[self.labels[slot]]
        self.weight[slot] = torch.where(task.train, weights, 0.0)
        val = task.val.nonzero().squeeze(1)
        self.val[slot, : val.numel()] = val
        self.labels[slot, val] = labels[val]  # weight 0: for the score alone
        self.counted[slot] = torch.arange(self.val.shape[1], device=val.device) < val.numel()
        rare = rare_class(task)
        self.rare[slot] = NO_CLASS if rare is None else rare

    def score(self, logits: Tensor) -> Tensor:
        """The validation score of each run, (R,).

        Shapes:
            logits: (R, N, C)
        """
        return batched_validation_scores(*self.validation(logits))

    def validation(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Labels and logits of the validation nodes, which of them count, and the rare class."""
        nodes = self.val.unsqueeze(2).expand(-1, -1, self.num_classes)
        return self.labels.gather(1, self.val), logits.gather(1, nodes), self.counted, self.rare


def _slots_in_memory(run: Run, width: int) -> int:
    """How many runs fit into memory."""
    device = run.task.graph.x.device
    if device.type != "cuda":
        return sys.maxsize
    weights = sum(tensor.numel() for tensor in run.net.parameters())
    bytes_per_run = COPIES * 4 * (weights + run.task.graph.num_nodes * width)
    return max(int(0.4 * free_memory(device) / bytes_per_run), 1)  # leaves memory for another group
