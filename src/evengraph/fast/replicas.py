"""Many runs as one: networks of equal shape, trained as one batch on a GPU.

A small graph leaves most of a GPU idle, and most of an epoch is kernel launch latency. Here the
weights of R runs are one tensor with a leading axis, an epoch of all of them is recorded once as a
CUDA graph, and nothing in it waits for the host. Each run has its own best weights and its own
early stopping; the next run takes the slot of one that has stopped.
"""

from __future__ import annotations

import copy
import logging
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from evengraph.core.machine import free_memory
from evengraph.core.task import Task
from evengraph.fast import form_of
from evengraph.fast.adam import adam_step, bias_corrections, keep_where
from evengraph.fast.dropout import Noise
from evengraph.metrics.multiclass import rare_class
from evengraph.ops.sparse import has_kernels
from evengraph.training.loop import History, deferred_interrupts, waits_for_gpu, weight_decays

logger = logging.getLogger(__name__)

SYNC_EVERY = 50  # epochs at most between two reads from the device
MIN_SLOTS = 4  # fewer are not worth recording another graph
NO_CLASS = -1  # in place of the rare class of two
COPIES = 13  # of the weights and of a layer's embeddings in memory at the peak of training, at most


class Fit(NamedTuple):
    """A method to fit, its task and seed, and what to call once it is fitted."""

    method: Any  # a Method; all of a batch are of one class
    task: Task
    seed: int
    on_fitted: Callable[[], None] = lambda: None


class Batching(NamedTuple):
    """How the fits of a method are trained as one batch."""

    replicas: Callable[[Sequence[Fit], int], Replicas]  # at most so many at a time
    may_differ: frozenset[str] = frozenset()  # parameters that may differ within a batch


def batching(method: Any) -> Batching | None:
    """How several fits of a method are trained as one batch on a GPU; None if they cannot be."""
    form = form_of(method)
    found: Batching | None = None if form is None else form.batching(method)
    return found


def share_batch(one: Any, other: Any) -> bool:
    """Whether two methods can be fitted in one batch on the same graph."""
    found = batching(one)
    return (
        found is not None
        and type(one) is type(other)
        and all(
            getattr(one, item.name) == getattr(other, item.name)
            for item in fields(one)
            if item.name not in found.may_differ
        )
    )


def fit_batch(fits: Sequence[Fit], slots: int) -> Iterator[None]:
    """Fit methods that share a batch, at most `slots` at a time."""
    found = batching(fits[0].method)
    assert found is not None
    yield from found.replicas(fits, slots).steps()


def fit_as_batch(method: Any, task: Task, seed: int) -> bool:
    """Fit one method as a batch of one if possible; return whether it was."""
    device = task.graph.x.device
    if not can_replicate(device) or batching(method) is None:
        return False
    with torch.cuda.device(device):
        for _ in fit_batch([Fit(method, task, seed)], slots=1):
            pass
    return True


@dataclass(kw_only=True)
class Run:
    """A fit, its network with initial weights, and seeds."""

    fit: Fit
    net: Any
    noise_seed: int  # of dropout
    on_epoch: Callable[[History], None]  # called for every epoch, some time after it
    cluster_seeds: Sequence[int] = ()  # of k-means, one per layer

    @property
    def method(self) -> Any:
        """The method to fit."""
        return self.fit.method

    @property
    def task(self) -> Task:
        """Its task."""
        return self.fit.task


Active = dict[int, tuple[Run, History, float]]
"""The run in each slot, its history and its start time."""


def can_replicate(device: torch.device) -> bool:
    """Whether runs can be trained as one batch: on a GPU, with Triton installed."""
    return has_kernels(device)


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


