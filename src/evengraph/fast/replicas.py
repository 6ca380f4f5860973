"""Many runs as one: networks of equal shape, trained as one batch on a GPU.

A small graph leaves most of a GPU idle, and most of an epoch is kernel launch latency. Here the
weights of R runs of one method, which differ in seed and split, are one tensor with a leading axis,
and an epoch of all of them is recorded. Each run has its own best weights and early stopping; once
half of the runs have stopped, the batch goes on without them.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import fields
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from evengraph.core.machine import free_memory
from evengraph.core.rng import seeded
from evengraph.core.task import Task
from evengraph.fast import form_of
from evengraph.fast.dropout import Noise
from evengraph.metrics.multiclass import rare_class
from evengraph.ops.sparse import has_kernels
from evengraph.training.loop import (
    RECORD_AFTER,
    History,
    RecordedStep,
    Step,
    adam,
    deferred_interrupts,
    recorded,
    side_stream,
)

NO_CLASS = -1  # in place of the rare class of two
COPIES = 16  # of the weights and of a layer's embeddings in memory at the peak of training, at most


class Fit(NamedTuple):
    """A method to fit, its task and seed, and what to call once it is fitted."""

    method: Any  # a Method; all of a batch are of one class
    task: Task
    seed: int
    on_fitted: Callable[[], None] = lambda: None


def batching(method: Any) -> type[Batch] | None:
    """How several fits of a method are trained as one batch on a GPU; None if they cannot be."""
    form = form_of(method)
    found: type[Batch] | None = None if form is None else form.batching(method)
    return found


def share_batch(one: Any, other: Any) -> bool:
    """Whether two methods can be fitted in one batch on the same graph."""
    return (
        batching(one) is not None
        and type(one) is type(other)
        and all(getattr(one, item.name) == getattr(other, item.name) for item in fields(one))
    )


def fit_as_batch(method: Any, task: Task, seed: int) -> bool:
    """Fit one method as a batch of one if possible; return whether it was."""
    kind = batching(method)
    if kind is None or not has_kernels(task.graph.x.device):
        return False
    train_batch(kind([Fit(method, task, seed)]))
    return True


def runs_in_memory(fit: Fit) -> int:
    graph, method = fit.task.graph, fit.method
    width = 2 * method.hidden
    numbers = (graph.num_features + width) * width + graph.num_nodes * width
    return max(int(0.8 * free_memory(graph.x.device) / (COPIES * 4 * numbers)), 1)


def stacked(networks: Sequence[nn.Module]) -> nn.Module:
    """One network whose weights and buffers have a leading axis, one entry per network."""
    batch = copy.deepcopy(networks[0])
    groups = zip(*(net.modules() for net in networks), strict=True)
    for module, parts in zip(batch.modules(), groups, strict=True):
        for name in list(module._parameters):
            values = [part._parameters[name] for part in parts]
            if values[0] is not None:
                module._parameters[name] = nn.Parameter(torch.stack(values).detach())
        for name in list(module._buffers):
            module._buffers[name] = torch.stack([part._buffers[name] for part in parts])
    return batch


class Batch(ABC):
    """Runs of one method on one graph; subclasses define an epoch.

    All tensors of a batch have a leading axis, one entry per run.
    """

    def __init__(self, fits: Sequence[Fit]) -> None:
        self.fits, self.method = fits, fits[0].method
        self.nets, seeds = [], []
        for fit in fits:
            with seeded(fit.seed):
                self.nets.append(self.network(fit.method))
                numbers = getattr(self.method, "layers", 0) + 1  # of each layer, and of dropout
                seeds.append(torch.randint(2**31, (numbers,)))
        self.net: Any = stacked(self.nets)
        tasks = [fit.task for fit in fits]
        device, self.num_classes = tasks[0].graph.x.device, tasks[0].num_classes
        self.seeds = torch.stack(seeds)
        self.noise = Noise(self.seeds[:, -1].to(device))
        for module in self.net.modules():
            if hasattr(module, "noise"):
                module.noise = self.noise  # type: ignore[assignment]
        self.labels = torch.stack([torch.where(t.train | t.val, t.graph.y, 0) for t in tasks])
        weights = [self.class_weights(task).float()[task.graph.y] for task in tasks]
        self.weight = torch.stack(  # in the loss, of labelled nodes
            [torch.where(t.train, some, 0.0) for t, some in zip(tasks, weights, strict=True)]
        )
        self.val = pad_sequence([task.val_nodes for task in tasks], batch_first=True)
        sizes = torch.tensor([len(task.val_nodes) for task in tasks], device=device)
        self.counted = torch.arange(self.val.shape[1], device=device) < sizes.unsqueeze(1)
        rare = [rare_class(task) for task in tasks]
        self.rare = torch.tensor([NO_CLASS if r is None else r for r in rare], device=device)

    @abstractmethod
    def network(self, method: Any) -> nn.Module:
        """A network with initial weights."""

    @abstractmethod
    def class_weights(self, task: Task) -> Tensor:
        """Weight of a labelled node of each class in the loss, (C,)."""

    @abstractmethod
    def epoch(self) -> tuple[Tensor, Tensor]:
        """Loss, with gradients, and score of each run, (R,) and (R,)."""

    def before(self, epoch: int) -> None:  # noqa: B027 - nothing by default
        """Do what cannot be recorded before an epoch."""

    def on_end(self, fit: Fit, net: nn.Module) -> None:  # noqa: B027 - nothing by default
        """Called when a run's network has its best weights."""

    def validation(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Labels and logits of the validation nodes, which of them count, and the rare class."""
        nodes = self.val.unsqueeze(2).expand(-1, -1, self.num_classes)
        return self.labels.gather(1, self.val), logits.gather(1, nodes), self.counted, self.rare

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with some of the runs."""
        for module in self.net.modules():
            for name, weight in module._parameters.items():
                if weight is not None:
                    module._parameters[name] = nn.Parameter(weight.detach()[rows])
            for name, buffer in module._buffers.items():
                module._buffers[name] = buffer[rows]
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value[rows])
        self.noise.seeds = self.noise.seeds[rows]


