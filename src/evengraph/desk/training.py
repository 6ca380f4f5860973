"""Training beside the desk: a process of its own fits a method to all labels and saves it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Lock, Thread
from time import perf_counter

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import first_line
from evengraph.core.machine import end_with_parent
from evengraph.core.task import HELD_OUT, Task, bare_graph, hold_out
from evengraph.methods import DEFAULT_METHOD, METHODS
from evengraph.metrics.multiclass import balanced_accuracy, confusion_matrix

MEASURED = 3  # held-out labels that every class needs for a score


@dataclass(frozen=True, kw_only=True)
class DeskOptions:
    """How a desk trains: a name in `METHODS`, and how often and how long."""

    method: str = DEFAULT_METHOD
    time_limit: float = 0.0  # seconds of a training, for methods that have a limit; 0 is none
    retrain_every: int = 10  # labels after which to train again; 0 never does
    hide_guess: bool = False  # until a node is answered, so that nobody is swayed by it
    folder: Path  # where the trained model is saved, so that a new start has it at once
    seed: int = 0  # decides which labels are held out, and everything random


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingJob:
    """What to train on, and how; classes without labels are left out."""

    graph: Data
    labels: Tensor  # numbers of classes, -1 for unlabelled, (N,)
    classes: tuple[str, ...]
    options: DeskOptions


def is_enough(labels: Tensor) -> bool:
    """Whether labels can be learnt from: two classes, one of them with a label to hold out."""
    counts = torch.bincount(labels[labels >= 0])
    return int((counts > 0).sum()) >= 2 and int(counts.max()) >= 2


def make_task(job: TrainingJob) -> Task:
    """Hold out a fifth of each class to validate on; a class with one label trains on it."""
    present = sorted({int(label) for label in job.labels[job.labels >= 0]})
    numbers = torch.full((len(job.classes) + 1,), -1)
    numbers[present] = torch.arange(len(present))
    graph = bare_graph(job.graph, y=numbers[job.labels])
    known = graph.y >= 0
    val = hold_out(graph.y, known, HELD_OUT, job.options.seed)
    names = tuple(job.classes[label] for label in present)
    return Task(graph, known & ~val, val, torch.zeros_like(val), len(present), names)


def train(job: TrainingJob) -> None:
    """Fit the method, measure it on held-out labels and save it."""
    begin, task = perf_counter(), make_task(job)
    kind = METHODS[job.options.method]
    params = kind.graph_defaults(task.graph)
    if "time_limit" in {item.name for item in fields(kind)}:
        params["time_limit"] = job.options.time_limit
    method = kind(**params).fit(task, seed=job.options.seed, progress=False)
    held_out = method.held_out(task)
    labels, predicted = task.graph.y[held_out], method.predict_task(task)[held_out].argmax(1)
    confusion = confusion_matrix(labels, predicted, task.num_classes)
    measured = int(confusion.sum(1).min()) >= MEASURED
    score = 100 * float(balanced_accuracy(confusion)) if measured else None
    about = {"labels": int((job.labels >= 0).sum()), "score": score, "method": job.options.method}
    method.save(job.options.folder, extra={**about, "seconds": perf_counter() - begin})


def _work(job: TrainingJob, sender: Connection) -> None:
    end_with_parent()
    try:
        train(job)
    except Exception as problem:
        sender.send(first_line(problem))


class Trainer:
    """Trains one model at a time in another process, so that pages stay quick.

    `on_done` is called in a thread with an empty text, or with what went wrong.
    """

    def __init__(self, on_done: Callable[[TrainingJob, str], None]) -> None:
        self.on_done = on_done
        self.process: BaseProcess | None = None
        self._lock = Lock()

    @property
    def running(self) -> bool:
        return self.process is not None

    def start(self, job: TrainingJob) -> None:
        with self._lock:
            if self.running:
                return
            spawn = multiprocessing.get_context("spawn")  # a fork would inherit locks of threads
            receiver, sender = spawn.Pipe(duplex=False)
            process = spawn.Process(target=_work, args=(job, sender), daemon=True)
            self.process = process
            process.start()
        sender.close()
        Thread(target=self._wait, args=(job, process, receiver), daemon=True).start()

    def stop(self) -> None:
        with self._lock:  # a process that is being started cannot be ended
            process = self.process
        if process is not None:
            process.terminate()

    def _wait(self, job: TrainingJob, process: BaseProcess, receiver: Connection) -> None:
        process.join()
        problem = "" if process.exitcode == 0 else "its process was ended"
        with receiver:
            if receiver.poll():  # also true at the end of what was sent
                with suppress(EOFError):
                    problem = receiver.recv()
        self.process = None
        self.on_done(job, problem)
