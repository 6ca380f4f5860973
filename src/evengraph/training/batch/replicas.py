"""Many runs as one: networks of equal shape that are trained side by side on one card.

A small graph leaves most of a card idle, and most of an epoch is waiting for the next kernel to
start. Here the weights of R runs stand in one tensor with a leading axis, an epoch of all of them
is recorded once as a CUDA graph, and nothing in it waits for the host. Each run keeps its own
best weights and stops by its own patience; a run that has stopped makes room for the next.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from evengraph.ops.adam import adam_step, bias_corrections, keep_where
from evengraph.ops.dropout import Noise
from evengraph.ops.sparse import has_kernels
from evengraph.training.loop import History, deferred_interrupts, weight_decays

LOOK_EVERY = 50  # epochs at most, between two looks at the card
FEWEST = 4  # slots that are worth a recording of their own

R = TypeVar("R")
Held = dict[int, tuple[R, History, float]]
"""The run in each slot, its history and when it began."""


def can_replicate(device: torch.device) -> bool:
    """Whether runs can be trained side by side here: on a card, with Triton beside torch."""
    return has_kernels(device)


def stacked(networks: Sequence[nn.Module]) -> nn.Module:
    """One network whose weights and buffers have a leading axis, an entry for each network."""
    together = copy.deepcopy(networks[0])
    for module, parts in zip(
        together.modules(), zip(*(one.modules() for one in networks), strict=True), strict=True
    ):
        for name in list(module._parameters):
            values = [part._parameters[name] for part in parts]
            if values[0] is not None:
                module._parameters[name] = nn.Parameter(torch.stack(values).detach())
        for name in list(module._buffers):
            module._buffers[name] = torch.stack([part._buffers[name] for part in parts])
    return together


class Replicas(ABC, Generic[R]):
    """Runs of one method side by side; a method says what a run is and what an epoch does.

    Args:
        net: The stacked network.
        slots: How many runs fit.
        learning_rate: Adam's step.
        weight_decay: As in `train`.
        max_epochs: Steps at most.
        patience: Epochs without improvement before a run stops.
    """

    def __init__(
        self,
        net: nn.Module,
        slots: int,
        *,
        learning_rate: float,
        weight_decay: float,
        max_epochs: int,
        patience: int,
    ) -> None:
        self.net, self.slots = net, slots
        self.learning_rate, self.decays = learning_rate, weight_decays(net, weight_decay)
        self.max_epochs, self.patience = max_epochs, patience
        self.weights = list(net.parameters())
        self.live = [*self.weights, *net.buffers()]
        device = self.weights[0].device
        with torch.no_grad():
            self.kept = [tensor.detach().clone() for tensor in self.live]
            self.mean = [torch.zeros_like(tensor) for tensor in self.weights]
            self.square = [torch.zeros_like(tensor) for tensor in self.weights]
        self.epochs = torch.zeros(slots, dtype=torch.long, device=device)  # of each run
        self.first_best = torch.zeros_like(self.epochs)
        self.best_score = torch.full((slots,), -math.inf, device=device)
        self.alive = torch.zeros(slots, dtype=torch.bool, device=device)
        self.row = torch.zeros((), dtype=torch.long, device=device)  # of the record below
        self.noise = Noise(torch.zeros_like(self.epochs))
        if device.type == "cuda":
            for module in net.modules():
                if hasattr(module, "noise"):
                    module.noise = self.noise  # type: ignore[assignment]
        self.record = torch.zeros(slots, LOOK_EVERY, 2, device=device)
        self.alive_record = torch.zeros(slots, LOOK_EVERY, dtype=torch.bool, device=device)
        self.graph: torch.cuda.CUDAGraph | None = None

    # What a method says.

    @abstractmethod
    def epoch(self) -> tuple[Tensor, Tensor]:
        """Loss, with gradients, and score of each run, two times (R,)."""

    @abstractmethod
    def network(self, run: R) -> nn.Module:
        """A fresh network for a run, on the CPU or the card."""

    @abstractmethod
    def noise_seed(self, run: R) -> int:
        """What decides a run's dropout."""

    @abstractmethod
    def load(self, slot: int, run: R) -> None:
        """Put what else belongs to a run into its slot."""

    @abstractmethod
    def pause(self, epochs: Mapping[int, int]) -> None:
        """Do what is due before the next epoch, given how many the run in each slot has had."""

    @abstractmethod
    def until_pause(self, epochs: Mapping[int, int]) -> int:
        """Epochs until something is due again."""

    def tell(self, run: R, history: History) -> None:
        """Hear of an epoch of a run, some time after it."""

    @abstractmethod
    def moved(self, slots: Sequence[int]) -> None:
        """Hear that these slots are the only ones left, in this order.

        Tensors among the attributes have an entry for each slot first, and have been seen to.
        """

    @abstractmethod
    def finish(self, slot: int, run: R, history: History) -> None:
        """Take a run out, its best weights and buffers being in `kept`."""

    # What the engine does.

    def steps(self, runs: Sequence[R]) -> Iterator[None]:
        """Train all runs, as many at a time as there are slots.

        It stops wherever the card has work and the host has none. Another engine that is given
        its turn there, on a stream of its own, costs little: while one has its clusters found,
        step by step from the host, the other has the card.

        Ctrl-C ends those that are under way with their best weights so far; it is passed on if
        others had not begun. A run whose loss is no longer a number is given up, and said so of
        when the others are done.
        """
        waiting = list(reversed(runs))
        held: Held[R] = {}
        lost: list[str] = []
        unfinished = len(waiting)
        try:
            while waiting or held:
                for slot in range(self.slots):
                    if slot not in held and waiting:
                        self._place(slot, waiting[-1])
                        held[slot] = waiting.pop(), self._history(), perf_counter()
                every = self.epochs.tolist()
                epochs = {slot: every[slot] for slot in held}
                self.pause(epochs)
                left = max(self.max_epochs + 1 - epoch for epoch in epochs.values())
                self._advance(min(LOOK_EVERY, left, self.until_pause(epochs)))
                yield
                unfinished -= self._look(held, lost)
                if not waiting and held and FEWEST < self.slots >= 2 * len(held):
                    with deferred_interrupts():
                        held = self._shrink(held)
        except KeyboardInterrupt:
            unfinished -= self._look(held, lost, quiet=True)  # what the card did before that
            for slot, (run, history, _) in list(held.items()):
                if history.loss:
                    history.interrupted = True
                    del held[slot]
                    self.finish(slot, run, history)
                    unfinished -= 1
            if unfinished:
                raise
        if lost:
            raise FloatingPointError(lost[0])

    def _look(self, held: Held[R], lost: list[str], *, quiet: bool = False) -> int:
        """Read what happened since the last look, and take out the runs that have stopped.

        Histories are brought up to date even if a callback is interrupted. Returns how many runs
        were taken out.
        """
        rows = int(self.row)
        records, counted = self.record[:, :rows].tolist(), self.alive_record[:, :rows].tolist()
        still = self.alive.tolist()
        self.row.zero_()
        stopped = None
        for slot, (run, history, started) in held.items():
            history.seconds = perf_counter() - started
            for (loss, score), valid in zip(records[slot], counted[slot], strict=True):
                if valid:
                    history.append(loss, score)
                    try:
                        if not quiet and stopped is None:
                            self.tell(run, history)
                    except KeyboardInterrupt as interrupt:
                        stopped = interrupt
        if stopped is not None:
            raise stopped
        done = [slot for slot in held if not still[slot]]
        for slot in done:
            run, history, _ = held.pop(slot)
            if math.isfinite(history.loss[-1]):
                self.finish(slot, run, history)
            else:
                lost.append(
                    f"The loss became {history.loss[-1]} in epoch {history.epochs}; "
                    "try a smaller learning_rate."
                )
        return len(done)

    @torch.no_grad()
    def _shrink(self, held: Held[R]) -> Held[R]:
        """Go on with the runs that are left alone: free slots cost as much as others."""
        slots = list(held)
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
        for tensors in (self.kept, self.mean, self.square):
            tensors[:] = [tensor[index] for tensor in tensors]
        for name, value in vars(self).items():
            if isinstance(value, Tensor) and value.dim():
                assert value.shape[0] == self.slots, name
                setattr(self, name, value[index])
        self.noise.seeds, self.noise.calls = self.noise.seeds[index], self.noise.calls[index]
        self.slots, self.graph = len(slots), None
        self.moved(slots)
        return {new: held[old] for new, old in enumerate(slots)}

    def _history(self) -> History:
        return History(max_epochs=self.max_epochs, patience=self.patience)

    @torch.no_grad()
    def _place(self, slot: int, run: Any) -> None:
        """Start a run in a slot."""
        fresh = self.network(run)
        for live, one in zip(self.live, [*fresh.parameters(), *fresh.buffers()], strict=True):
            live[slot].copy_(one)
        for tensor in (*self.mean, *self.square, self.epochs, self.first_best):
            tensor[slot] = 0
        self.best_score[slot] = -math.inf
        self.alive[slot] = True
        self.noise.seeds[slot], self.noise.calls[slot] = self.noise_seed(run), 0
        self.load(slot, run)

    def _advance(self, epochs: int) -> None:
        """So many epochs of every run."""
        if not self.weights[0].is_cuda:
            for _ in range(epochs):
                self._step()
            return
        if self.graph is None:
            with deferred_interrupts():
                self._capture()
        assert self.graph is not None
        for _ in range(epochs):
            self.graph.replay()

    def _capture(self) -> None:
        """Record an epoch; what the rehearsals change is put back."""
        state = self._state()
        before = [tensor.detach().clone() for tensor in state]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self.row.zero_()
                self._step()
            self.row.zero_()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._step()
        with torch.no_grad():
            for tensor, value in zip(state, before, strict=True):
                tensor.copy_(value)

    def _state(self) -> list[Tensor]:
        """Everything that an epoch changes."""
        return [
            *self.live,
            *self.kept,
            *self.mean,
            *self.square,
            self.epochs,
            self.first_best,
            self.best_score,
            self.alive,
            self.row,
            self.noise.calls,
        ]

    def _step(self) -> None:
        """One epoch of every run: score, keep what is best, step."""
        loss, score = self.epoch()
        gradients = torch.autograd.grad(loss.sum(), self.weights)
        with torch.no_grad():
            row = self.row.view(1)
            self.record.index_copy_(1, row, torch.stack([loss, score], 1).unsqueeze(1))
            self.alive_record.index_copy_(1, row, self.alive.unsqueeze(1))
            sound = self.alive & loss.isfinite()
            better = sound & (score > self.best_score)
            best = sound & (score >= self.best_score)
            self.first_best.copy_(torch.where(better, self.epochs, self.first_best))
            self.best_score.copy_(torch.where(best, score, self.best_score))
            waited = self.epochs - self.first_best
            self.alive.copy_(sound & (self.epochs < self.max_epochs) & (waited <= self.patience))
            self.epochs += 1
            self.row += 1
            count = len(self.weights)
            for kept, live in zip(self.kept[count:], self.live[count:], strict=True):
                keep_where(best, live, kept)
            rates = bias_corrections(self.epochs, self.learning_rate)
            all_tensors = zip(
                self.weights, gradients, self.mean, self.square, self.kept[:count], strict=True
            )
            for tensors, decay in zip(all_tensors, self.decays, strict=True):
                adam_step(*tensors, best, *rates, weight_decay=decay)
