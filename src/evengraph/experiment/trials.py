"""Trials: a method fitted to a split, here, by several processes, or side by side on a card."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter, time
from typing import Any

import torch
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods import Method, fit_many
from evengraph.metrics import evaluate, reported, validation_score
from evengraph.metrics.calibration import Calibrator
from evengraph.splits import SplitProtocol
from evengraph.training import History
from evengraph.training.batch.replicas import can_replicate

EXPECTED = (ValueError, ArithmeticError, MemoryError, RuntimeError)
"""What a fit may fail with, so that the others go on."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A method to fit to a split.

    Args:
        label: What the method is called.
        place: Which of its settings this is.
        method: The method.
        seed: Of the split and of the fit.
    """

    label: str
    place: int
    method: Method
    seed: int


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What all trials share.

    Args:
        graph: To learn from.
        protocol: Splits it.
        positive: Of two classes the one that matters.
        k: For precision at k.
        device: Where to train.
    """

    graph: Data
    protocol: SplitProtocol
    positive: int | None
    k: int | None
    device: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a trial gave.

    Args:
        label: What the method is called.
        place: Which of its settings this is.
        seed: Of the split and of the fit.
        settings: The method's fields.
        metrics: On the test nodes, in percent.
        validation: Macro-F1 on the validation nodes, in percent: what settings are chosen by.
        calibrator: Fitted on the validation nodes.
        epochs: Steps taken, in all stages.
        seconds: Of the fit.
    """

    label: str
    place: int
    seed: int
    settings: dict[str, Any]
    metrics: dict[str, float]
    validation: float
    calibrator: dict[str, Any]
    epochs: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a trial came to nothing."""

    label: str
    seed: int
    reason: str


Ended = Outcome | Failure
OnTrial = Callable[[Ended], None]


def run_trials(
    trials: Sequence[Trial], terms: Terms, jobs: int, time_limit: float | None, on_trial: OnTrial
) -> tuple[list[Ended], bool]:
    """Do trials in order; what ended, and whether time or Ctrl-C left some undone."""
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}.")
    deadline = time() + time_limit if time_limit is not None else None
    ended: list[Ended] = []

    def tell(one: Ended) -> None:
        ended.append(one)
        on_trial(one)

    device = torch.device(terms.device)
    left = list(trials)
    whole = False
    try:
        if can_replicate(device) and deadline is None:
            left = _side_by_side(left, terms, tell)
        if jobs > 1 and device.type == "cpu" and len(left) > 1:
            whole = _by_processes(left, terms, deadline, jobs, tell)
        else:
            whole = _one_by_one(left, terms, deadline, tell)
    except KeyboardInterrupt:  # what has ended counts
        if not ended:
            raise
    return ended, not whole


def _one_by_one(
    trials: Sequence[Trial], terms: Terms, deadline: float | None, tell: OnTrial
) -> bool:
    """In this process; whether there was time for all."""
    graph, device = terms.graph, torch.device(terms.device)
    graph = graph if graph.y.device == device else graph.clone().to(device)
    lost: set[str] = set()
    task, seed = None, None
    for trial in trials:
        if trial.label in lost:  # it is left out already
            continue
        if task is None or trial.seed != seed:
            task, seed = terms.protocol(graph, seed=trial.seed), trial.seed
        result = _attempt(trial, task, terms, deadline)
        if result is None:
            return False
        if isinstance(result, Failure):
            lost.add(trial.label)
        tell(result)
    return True


def _attempt(trial: Trial, task: Task, terms: Terms, deadline: float | None) -> Ended | None:
    """One fit; nothing if time ran out over it."""

    def watch(_: History) -> None:
        if deadline is not None and time() >= deadline:
            raise KeyboardInterrupt  # training ends as it does when somebody stops it

    started = perf_counter()
    try:
        trial.method.fit(task, seed=trial.seed, on_epoch=watch, progress=False)
        if any(history.interrupted for history in trial.method.history_):
            raise KeyboardInterrupt
        return _outcome(trial, task, terms, perf_counter() - started)
    except EXPECTED as error:
        return _failure(trial, error)
    except KeyboardInterrupt:
        if deadline is None or time() < deadline:
            raise
        return None


