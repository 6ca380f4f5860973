"""train(): the one training loop, with early stopping and the best weights put back."""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from time import perf_counter
from types import FrameType

import torch
from torch import Tensor, nn

from evengraph.ops.sparse import has_kernels

logger = logging.getLogger(__name__)

RECORD_AFTER = 10  # epochs, in which methods may still be warming up

Epoch = Callable[[], tuple[Tensor, Tensor]]
"""One pass: the loss to descend, and the validation score of the weights as they stand."""


@dataclass
class History:
    """What happened during training.

    Entry e of `loss` and `score` belongs to the weights after e steps, so entry 0 is the
    untrained model. Several epochs may share the best score: the weights kept are those of the
    last, `best_epoch`. A method of several stages has a history of each, and one of them is the
    main one, whose score is that of all classes.
    """

    loss: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    best_epoch: int = 0
    first_best_epoch: int = 0
    best_score: float = -math.inf
    seconds: float = 0.0
    interrupted: bool = False
    max_epochs: int = 0
    patience: int = 0
    main: bool = True

    def append(self, loss: float, score: float) -> bool:
        """Add an epoch; of equal scores the first counts for patience, the last is the best one.

        Returns whether it is the best so far.
        """
        index = len(self.loss)
        self.loss.append(loss)
        self.score.append(score)
        if score > self.best_score:
            self.first_best_epoch = index
        if score >= self.best_score:
            self.best_epoch, self.best_score = index, score
            return True
        return False

    @property
    def epochs(self) -> int:
        """Steps taken."""
        return max(len(self.loss) - 1, 0)


Callback = Callable[[History], None]


def train(
    module: nn.Module,
    epoch: Epoch,
    *,
    learning_rate: float,
    weight_decay: float,
    max_epochs: int,
    patience: int,
    on_epoch: Callback | None = None,
    main: bool = True,
    steady: bool = False,
) -> History:
    """Adam until the validation score has not improved for `patience` epochs.

    `epoch` returns loss and score of the same weights, so that a method can share work between
    them. Of epochs with equal score, patience counts from the first and the weights kept are
    the latest, the rule of the paper's comparison. Buffers are kept with the weights. Ctrl-C
    ends training early, with the best model so far.

    Args:
        module: What to train; the best weights and buffers are put back into it.
        epoch: Gives the loss, with gradients, and the score, the larger the better.
        learning_rate: Adam's step.
        weight_decay: Weight decay, but of modules that say `decays = False`.
        max_epochs: Steps at most.
        patience: Epochs without improvement before stopping.
        on_epoch: Called after every epoch, on the stream of a card that training is on.
        main: What the history says of itself.
        steady: Whether all epochs but the first few do the same on tensors of the same sizes, and
            never wait for the device: then a card replays a recorded one, at a fraction of the
            time.
    """
    each = list(zip(module.parameters(), decays(module, weight_decay), strict=True))
    groups = [
        {"params": [weight for weight, own in each if own == decay], "weight_decay": decay}
        for decay in dict.fromkeys(own for _, own in each)
    ]
    optimizer = torch.optim.Adam(groups, lr=learning_rate, fused=True)
    history = History(max_epochs=max_epochs, patience=patience, main=main)
    best = _Best(module)
    step: _Step | _Recorded = _Step(epoch, optimizer)
    device = next(module.parameters()).device
    steady = steady and has_kernels(device)
    started = perf_counter()
    try:
        with _own_stream(device) if steady else nullcontext() as stream:
            for index in range(max_epochs + 1):
                if stream and index == RECORD_AFTER:
                    with uninterrupted():
                        step = _Recorded(epoch, optimizer, stream)
                loss, score = step.look()
                if not math.isfinite(loss):
                    raise FloatingPointError(
                        f"The loss became {loss} in epoch {index}; try a smaller learning_rate."
                    )
                if history.append(loss, score):
                    best.keep()
                if on_epoch is not None:
                    on_epoch(history)
                if index == max_epochs or index - history.first_best_epoch > patience:
                    break
                step.descend()
    except KeyboardInterrupt:
        if not history.loss:  # nothing to keep yet
            raise
        history.interrupted = True
        del history.score[len(history.loss) :], history.loss[len(history.score) :]
    finally:
        optimizer.zero_grad()  # gradients may lie in a recording's memory
    best.restore()
    history.seconds = perf_counter() - started
    logger.debug("best epoch %d of %d", history.best_epoch, history.epochs)
    return history


