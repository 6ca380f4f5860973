"""train(): the training loop, with early stopping and restoring of the best weights."""

from __future__ import annotations

import io
import logging
import math
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import monotonic, perf_counter
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from evengraph.core.files import write_atomic
from evengraph.core.rng import random_state, restore_random_state
from evengraph.core.text import make_console
from evengraph.ops.sparse import has_kernels
from evengraph.training.ranks import ALONE, Ranks, Stateful, shared_epoch

logger = logging.getLogger(__name__)
CONTINUED = ("loss", "score", "best_epoch", "first_best_epoch", "best_score")
RECORD_AFTER = 10  # epochs; methods may still be warming up before

Epoch = Callable[[], tuple[Tensor, Tensor]]
"""One pass: the loss to minimise, and the validation score of the same weights."""


@dataclass
class History:
    """Loss and score per epoch.

    Entry e of `loss` and `score` belongs to the weights after e steps, so entry 0 is the
    untrained model. If several epochs share the best score, `best_epoch` is the last of them and
    its weights are restored. A method of several stages has one history per stage; the main one
    holds the score of the complete task.
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
    stage: str = ""  # its name, where a method names its stages
    done: float | None = None  # the share of all stages before this one, where it is known

    def append(self, loss: float, score: float) -> bool:
        """Add an epoch and return whether it is the best so far, or equal to it."""
        index = len(self.loss)
        self.loss.append(loss)
        self.score.append(score)
        if score > self.best_score:
            self.first_best_epoch = index
        if score >= self.best_score:
            self.best_epoch, self.best_score = index, score
            return True
        return False

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in CONTINUED}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in CONTINUED:
            setattr(self, name, state[name])

    @property
    def epochs(self) -> int:
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
    recordable: bool = False,
    ranks: Ranks = ALONE,
    checkpoint: Checkpoint | None = None,
) -> History:
    """Train with Adam until the validation score has not improved for `patience` epochs.

    `epoch` returns loss and score of the same weights, so that a method can share work between
    them. Among epochs of equal score, patience counts from the first and the weights of the last
    are restored, as in the paper's comparison. Buffers are restored with the weights. Ctrl-C ends
    training early with the best model so far.

    Args:
        module: Module to train; its best weights and buffers are restored at the end.
        epoch: Returns the loss, with gradients, and the score; larger scores are better. One that
            is `Stateful` is stored in checkpoints.
        weight_decay: Weight decay, except for modules with `decays = False`.
        on_epoch: Called after every epoch, on the CUDA stream of training.
        main: Stored in the history.
        recordable: Whether all epochs but the first few run the same operations on tensors of the
            same sizes without synchronising: a GPU then replays a recorded epoch much faster.
        ranks: The processes that train together; the epoch of each gives its share of the loss.
            Ctrl-C then ends all of them.
        checkpoint: Where training is saved as it goes on; a file that is there is continued.
    """
    optimizer = adam(module, learning_rate, weight_decay)
    history = History(max_epochs=max_epochs, patience=patience, main=main)
    best = _BestWeights(module)
    parts: dict[str, Stateful] = {"module": module, "optimizer": optimizer, "best": best}
    parts |= {"history": history} | ({"epoch": epoch} if isinstance(epoch, Stateful) else {})
    if checkpoint is not None:
        checkpoint.load(parts)
    if ranks.size > 1:
        epoch = shared_epoch(module, epoch, ranks)
    step: Step | RecordedStep = Step(epoch, optimizer)
    device = next(module.parameters()).device
    recordable = recordable and has_kernels(device)
    started = perf_counter()
    try:
        with side_stream(device) if recordable else nullcontext() as stream:
            for index in range(len(history.loss), max_epochs + 1):
                if stream and index == RECORD_AFTER:
                    step = recorded(epoch, optimizer, stream)
                loss, score = step.evaluate()
                if not math.isfinite(loss):
                    raise FloatingPointError(
                        f"The loss became {loss} in epoch {index}; try a smaller learning_rate."
                    )
                if history.append(loss, score):
                    best.save()
                if on_epoch is not None:
                    on_epoch(history)
                if index == max_epochs or index - history.first_best_epoch > patience:
                    break
                step.update()
                if checkpoint is not None:
                    checkpoint.save(parts)
    except KeyboardInterrupt:
        if not history.loss or ranks.size > 1:  # nothing to restore yet, or others go on
            raise
        history.interrupted = True
        del history.score[len(history.loss) :], history.loss[len(history.score) :]
    finally:
        optimizer.zero_grad()  # gradients may use a recording's memory
    best.restore()
    if checkpoint is not None:
        checkpoint.remove()
    history.seconds = perf_counter() - started
    logger.debug("best epoch %d of %d", history.best_epoch, history.epochs)
    return history


def adam(module: nn.Module, learning_rate: float, weight_decay: float) -> torch.optim.Adam:
    """The optimizer of a module; modules with `decays = False` have no weight decay."""
    exempt = {
        id(weight)
        for part in module.modules()
        if not getattr(part, "decays", True)
        for weight in part.parameters()
    }
    groups: dict[float, list[nn.Parameter]] = {}
    for weight in module.parameters():
        groups.setdefault(0.0 if id(weight) in exempt else weight_decay, []).append(weight)
    params = [{"params": some, "weight_decay": decay} for decay, some in groups.items()]
    return torch.optim.Adam(params, lr=learning_rate, fused=True)


class Step:
    """One epoch: evaluate the weights, then update them."""

    def __init__(self, epoch: Epoch, optimizer: torch.optim.Optimizer) -> None:
        self.epoch, self.optimizer = epoch, optimizer

    def evaluate(self) -> Any:
        self.optimizer.zero_grad()
        self.loss, score = self.epoch()
        return torch.stack([self.loss.detach(), score.to(self.loss)]).tolist()

    def update(self) -> None:
        self.loss.sum().backward()
        del self.loss  # frees the autograd graph
        self.optimizer.step()


def gradients_like(loss: Tensor, weights: Sequence[Tensor]) -> list[Tensor | None]:
    """Gradients with the strides of their weights, as Adam's fused kernel needs them on a GPU."""
    gradients = torch.autograd.grad(loss, weights, allow_unused=True)
    return [
        gradient
        if gradient is None or gradient.stride() == weight.stride()
        else torch.empty_like(weight).copy_(gradient)
        for gradient, weight in zip(gradients, weights, strict=True)
    ]