def _outcome(trial: Trial, task: Task, terms: Terms, seconds: float) -> Outcome:
    """Predict, calibrate on validation, evaluate on test."""
    method = trial.method
    probabilities = method.predict_proba(task.graph)
    validation = probabilities[task.val], task.graph.y[task.val]
    calibrator = Calibrator.fit(*validation)
    shifted = Calibrator.fit(*validation, shift=True)
    scores = evaluate(
        task,
        probabilities,
        positive=terms.positive,
        k=terms.k,
        calibrators=(calibrator, shifted),
    )
    return Outcome(
        label=trial.label,
        place=trial.place,
        seed=trial.seed,
        settings=asdict(method),
        metrics=reported(scores),
        validation=100 * float(validation_score(probabilities, task)),
        calibrator=calibrator.as_dict(),
        epochs=sum(history.epochs for history in method.history_),
        seconds=seconds,
    )


def _failure(trial: Trial, error: BaseException) -> Failure:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return Failure(label=trial.label, seed=trial.seed, reason=reason)


def _side_by_side(trials: Sequence[Trial], terms: Terms, tell: OnTrial) -> list[Trial]:
    """On a card; returns those that want to be tried alone, as something went wrong."""
    graph = terms.graph.clone().to(terms.device)
    tasks = {seed: terms.protocol(graph, seed=seed) for seed in {one.seed for one in trials}}
    methods = [trial.method for trial in trials]
    left = dict(enumerate(trials))
    stopped = False

    def fitted(place: int) -> None:
        nonlocal stopped
        trial = left.pop(place)
        history = trial.method.history_
        if any(one.interrupted for one in history):
            stopped = True
            return
        spent = sum(one.seconds for one in history)
        tell(_outcome(trial, tasks[trial.seed], terms, spent))

    try:
        fit_many(
            methods,
            [tasks[trial.seed] for trial in trials],
            seeds=[trial.seed for trial in trials],
            on_fit=fitted,
            progress=False,
        )
    except EXPECTED:
        return list(left.values())
    if stopped:
        raise KeyboardInterrupt
    return []


def _by_processes(
    trials: Sequence[Trial], terms: Terms, deadline: float | None, jobs: int, tell: OnTrial
) -> bool:
    """By several processes with a thread each, which share one copy of the graph on disk.

    Returns whether there was time for all.
    """
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    content = {
        name: value.cpu().numpy() if isinstance(value, torch.Tensor) else value
        for name, value in terms.graph.to_dict().items()
    }
    rest = {name: value for name, value in vars(terms).items() if name != "graph"}
    pool = Parallel(
        n_jobs=min(jobs, len(trials)),
        backend="loky",
        return_as="generator_unordered",
        mmap_mode="c",  # readable by all, and a write stays with its writer
    )
    parent = os.getpid()
    work = delayed(_in_a_process)
    whole = True
    try:
        for one in pool(work(trial, content, rest, deadline, parent) for trial in trials):
            if one is None:
                whole = False
            else:
                tell(one)
    except TerminatedWorkerError:
        raise MemoryError(
            "A process died, most likely for want of memory; try again with fewer jobs."
        ) from None
    return whole


def _in_a_process(
    trial: Trial,
    content: dict[str, Any],
    rest: dict[str, Any],
    deadline: float | None,
    parent: int,
) -> Ended | None:
    if os.getpid() != parent:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to hear
        torch.set_num_threads(1)
    if deadline is not None and time() >= deadline:
        return None
    graph = Data.from_dict(
        {
            name: torch.from_numpy(value) if hasattr(value, "__array_interface__") else value
            for name, value in content.items()
        }
    )
    terms = Terms(graph=graph, **rest)
    return _attempt(trial, terms.protocol(graph, seed=trial.seed), terms, deadline)
