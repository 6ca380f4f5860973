"""Job: one fit with everything it needs, and the results it can have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.records import Record
from evengraph.core.store import JobSpec
from evengraph.core.task import Task
from evengraph.datasets import load
from evengraph.methods import Method
from evengraph.metrics.costs import Costs
from evengraph.pipeline.on_disk import DiskGraph
from evengraph.splits import SplitProtocol
from evengraph.training import Callback


@dataclass(frozen=True)
class NamedGraph:
    """A data set by its name; every process loads it once."""

    name: str
    root: Path | None = None

    def load(self) -> Data:
        """Return the graph."""
        return _load_once(self.name, self.root)


@cache
def _load_once(name: str, root: Path | None) -> Data:
    return load(name, root=root)


class LoadedGraph:
    """A graph in memory. It is sent as NumPy arrays, which joblib maps into all workers."""

    def __init__(self, graph: Data) -> None:
        self._graph = graph
        self._arrays: dict[str, Any] = {}

    def load(self) -> Data:
        """Return the graph."""
        return self._graph

    def __getstate__(self) -> dict[str, Any]:
        # joblib recognises an array it has mapped before by its identity
        self._arrays = self._arrays or {
            name: value.cpu().numpy() if isinstance(value, torch.Tensor) else value
            for name, value in self._graph.to_dict().items()
        }
        return self._arrays

    def __setstate__(self, arrays: dict[str, Any]) -> None:
        content = {name: _as_tensor(value) for name, value in arrays.items()}
        self.__init__(Data.from_dict(content))  # type: ignore[misc]


def _as_tensor(value: Any) -> Any:
    if not isinstance(value, numpy.ndarray):
        return value
    return torch.from_numpy(value if value.flags.writeable else value.copy())


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """One fit of a method to one split of a graph.

    Args:
        label: Name of the method, or of its settings; what follows a failure under the same
            label is skipped.
        graph: Where the graph comes from.
        protocol: Makes the split.
        method: The method; the executor fits a fresh copy of it.
        seed: Seed of the split and of the fit.
        candidate: Index of the settings among those tried under this label.
        positive: For two classes, the class that two-class metrics are about.
        k: For two classes, the k of precision at k.
        costs: For two classes, the costs of misses and false alarms that set the threshold.
        calibrate: Also calibrate on validation nodes and measure that.
        spec: Names and parameters under which a store keeps the result.
        disk: The graph on disk, if it is not in memory; `graph` then holds its labels alone.
    """

    label: str
    graph: NamedGraph | LoadedGraph
    protocol: SplitProtocol
    method: Method
    seed: int
    candidate: int = 0
    positive: int | None = None
    k: int | None = None
    costs: Costs | None = None
    calibrate: bool = False
    spec: JobSpec | None = None
    disk: DiskGraph | None = None

    def fit(self, method: Method, task: Task, on_epoch: Callback | None) -> None:
        """Fit a method to a task."""
        if self.disk is not None:
            self.disk.fit(method, task, seed=self.seed, on_epoch=on_epoch, progress=False)
        else:
            method.fit(task, seed=self.seed, on_epoch=on_epoch, progress=False)

    def predict(self, method: Method, task: Task) -> tuple[Task, Tensor]:
        """The task to score, and class probabilities of its nodes."""
        if self.disk is not None:
            return self.disk.predict_task(method, task)
        return task, method.predict_task(task)

    def make_task(self, device: torch.device | str) -> Task:
        """Split the graph and move the task to a device."""
        task = self.protocol(self.graph.load(), seed=self.seed)
        return task if task.graph.y.device == torch.device(device) else task.to(device)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a job has no record.

    Args:
        reason: One line.
        kind: Name of the exception, if there was one.
        error: The exception itself, in the process that raised it.
    """

    reason: str
    kind: str = ""
    error: Exception | None = None


Result = Record | Failure


def failure_of(job: Job, error: Exception) -> Failure:
    """Turn an exception into the failure of a job."""
    if isinstance(error, RuntimeError) and "memory" in str(error):  # torch raises no MemoryError
        text = f"{job.method.title} ran out of memory: {error}"
        error = MemoryError(text.splitlines()[0]).with_traceback(error.__traceback__)
    kind = type(error).__name__
    return Failure(reason=(str(error).strip() or kind).splitlines()[0], kind=kind, error=error)
