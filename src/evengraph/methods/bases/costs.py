"""What a method costs on a graph of some size, from measurements of all methods.

`fit` refuses a graph that cannot fit in memory before anything is allocated.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from evengraph.core.devices import free_memory
from evengraph.core.sizes import format_size
from evengraph.core.task import Task

if TYPE_CHECKING:
    from evengraph.methods.bases.method import Method

TYPICAL_EPOCHS = 300

DEGREE, FEATURES, WIDTH, EDGE = 10, 64, 64, 8
"""Of the graphs on which methods were measured; an edge weighs as much as so many numbers."""

ENTRY, SPARSE_BELOW, SAMPLE = 4, 0.25, 1000
"""Numbers that an entry of sparse features weighs as much as; below which density they are sparse;
and rows from which that is estimated."""

MARGIN = 2.0
"""Times the free memory that an estimate may be: it can be off by as much."""


class Cost(NamedTuple):
    """What fitting takes, about.

    Args:
        memory: Bytes.
        seconds: On one core, for `TYPICAL_EPOCHS` epochs.
    """

    memory: float
    seconds: float


def estimate(method: str, num_nodes: int, num_edges: int, num_features: float) -> Cost | None:
    """What a method takes, if it grows with nodes, edges and features; None if not measured.

    Args:
        method: Its name in `METHODS`.
        num_nodes: N.
        num_edges: E, two for each undirected edge.
        num_features: F, or `stored_width`.
    """
    measured = _measurements().get(method)
    if measured is None:
        return None
    size = num_nodes * (num_features + WIDTH) + EDGE * num_edges
    nodes = size / (FEATURES + WIDTH + EDGE * DEGREE)  # of the size of those measured
    memory, once, epoch = measured
    return Cost(memory * nodes, 1e-6 * nodes * (once + TYPICAL_EPOCHS * epoch))


def stored_width(x: Any) -> float:
    """Numbers that a row of features takes while a method learns that keeps sparse ones sparse.

    From a sample of rows. An entry is stored with its column, in the matrix and its transpose.

    Shapes:
        x: (N, F), of torch or NumPy
    """
    some = x[:: max(len(x) // SAMPLE, 1)]
    rows = some if isinstance(some, torch.Tensor) else torch.from_numpy(np.array(some))
    entries = int(torch.count_nonzero(rows)) / max(len(rows), 1)
    num_features = x.shape[1]
    return ENTRY * entries if entries < SPARSE_BELOW * num_features else num_features


def check_memory(method: Method, task: Task) -> None:
    """Raise MemoryError if a fit needs far more memory than is free."""
    needed, free = method.memory_needed(task), free_memory(task.graph.x.device)
    if needed is None or needed <= MARGIN * free:
        return
    graph = task.graph
    raise MemoryError(
        f"{method.title} needs about {format_size(needed)} of memory to learn from "
        f"{graph.num_nodes:,} nodes, {graph.num_edges // 2:,} edges and {graph.num_features:,} "
        f"features, and {format_size(free)} are free."
    )


@cache
def _measurements() -> dict[str, tuple[float, float, float]]:
    """Bytes, microseconds and microseconds per epoch of each method, for a node."""
    text = files("evengraph.methods").joinpath("costs.csv").read_text(encoding="utf-8")
    return {
        row["method"]: (
            float(row["bytes_per_node"]),
            float(row["microseconds_per_node"]),
            float(row["microseconds_per_node_and_epoch"]),
        )
        for row in csv.DictReader(text.splitlines())
    }
