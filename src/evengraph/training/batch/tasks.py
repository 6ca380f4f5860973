"""Runs of any method in one batch: labels, validation, the network of each run."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from evengraph.core.task import Task
from evengraph.metrics import batched_macro_f1
from evengraph.training import History
from evengraph.training.batch.replicas import SYNC_EVERY, Replicas, stacked


@dataclass(kw_only=True)
class TaskRun:
    """One run: its task, its network, and what to call after an epoch and at the end."""

    task: Task
    net: nn.Module
    noise_seed: int
    on_epoch: Callable[[History], None]
    on_end: Callable[[History], None]


T = TypeVar("T", bound=TaskRun)

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
        super().__init__(stacked([runs[0].net] * slots), slots, **training)
        task, device = runs[0].task, self.alive.device
        nodes, self.num_classes = task.graph.num_nodes, task.num_classes
        max_val = max(int(run.task.val.sum()) for run in runs)
        self.runs: list[T | None] = [None] * slots
        self.labels = torch.zeros(slots, nodes, dtype=torch.long, device=device)
        self.weight = torch.zeros(slots, nodes, device=device)  # in the loss, of labelled nodes
        self.val = torch.zeros(slots, max_val, dtype=torch.long, device=device)
        self.counted = torch.zeros(slots, max_val, dtype=torch.bool, device=device)

    @abstractmethod
    def class_weights(self, run: T) -> Tensor:
        """Weight of a labelled node of each class in the loss, (C,)."""

    def network(self, run: T) -> nn.Module:
        """The run's network, with its initial weights."""
        return run.net

    def noise_seed(self, run: T) -> int:
        """The run's seed of dropout."""
        return run.noise_seed

    def load(self, slot: int, run: T) -> None:
        """Copy labels and their weights into a slot."""
        task, labels = run.task, run.task.graph.y
        self.runs[slot] = run
        self.labels[slot] = torch.where(task.train, labels, 0)
        weights = self.class_weights(run).float()[self.labels[slot]]
        self.weight[slot] = torch.where(task.train, weights, 0.0)
        val = task.val.nonzero().squeeze(1)
        self.val[slot, : val.numel()] = val
        self.labels[slot, val] = labels[val]  # weight 0: for the score alone
        self.counted[slot] = torch.arange(self.val.shape[1], device=val.device) < val.numel()

    def score(self, logits: Tensor) -> Tensor:
        """Macro-F1 on the validation nodes, (R,).

        Shapes:
            logits: (R, N, C)
        """
        labels, predicted = (part.gather(1, self.val) for part in (self.labels, logits.argmax(-1)))
        return batched_macro_f1(labels, predicted, self.counted, self.num_classes)

    def pause(self, epochs: Mapping[int, int]) -> None:
        """Nothing is due."""

    def epochs_until_pause(self, epochs: Mapping[int, int]) -> int:
        """Nothing is due."""
        return SYNC_EVERY

    def on_epoch(self, run: T, history: History) -> None:
        """Call the run's function."""
        run.on_epoch(history)

    def on_shrink(self, slots: Sequence[int]) -> None:
        """Move the runs to their new slots."""
        self.runs = [self.runs[slot] for slot in slots]

    @torch.no_grad()
    def finish(self, slot: int, run: T, history: History) -> None:
        """Copy the best weights and buffers into the run's network."""
        tensors = [*run.net.parameters(), *run.net.buffers()]
        for best, tensor in zip(self.best, tensors, strict=True):
            tensor.copy_(best[slot])
        self.runs[slot] = None
        run.on_end(history)


def _slots_in_memory(run: TaskRun, width: int) -> int:
    """How many runs fit into memory."""
    device = run.task.graph.x.device
    if device.type != "cuda":
        return sys.maxsize
    weights = sum(tensor.numel() for tensor in run.net.parameters())
    bytes_per_run = COPIES * 4 * (weights + run.task.graph.num_nodes * width)
    free, _ = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return max(int(0.4 * free / bytes_per_run), 1)  # leaves memory for another group