class Replicas(ABC):
    """Runs of one method on one graph as a batch; subclasses define an epoch.

    Each run has its own labels and is trained as by `train`. There are fewer than `slots` at a time
    where memory is short; `width` is that of the widest embeddings.
    """

    def __init__(self, runs: Sequence[Run], slots: int, width: int) -> None:
        self.waiting, method, task = list(reversed(runs)), runs[0].method, runs[0].task
        self.slots = slots = min(slots, len(runs), _slots_in_memory(runs[0], width))
        self.net: Any = stacked([runs[0].net] * slots)
        self.runs: list[Any] = [None] * slots  # a `Run` in each slot that is in use
        self.max_epochs, self.patience = method.max_epochs, method.patience
        self.learning_rate = method.learning_rate
        self.decays = weight_decays(self.net, method.weight_decay)
        self.weights = list(self.net.parameters())
        self.live = [*self.weights, *self.net.buffers()]
        device = self.weights[0].device
        with torch.no_grad():
            self.best = [tensor.detach().clone() for tensor in self.live]
            self.mean = [torch.zeros_like(tensor) for tensor in self.weights]
            self.square = [torch.zeros_like(tensor) for tensor in self.weights]
        self.epochs = torch.zeros(slots, dtype=torch.long, device=device)  # per run
        self.first_best = torch.zeros_like(self.epochs)
        self.best_score = torch.full((slots,), -math.inf, device=device)
        self.alive = torch.zeros(slots, dtype=torch.bool, device=device)
        self.row = torch.zeros((), dtype=torch.long, device=device)  # next row of the record
        self.noise = Noise(torch.zeros_like(self.epochs))
        if device.type == "cuda":
            for module in self.net.modules():
                if hasattr(module, "noise"):
                    module.noise = self.noise  # type: ignore[assignment]
        self.record = torch.zeros(slots, SYNC_EVERY, 2, device=device)
        self.alive_record = torch.zeros(slots, SYNC_EVERY, dtype=torch.bool, device=device)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.recordable = True  # until a rehearsal finds that it is not
        nodes, self.num_classes = task.graph.num_nodes, task.num_classes
        max_val = max(int(run.task.val.sum()) for run in runs)
        self.labels = torch.zeros(slots, nodes, dtype=torch.long, device=device)
        self.weight = torch.zeros(slots, nodes, device=device)  # in the loss, of labelled nodes
        self.val = torch.zeros(slots, max_val, dtype=torch.long, device=device)
        self.counted = torch.zeros(slots, max_val, dtype=torch.bool, device=device)
        self.rare = torch.full((slots,), NO_CLASS, device=device)

    # Defined by a method

    @abstractmethod
    def epoch(self) -> tuple[Tensor, Tensor]:
        """Loss, with gradients, and score of each run, (R,) and (R,)."""

    @abstractmethod
    def class_weights(self, run: Run) -> Tensor:
        """Weight of a labelled node of each class in the loss, (C,)."""

    def load(self, slot: int, run: Run) -> None:
        """Copy labels and their weights into a slot; weights and buffers are there already."""
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

    def validation(self, logits: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Labels and logits of the validation nodes, which of them count, and the rare class."""
        nodes = self.val.unsqueeze(2).expand(-1, -1, self.num_classes)
        return self.labels.gather(1, self.val), logits.gather(1, nodes), self.counted, self.rare

    def pause(self, epochs: Mapping[int, int]) -> None:  # noqa: B027 - nothing by default
        """Do what is due before the next epoch, given the epoch of the run in each slot."""

    def epochs_until_pause(self, epochs: Mapping[int, int]) -> int:
        """Epochs until something is due again."""
        return SYNC_EVERY

    def on_shrink(self, slots: Sequence[int]) -> None:
        """Called when only these slots are left; tensors are indexed already, by first axis."""
        self.runs = [self.runs[slot] for slot in slots]

    def on_end(self, run: Run) -> None:  # noqa: B027 - nothing by default
        """Called when a run has its best weights, before others hear of it."""

    # The engine

    def steps(self) -> Iterator[None]:
        """Train all runs, as many at a time as there are slots.

        It yields while the GPU is busy and the host is idle, so that a second batch can run on its
        own stream. Ctrl-C ends active runs with their best weights so far; it is raised again if
        others had not started. A run whose loss is not finite is dropped, and reported by a
        FloatingPointError after the others have finished.
        """
        waiting, active = self.waiting, Active()
        failed: list[str] = []
        unfinished = len(waiting)
        try:
            while waiting or active:
                for slot in range(self.slots):
                    if slot not in active and waiting:
                        self._start(slot, waiting[-1])
                        history = History(max_epochs=self.max_epochs, patience=self.patience)
                        active[slot] = waiting.pop(), history, perf_counter()
                all_epochs = self.epochs.tolist()
                epochs = {slot: all_epochs[slot] for slot in active}
                self.pause(epochs)
                left = max(self.max_epochs + 1 - epoch for epoch in epochs.values())
                self._advance(min(SYNC_EVERY, left, self.epochs_until_pause(epochs)))
                yield
                unfinished -= self._collect(active, failed)
                if not waiting and active and MIN_SLOTS < self.slots >= 2 * len(active):
                    with deferred_interrupts():
                        active = self._shrink(active)
        except KeyboardInterrupt:
            # the GPU may be some epochs ahead of the host
            unfinished -= self._collect(active, failed, quiet=True)
            for slot, (run, history, _) in list(active.items()):
                if history.loss:
                    history.interrupted = True
                    del active[slot]
                    self._finish(slot, run, history)
                    unfinished -= 1
            if unfinished:
                raise
        if failed:
            raise FloatingPointError(failed[0])

    def _collect(self, active: Active, failed: list[str], *, quiet: bool = False) -> int:
        """Read new losses and scores, and remove the runs that have stopped; returns how many."""
        # histories are updated even if a callback is interrupted
        rows = int(self.row)
        records, counted = self.record[:, :rows].tolist(), self.alive_record[:, :rows].tolist()
        still = self.alive.tolist()
        self.row.zero_()
        interrupt = None
        for slot, (run, history, started) in active.items():
            history.seconds = perf_counter() - started
            for (loss, score), valid in zip(records[slot], counted[slot], strict=True):
                if valid:
                    history.append(loss, score)
                    try:
                        if not quiet and interrupt is None:
                            run.on_epoch(history)
                    except KeyboardInterrupt as error:
                        interrupt = error
        if interrupt is not None:
            raise interrupt
        done = [slot for slot in active if not still[slot]]
        for slot in done:
            run, history, _ = active.pop(slot)
            if math.isfinite(history.loss[-1]):
                self._finish(slot, run, history)
            else:
                failed.append(
                    f"The loss became {history.loss[-1]} in epoch {history.epochs}; "
                    "try a smaller learning_rate."
                )
        return len(done)

    @torch.no_grad()
    def _finish(self, slot: int, run: Run, history: History) -> None:
        """Copy the best weights and buffers into the run's network, and free the slot."""
        tensors = [*run.net.parameters(), *run.net.buffers()]
        for best, tensor in zip(self.best, tensors, strict=True):
            tensor.copy_(best[slot])
        self.runs[slot] = None
        run.method.history_.append(history)
        self.on_end(run)
        run.fit.on_fitted()

    @torch.no_grad()
    def _shrink(self, active: Active) -> Active:
        """Drop free slots, which cost as much as others."""
        slots = list(active)
        index = torch.tensor(slots, device=self.alive.device)
        for module in self.net.modules():
            for name, weight in module._parameters.items():
                if weight is not None:
                    module._parameters[name] = nn.Parameter(weight[index])
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = buffer[index]
        self.weights = list(self.net.parameters())
        self.live = [*self.weights, *self.net.buffers()]
        for tensors in (self.best, self.mean, self.square):
            tensors[:] = [tensor[index] for tensor in tensors]
        for name, value in vars(self).items():
            if isinstance(value, Tensor) and value.dim():
                assert value.shape[0] == self.slots, name
                setattr(self, name, value[index])
        self.noise.seeds, self.noise.calls = self.noise.seeds[index], self.noise.calls[index]
        self.slots, self.graph = len(slots), None
        self.on_shrink(slots)
        return {new: active[old] for new, old in enumerate(slots)}

    @torch.no_grad()
    def _start(self, slot: int, run: Run) -> None:
        """Start a run in a slot."""
        tensors = [*run.net.parameters(), *run.net.buffers()]
        for live, initial in zip(self.live, tensors, strict=True):
            live[slot].copy_(initial)
        for tensor in (*self.mean, *self.square, self.epochs, self.first_best):
            tensor[slot] = 0
        self.best_score[slot] = -math.inf
        self.alive[slot] = True
        self.noise.seeds[slot], self.noise.calls[slot] = run.noise_seed, 0
        self.runs[slot] = run
        self.load(slot, run)

    def _advance(self, epochs: int) -> None:
        """Train every run for some epochs."""
        if self.graph is None and self.recordable and self.weights[0].is_cuda:
            with deferred_interrupts():
                self._capture()
        step = self._step if self.graph is None else self.graph.replay
        for _ in range(epochs):
            step()

    def _capture(self) -> None:
        """Record an epoch, if it can be; what the rehearsal changes is restored."""
        state = [*self.live, *self.best, *self.mean, *self.square, self.noise.calls]
        state += [self.epochs, self.first_best, self.best_score, self.alive, self.row]
        before = [tensor.detach().clone() for tensor in state]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.row.zero_()
            self._step()  # fills caches, which may wait for the GPU
            self.row.zero_()
            with waits_for_gpu() as found:
                self._step()
            self.row.zero_()
        torch.cuda.current_stream().wait_stream(stream)
        self.recordable = not found
        if self.recordable:
            self._record()
        with torch.no_grad():
            for tensor, value in zip(state, before, strict=True):
                tensor.copy_(value)

    def _record(self) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._step()
            self.graph = graph
        except RuntimeError as error:
            logger.debug("not recorded: %s", error)
            self.recordable = False

    def _step(self) -> None:
        """One epoch of every run: score, keep the best weights, step."""
        loss, score = self.epoch()
        gradients = torch.autograd.grad(loss.sum(), self.weights)
        with torch.no_grad():
            row = self.row.view(1)
            self.record.index_copy_(1, row, torch.stack([loss, score], 1).unsqueeze(1))
            self.alive_record.index_copy_(1, row, self.alive.unsqueeze(1))
            valid = self.alive & loss.isfinite()
            better = valid & (score > self.best_score)
            best = valid & (score >= self.best_score)
            self.first_best.copy_(torch.where(better, self.epochs, self.first_best))
            self.best_score.copy_(torch.where(best, score, self.best_score))
            waited = self.epochs - self.first_best
            self.alive.copy_(valid & (self.epochs < self.max_epochs) & (waited <= self.patience))
            self.epochs += 1
            self.row += 1
            count = len(self.weights)
            for saved, live in zip(self.best[count:], self.live[count:], strict=True):
                keep_where(best, live, saved)
            rates = bias_corrections(self.epochs, self.learning_rate)
            all_tensors = zip(
                self.weights, gradients, self.mean, self.square, self.best[:count], strict=True
            )
            for tensors, decay in zip(all_tensors, self.decays, strict=True):
                adam_step(*tensors, best, *rates, weight_decay=decay)


def _slots_in_memory(run: Run, width: int) -> int:
    """How many runs fit into memory."""
    device = run.task.graph.x.device
    if device.type != "cuda":
        return sys.maxsize
    weights = sum(tensor.numel() for tensor in run.net.parameters())
    bytes_per_run = COPIES * 4 * (weights + run.task.graph.num_nodes * width)
    return max(int(0.4 * free_memory(device) / bytes_per_run), 1)  # leaves memory for another group