class RecordedStep:
    """The same, recorded once as a CUDA graph that launches all kernels of an epoch at once."""

    def __init__(
        self, epoch: Epoch, optimizer: torch.optim.Optimizer, stream: torch.cuda.Stream
    ) -> None:
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        self.optimizer, self.graph = optimizer, torch.cuda.CUDAGraph()
        mode = "thread_local"  # other threads may use the GPU meanwhile
        with torch.cuda.graph(self.graph, stream=stream, capture_error_mode=mode):
            loss, score = epoch()
            gradients = gradients_like(loss.sum(), weights)
            self.values = torch.stack([loss.detach(), score.to(loss)])
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient  # overwritten by every replay

    def evaluate(self) -> Any:
        self.graph.replay()
        return self.values.tolist()

    def update(self) -> None:
        self.optimizer.step()


def recorded(
    epoch: Epoch, optimizer: torch.optim.Optimizer, stream: torch.cuda.Stream
) -> Step | RecordedStep:
    """A recorded step, or a plain one if an epoch cannot be recorded."""
    with deferred_interrupts():
        try:
            return RecordedStep(epoch, optimizer, stream)
        except RuntimeError as error:
            logger.debug("not recorded: %s", error)
            return Step(epoch, optimizer)


@cache
def _cached_stream(device: int) -> torch.cuda.Stream:
    """One stream per GPU: libraries hold memory for every stream that they have seen."""
    return torch.cuda.Stream(device)


@contextmanager
def side_stream(device: torch.device) -> Iterator[torch.cuda.Stream]:
    """Work on a non-default stream of a GPU, as recording requires."""
    with torch.cuda.device(device):
        stream, default = _cached_stream(torch.cuda.current_device()), torch.cuda.current_stream()
        stream.wait_stream(default)
        try:
            with torch.cuda.stream(stream):
                yield stream
        finally:
            default.wait_stream(stream)


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Defer Ctrl-C to the end of a block that must run to completion."""
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts reach the main thread only
        return
    deferred: list[tuple[int, FrameType | None]] = []
    handler = signal.signal(signal.SIGINT, lambda *call: deferred.append(call))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if deferred and callable(handler):
            handler(*deferred[0])


class _BestWeights:
    """A copy of a module's weights and buffers, in memory that is allocated once."""

    def __init__(self, module: nn.Module) -> None:
        self.live = [*module.parameters(), *module.buffers()]
        self.saved = [tensor.detach().clone() for tensor in self.live]

    def state_dict(self) -> dict[str, Any]:
        return {"saved": self.saved}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        for saved, value in zip(self.saved, state["saved"], strict=True):
            saved.copy_(value)

    @torch.no_grad()
    def save(self) -> None:
        with deferred_interrupts():  # all of them or none
            for saved, live in zip(self.saved, self.live, strict=True):
                saved.copy_(live)

    @torch.no_grad()
    def restore(self) -> None:
        for saved, live in zip(self.saved, self.live, strict=True):
            live.copy_(saved)


RANDOM = "random"
CHECKSUM = 32  # bytes of SHA-256, which a checkpoint begins with