def train_batch(batch: Batch) -> None:
    """Train all runs of a batch, each as by `train`.

    Ctrl-C ends active runs with their best weights so far. A run whose loss is not finite is
    dropped, and reported by a FloatingPointError after the others have finished.
    """
    method, device = batch.method, batch.labels.device
    limits = {"max_epochs": method.max_epochs, "patience": method.patience}
    histories = [History(**limits) for _ in batch.fits]
    runs: list[int | None] = list(range(len(histories)))  # in each row; None: it has stopped
    optimizer = adam(batch.net, method.learning_rate, method.weight_decay)
    best = [tensor.detach().clone() for tensor in _tensors(batch.net)]
    step: Step | RecordedStep = Step(batch.epoch, optimizer)
    started, failed, index, age = perf_counter(), list[str](), 0, 0

    @torch.no_grad()
    def finish(row: int, run: int) -> None:
        runs[row] = None
        fit, net, history = batch.fits[run], batch.nets[run], histories[run]
        for saved, tensor in zip(best, _tensors(net), strict=True):
            tensor.copy_(saved[row])
        history.seconds = perf_counter() - started
        fit.method.history_.append(history)
        batch.on_end(fit, net)
        fit.on_fitted()

    def active() -> list[tuple[int, int]]:
        return [(row, run) for row, run in enumerate(runs) if run is not None]

    try:
        with side_stream(device) if device.type == "cuda" else nullcontext() as stream:
            while active():
                batch.before(index)
                if stream and age == RECORD_AFTER:
                    step = recorded(batch.epoch, optimizer, stream)
                losses, scores = step.evaluate()
                with deferred_interrupts():
                    better = [False] * len(runs)
                    for row, run in active():
                        if math.isfinite(losses[row]):
                            better[row] = histories[run].append(losses[row], scores[row])
                        else:
                            runs[row] = None
                            failed.append(
                                f"The loss became {losses[row]} in epoch {index}; "
                                "try a smaller learning_rate."
                            )
                    if any(better):
                        chosen = torch.tensor(better, device=device)
                        _keep_where(chosen, _tensors(batch.net), best)
                for row, run in active():
                    batch.fits[run].method._report_epoch(histories[run])
                    waited = index - histories[run].first_best_epoch
                    if index == method.max_epochs or waited > method.patience:
                        finish(row, run)
                step.update()
                index, age, left = index + 1, age + 1, [row for row, _ in active()]
                if left and 2 * len(left) <= len(runs):
                    optimizer = _keep_rows(batch, optimizer, left)
                    best, runs = [saved[left] for saved in best], [runs[row] for row in left]
                    step, age = Step(batch.epoch, optimizer), RECORD_AFTER - 2
    except KeyboardInterrupt:
        if not any(histories[run].loss for _, run in active()):
            raise
        for row, run in active():
            histories[run].interrupted = True
            finish(row, run)
    if failed:
        raise FloatingPointError(failed[0])


def _tensors(net: nn.Module) -> list[Tensor]:
    return [*net.parameters(), *net.buffers()]


@torch.no_grad()
def _keep_where(chosen: Tensor, sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    """Copy the rows of some runs."""
    for source, target in zip(sources, targets, strict=True):
        rows = chosen.view(-1, *[1] * (source.dim() - 1))
        target.copy_(torch.where(rows, source, target))


def _keep_rows(
    batch: Batch, optimizer: torch.optim.Optimizer, rows: Sequence[int]
) -> torch.optim.Adam:
    before = list(batch.net.parameters())
    batch.keep(rows)
    after = adam(batch.net, batch.method.learning_rate, batch.method.weight_decay)
    for old, new in zip(before, batch.net.parameters(), strict=True):
        state = optimizer.state[old].items()
        after.state[new] = {name: value[rows] if value.dim() else value for name, value in state}
    return after