def decays(module: nn.Module, weight_decay: float) -> list[float]:
    """The weight decay of each parameter: none in modules that say `decays = False`."""
    spared = {
        id(weight)
        for part in module.modules()
        if not getattr(part, "decays", True)
        for weight in part.parameters()
    }
    return [0.0 if id(weight) in spared else weight_decay for weight in module.parameters()]


def follow(
    steps: Iterator[tuple[Tensor, Tensor]],
    *,
    max_epochs: int,
    patience: int,
    on_epoch: Callback | None = None,
) -> History:
    """The rules of `train` for what improves in steps of its own, such as trees.

    Args:
        steps: Loss and score before the first step, after it, after the second and so on.
        max_epochs: Steps at most.
        patience: Steps without improvement before stopping.
        on_epoch: Called after every step.
    """
    history = History(max_epochs=max_epochs, patience=patience)
    started = perf_counter()
    try:
        for index, (loss, score) in enumerate(steps):
            history.append(float(loss), float(score))
            if on_epoch is not None:
                on_epoch(history)
            if index == max_epochs or index - history.first_best_epoch > patience:
                break
    except KeyboardInterrupt:
        if not history.loss:
            raise
        history.interrupted = True
    history.seconds = perf_counter() - started
    return history


class _Step:
    """An epoch as it comes: what it says of the weights, then a step by its gradients."""

    def __init__(self, epoch: Epoch, optimizer: torch.optim.Optimizer) -> None:
        self.epoch, self.optimizer = epoch, optimizer

    def look(self) -> list[float]:
        """Loss and score."""
        self.optimizer.zero_grad()
        self.loss, score = self.epoch()
        values: list[float] = torch.stack([self.loss.detach(), score.to(self.loss)]).tolist()
        return values

    def descend(self) -> None:
        """Change the weights."""
        self.loss.backward()
        del self.loss  # and all that led to it
        self.optimizer.step()


class _Recorded:
    """The same for an epoch that is recorded once, as a CUDA graph, and replayed.

    Most of a small epoch is waiting for the next kernel to be started; a graph starts them all.
    """

    def __init__(
        self, epoch: Epoch, optimizer: torch.optim.Optimizer, stream: torch.cuda.Stream
    ) -> None:
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        self.optimizer, self.graph = optimizer, torch.cuda.CUDAGraph()
        # other threads may go on using the card meanwhile
        mode = "thread_local"
        with torch.cuda.graph(self.graph, stream=stream, capture_error_mode=mode):
            loss, score = epoch()
            gradients = torch.autograd.grad(loss, weights, allow_unused=True)
            self.values = torch.stack([loss.detach(), score.to(loss)])
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient  # filled anew by every replay

    def look(self) -> list[float]:
        """Loss and score."""
        self.graph.replay()
        values: list[float] = self.values.tolist()
        return values

    def descend(self) -> None:
        """Change the weights."""
        self.optimizer.step()


@cache
def _side_stream(card: int) -> torch.cuda.Stream:
    """One for each card: libraries keep memory for every stream they have seen."""
    return torch.cuda.Stream(card)


@contextmanager
def _own_stream(device: torch.device) -> Iterator[torch.cuda.Stream]:
    """A stream of a card beside the usual one; only on such a one work can be recorded."""
    with torch.cuda.device(device):
        stream, usual = _side_stream(torch.cuda.current_device()), torch.cuda.current_stream()
        stream.wait_stream(usual)
        try:
            with torch.cuda.stream(stream):
                yield stream
        finally:
            usual.wait_stream(stream)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back to the end of a block that must not be left halfway."""
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts reach the main thread alone
        return
    pressed: list[tuple[int, FrameType | None]] = []
    before = signal.signal(signal.SIGINT, lambda *call: pressed.append(call))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed and callable(before):
            before(*pressed[0])


class _Best:
    """A copy of a module's weights and buffers, in memory that is allocated once.

    Two copies take turns: an interrupt while one is written leaves the other whole.
    """

    def __init__(self, module: nn.Module) -> None:
        self.live = [*module.parameters(), *module.buffers()]
        self.kept, self.spare = ([t.detach().clone() for t in self.live] for _ in range(2))

    @torch.no_grad()
    def keep(self) -> None:
        for spare, live in zip(self.spare, self.live, strict=True):
            spare.copy_(live)
        self.kept, self.spare = self.spare, self.kept

    @torch.no_grad()
    def restore(self) -> None:
        for kept, live in zip(self.kept, self.live, strict=True):
            live.copy_(kept)
