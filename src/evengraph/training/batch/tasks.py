"""What runs of every method side by side have in common: labels, validation, the run's network."""

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
from evengraph.training.batch.replicas import LOOK_EVERY, Replicas, stacked


@dataclass(kw_only=True)
class TaskRun:
    """One run: what it learns, and with what."""

    task: Task
    net: nn.Module
    noise_seed: int
    tell: Callable[[History], None]
    done: Callable[[History], None]


T = TypeVar("T", bound=TaskRun)

COPIES = 13  # of the weights and of a layer's embeddings that training holds at its peak, at most


class TaskReplicas(Replicas[T], Generic[T]):
    """Runs on one graph, each with labels of its own.

    Args:
        runs: All that are to be trained; their networks have the same shape.
        slots: How many to train at a time; fewer where memory is short.
        width: Of the embeddings of a node.
        training: Settings of `Replicas`.
    """

    def __init__(self, runs: Sequence[T], slots: int, width: int, **training: Any) -> None:
        slots = min(slots, len(runs), _room(runs[0], width))
        super().__init__(stacked([runs[0].net] * slots), slots, **training)
        task, device = runs[0].task, self.alive.device
        nodes, self.num_classes = task.graph.num_nodes, task.num_classes
        most_val = max(int(run.task.val.sum()) for run in runs)
        self.runs: list[T | None] = [None] * slots
        self.labels = torch.zeros(slots, nodes, dtype=torch.long, device=device)
        self.weight = torch.zeros(slots, nodes, device=device)  # in the loss, of labelled nodes
        self.val = torch.zeros(slots, most_val, dtype=torch.long, device=device)
        self.counted = torch.zeros(slots, most_val, dtype=torch.bool, device=device)

    @abstractmethod
    def weights_of(self, run: T) -> Tensor:
        """How much a labelled node of each class counts in the loss, (C,)."""

    def network(self, run: T) -> nn.Module:
        """The run's own, as it was made."""
        return run.net

    def noise_seed(self, run: T) -> int:
        """The run's own."""
        return run.noise_seed

    def load(self, slot: int, run: T) -> None:
        """Labels and what they count for."""
        task, labels = run.task, run.task.graph.y
        self.runs[slot] = run
        self.labels[slot] = torch.where(task.train, labels, 0)
        weights = self.weights_of(run).float()[self.labels[slot]]
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
        truth, guess = (part.gather(1, self.val) for part in (self.labels, logits.argmax(-1)))
        return batched_macro_f1(truth, guess, self.counted, self.num_classes)

    def pause(self, epochs: Mapping[int, int]) -> None:
        """Nothing is due."""

    def until_pause(self, epochs: Mapping[int, int]) -> int:
        """Nothing is due."""
        return LOOK_EVERY

    def tell(self, run: T, history: History) -> None:
        """Pass it on."""
        run.tell(history)

    def moved(self, slots: Sequence[int]) -> None:
        """The runs move along."""
        self.runs = [self.runs[slot] for slot in slots]

    @torch.no_grad()
    def finish(self, slot: int, run: T, history: History) -> None:
        """Put the best weights and buffers into the run's own network."""
        for kept, one in zip(self.kept, [*run.net.parameters(), *run.net.buffers()], strict=True):
            one.copy_(kept[slot])
        self.runs[slot] = None
        run.done(history)


def _room(run: TaskRun, width: int) -> int:
    """How many runs there is memory for."""
    device = run.task.graph.x.device
    if device.type != "cuda":
        return sys.maxsize
    weights = sum(tensor.numel() for tensor in run.net.parameters())
    each = COPIES * 4 * (weights + run.task.graph.num_nodes * width)
    free, _ = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return max(int(0.4 * free / each), 1)  # another group may have its turns meanwhile