@dataclass
class Checkpoint:
    """A file that training is saved in every few seconds, and that it continues from.

    All processes that train together have the same state: the first one writes it, and any number
    of them continues from it. The random state is stored as well, so that the result is that of a
    run without a break. Name it by a hash of what is trained, so that nothing else continues it.
    """

    path: Path
    every: float = 30.0  # seconds between two writes
    ranks: Ranks = ALONE
    latest: float = field(default_factory=monotonic, init=False)

    def load(self, parts: Mapping[str, Stateful]) -> bool:
        """Put the parts into the state of the file; returns whether there is an undamaged one."""
        content = self.ranks.once(lambda: self.path.read_bytes() if self.path.is_file() else None)
        if content is None:
            return False
        checksum, content = content[:CHECKSUM], content[CHECKSUM:]
        if sha256(content).digest() != checksum:
            if not self.ranks.rank:
                logger.warning("%s is damaged: training starts over.", self.path)
            return False
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        for name, part in parts.items():
            part.load_state_dict(state[name])
        restore_random_state(state[RANDOM])
        return True

    def save(self, parts: Mapping[str, Stateful]) -> None:
        """Write the file, if it is time to."""
        if self.ranks.rank or monotonic() - self.latest < self.every:
            return
        state: dict[str, Any] = {name: part.state_dict() for name, part in parts.items()}
        buffer = io.BytesIO()
        torch.save(state | {RANDOM: random_state()}, buffer)
        content = buffer.getvalue()
        write_atomic(sha256(content).digest() + content, self.path)
        self.latest = monotonic()

    def remove(self) -> None:
        """Remove the file once training is complete."""
        if not self.ranks.rank:
            self.path.unlink(missing_ok=True)


LONGEST = 17  # characters of the name of a stage: a terminal has 80 columns
LINE_EVERY = 5.0  # seconds
BAR, TIME = 20, 9  # characters of a bar, and of the time with a space on both sides


@contextmanager
def epoch_bar(title: str, visible: bool | None = None) -> Iterator[Callback | None]:
    """Yield a callback that draws a progress bar, or None if nothing is to be drawn.

    The bar shows the share of the stages that are done, if it is known, otherwise of the epochs if
    nothing improves any more. It never shrinks within a stage: after a better score, it waits.
    """
    if not (sys.stderr.isatty() if visible is None else visible):
        yield None
        return
    from rich.progress import TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.fields[facts]}"), TimeElapsedColumn()
    with _progress(columns, refresh_per_second=8) as progress:
        bar = progress.add_task(title, total=None, visible=False, facts="")
        stages, epochs, share = 1, 0, 0.0

        def show(history: History) -> None:
            nonlocal stages, epochs, share
            done = history.done
            if history.epochs < epochs and done is None:  # another stage
                stages, share = stages + 1, 0.0
            patience, max_epochs = history.patience, history.max_epochs
            waited = history.epochs - history.first_best_epoch
            left = max(min(patience - waited, max_epochs - history.epochs), 0)
            epochs = history.epochs
            share = max(share, epochs / max(epochs + left, 1) if done is None else done)
            stage = history.stage[:LONGEST].rstrip() or (f"stage {stages}" if stages > 1 else "")
            name = f"{title}, {stage}" if stage else title
            progress.update(
                bar,
                visible=True,
                description=name,
                total=1.0,
                completed=share,
                facts=_facts(history, left, room=progress.console.width - len(name)),
            )

        yield show


def _facts(history: History, left: int, room: int) -> str:
    """Text between bar and time; parts without room are left out, the last first."""
    facts = [f"epoch {history.epochs:>4}", f"{left} left"]
    if history.best_score >= 0:  # otherwise not scored before training ends
        facts.insert(1, f"best {100 * history.best_score:.1f} at {history.best_epoch}")
        facts.append(f"val {100 * history.score[-1]:5.1f}")
    while len(" ".join(facts)) + 1 > room - BAR - TIME and len(facts) > 1:
        facts.pop()
    return " ".join(facts)


def epoch_lines(title: str, write: Callable[[str], None]) -> Callback:
    """A callback that writes a line about the epochs every few seconds, for a log."""
    started = latest = monotonic()

    def show(history: History) -> None:
        nonlocal latest
        now = monotonic()
        if now - latest < LINE_EVERY:
            return
        latest = now
        name = f"{title}, {history.stage}" if history.stage else title
        score = f"val {100 * history.score[-1]:.1f}, best {100 * history.best_score:.1f} at "
        score = f"{score}{history.best_epoch}, " if history.best_score >= 0 else ""  # none yet
        trees = history.stage and not history.epochs  # which have no epochs
        epoch = "" if trees else f"epoch {history.epochs}, {score}"
        write(f"{name}: {epoch}{now - started:.0f} s")

    return show


@contextmanager
def count_bar(title: str, total: int, visible: bool | None = None) -> Iterator[Callable[[], None]]:
    """Yield a function to call once per finished item; a progress bar counts them."""
    if not (sys.stderr.isatty() if visible is None else visible):
        yield lambda: None
        return
    from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    left = TextColumn("[dim]left"), TimeRemainingColumn()
    with _progress((MofNCompleteColumn(), TimeElapsedColumn(), *left), 4) as progress:
        bar = progress.add_task(title, total=total)
        yield lambda: progress.advance(bar)


def _progress(columns: tuple[Any, ...], refresh_per_second: int) -> Any:
    """A bar with a title and further columns; Rich takes its time to import."""
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=BAR),
        *columns,
        console=make_console(stderr=True),
        transient=True,
        refresh_per_second=refresh_per_second,
    )
