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
from collections.abc import Sequence
from importlib.util import find_spec
from time import perf_counter
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from evengraph.nn.layers import Noise
from evengraph.training import History

DECAY = 0.9, 0.999  # of Adam's two means
SMALL = 1e-8

R = TypeVar("R")


def can_replicate(device: torch.device) -> bool:
    """Whether runs can be trained side by side here: on a card, with Triton beside torch."""
    return device.type == "cuda" and find_spec("triton") is not None


def stacked(networks: Sequence[nn.Module]) -> nn.Module:
    """One network whose weights and buffers have a leading axis, an entry for each network."""
    together = copy.deepcopy(networks[0])
    for module, parts in zip(
        together.modules(), zip(*(one.modules() for one in networks), strict=True), strict=True
    ):
        for name in list(module._parameters):
            values = torch.stack([part._parameters[name].detach() for part in parts])
            module._parameters[name] = nn.Parameter(values)
        for name in list(module._buffers):
            module._buffers[name] = torch.stack([part._buffers[name] for part in parts])
    return together


class Replicas(ABC, Generic[R]):
    """Runs of one method side by side; a method says what a run is and what an epoch does.

    Args:
        net: The stacked network.
        slots: How many runs fit.
        learning_rate: Adam's step.
        weight_decay: Weight decay on all parameters.
        max_epochs: Steps at most.
        patience: Epochs without improvement before a run stops.
        interval: Epochs between two looks at the card.
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
        interval: int,
    ) -> None:
        self.net, self.slots, self.interval = net, slots, interval
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
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
        self.row = torch.zeros_like(self.epochs[:1])  # of the record below
        self.noise = Noise(torch.zeros_like(self.epochs))
        if device.type == "cuda":
            for module in net.modules():
                if hasattr(module, "noise"):
                    module.noise = self.noise  # type: ignore[assignment]
        self.record = torch.zeros(interval, 2, slots, device=device)
        self.alive_record = torch.zeros(interval, slots, dtype=torch.bool, device=device)
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
    def pause(self, epochs: Sequence[int]) -> None:
        """Do what is due between epochs, given how many each run has had."""

    def tell(self, run: R, history: History) -> None:
        """Hear of an epoch of a run, some time after it."""

    @abstractmethod
    def finish(self, slot: int, run: R, history: History) -> None:
        """Take a run out, its best weights and buffers being in `kept`."""

    # What the engine does.

    def train(self, runs: Sequence[R]) -> None:
        """Train all runs, as many at a time as there are slots.

        Ctrl-C ends those that are under way with their best weights so far.
        """
        waiting = list(reversed(runs))
        held: dict[int, tuple[R, History, float]] = {}  # by slot, with the time of its start
        try:
            while waiting or held:
                for slot in range(self.slots):
                    if slot not in held and waiting:
                        run = waiting.pop()
                        self._place(slot, run)
                        held[slot] = run, self._history(), perf_counter()
                self.pause(self.epochs.tolist())
                self._advance()
                self._look(held)
        except KeyboardInterrupt:
            started = [slot for slot, (_, history, _) in held.items() if history.loss]
            for slot in started:
                run, history, _ = held[slot]
                history.interrupted = True
                self.finish(slot, run, history)
            if waiting or len(started) < len(held):
                raise

    def _look(self, held: dict[int, tuple[R, History, float]]) -> None:
        """Read what happened since the last look, and take out the runs that have stopped."""
        losses, scores = self.record.transpose(0, 1).tolist()
        counted, still = self.alive_record.tolist(), self.alive.tolist()
        for slot, (run, history, started) in list(held.items()):
            history.seconds = perf_counter() - started
            for row in range(self.interval):
                if counted[row][slot]:
                    history.append(losses[row][slot], scores[row][slot])
                    self.tell(run, history)
            if not still[slot]:
                self.finish(slot, run, history)
                del held[slot]

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

    def _advance(self) -> None:
        """As many epochs as fit between two looks."""
        self.row.zero_()
        if not self.weights[0].is_cuda:
            for _ in range(self.interval):
                self._step()
            return
        if self.graph is None:
            self._capture()
        assert self.graph is not None
        for _ in range(self.interval):
            self.graph.replay()

    def _capture(self) -> None:
        """Record an epoch; what the rehearsals change is put back."""
        state = self._state()
        before = [tensor.detach().clone() for tensor in state]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self._step()
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
            self.record.index_copy_(0, self.row, torch.stack([loss, score]).unsqueeze(0))
            self.alive_record.index_copy_(0, self.row, self.alive.unsqueeze(0))
            better = self.alive & (score > self.best_score)
            best = self.alive & (score >= self.best_score)
            self.first_best.copy_(torch.where(better, self.epochs, self.first_best))
            self.best_score.copy_(torch.where(best, score, self.best_score))
            for kept, live in zip(self.kept, self.live, strict=True):
                kept.copy_(torch.where(_along(best, live), live, kept))
            waited = self.epochs - self.first_best
            self.alive &= (self.epochs < self.max_epochs) & (waited <= self.patience)
            self.epochs += 1
            self.row += 1
            self._adam(gradients)

    def _adam(self, gradients: Sequence[Tensor]) -> None:
        """Adam with a count of steps for each run."""
        first, second = DECAY
        counts = self.epochs.to(torch.float32)
        rate = self.learning_rate / (1 - first**counts)
        root = (1 - second**counts).sqrt()
        for weight, gradient, mean, square in zip(
            self.weights, gradients, self.mean, self.square, strict=True
        ):
            pull = gradient + self.weight_decay * weight
            mean.lerp_(pull, 1 - first)
            square.mul_(second).addcmul_(pull, pull, value=1 - second)
            spread = (square.sqrt() / _along(root, weight)).add_(SMALL)
            weight.sub_(_along(rate, weight) * mean / spread)


def _along(values: Tensor, like: Tensor) -> Tensor:
    """One value for each replica, to go with all its entries."""
    return values.view(-1, *[1] * (like.dim() - 1))
