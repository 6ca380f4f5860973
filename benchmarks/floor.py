"""A lower bound of the time of a Uni-GNN epoch, from memory traffic and arithmetic.

The work of each step is counted; bandwidth and arithmetic throughput are measured on this machine,
on arrays of similar size. A step takes at least the longer of the two, and steps run in sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from time import perf_counter

import torch
from torch import Tensor

from evengraph.fast.unignn import Connectivity

FLOAT = 4  # bytes
ENTRY = 8  # bytes of an entry of a sparse matrix: column and value


@dataclass(frozen=True)
class Step:
    """Bytes moved, the size of the arrays they are moved from, and floating-point operations."""

    name: str
    moved: float
    held: float
    operations: float = 0.0


def steps(
    inputs: Connectivity,
    num_classes: int,
    hidden: int,
    replicas: int = 1,
    *,
    few: bool,
    examples: int = 0,
) -> list[Step]:
    """All steps of one epoch with two layers and both encoders.

    Args:
        inputs: The graph.
        num_classes: Number of classes.
        hidden: Width of an encoder.
        replicas: Runs in one batch.
        few: Whether the loss covers so few nodes that its last layer is negligible.
        examples: How many nodes the loss covers, if not all, but so many that their neighbours are
            most of the graph: all need the last layer, and only these the classifier.
    """
    nodes, features = inputs.x.shape
    width = 2 * hidden
    work: list[Step] = []

    def dense(name: str, rows: int, inner: int, outer: int, shared: bool = False) -> None:
        read = rows * inner * (1 if shared else replicas) + replicas * inner * outer
        moved = FLOAT * (read + replicas * rows * outer)
        work.append(Step(name, moved, moved, 2.0 * replicas * rows * inner * outer))

    def sparse(name: str, entries: float, rows: float, inner: int, columns: int) -> None:
        gathered = FLOAT * replicas * entries * columns
        moved = ENTRY * entries + gathered + FLOAT * replicas * rows * columns
        work.append(Step(name, moved, FLOAT * inner * columns))

    def plain(name: str, *passes: float) -> None:
        moved = FLOAT * replicas * nodes * sum(passes)
        work.append(Step(name, moved, moved))

    x, paths, adjacency = inputs.x, inputs.structural.matrix, inputs.adjacency.matrix
    edges, pairs = adjacency.values().numel(), paths.values().numel()
    for way in ("forwards", "backwards"):
        if isinstance(x, Tensor):
            dense(f"features {way}", nodes, features, width, shared=True)
        else:
            entries = x.matrix.values().numel()
            rows, inner = (nodes, features) if way == "forwards" else (features, nodes)
            sparse(f"features {way}", entries, rows, inner, width)
        if inputs.along_paths is None:
            sparse(f"paths, first layer {way}", pairs, nodes, nodes, hidden)
        plain(f"clusters, first layer {way}", 3 * hidden)
    # once without dropout; with it, and gradients by input and by weight
    layer, classified = (0, 0) if few else (nodes, examples or nodes)
    for rows, last in ((nodes, nodes), *3 * ((layer, classified),)):
        dense("second layer", rows, width, width)
        dense("classifier", last, width, hidden)
        dense("classes", last, hidden, num_classes)
    # once without dropout; with it, and its gradient
    part, columns = (classified / nodes, width) if examples else (1.0, hidden)
    for again in range(1 if few else 3):
        sparse("paths, second layer", pairs, nodes, nodes, hidden)
        share, across = (part, columns) if again else (1.0, hidden)
        sparse("classifier, edges", share * edges, share * nodes, nodes, across)
        plain("clusters, second layer", 3 * hidden)
    plain("activations", 2 * width, 2 * width if few else 4 * width, 2 * hidden)
    plain("dropout and its gradient", 2 * width, 3 * width, *([] if few else [5 * width]))
    plain("softmax and choice", 3 * num_classes)
    weights = features * width + width * width + width * hidden + hidden * num_classes
    work.append(Step("Adam", FLOAT * 7 * replicas * weights, FLOAT * 7 * replicas * weights))
    return work


def milliseconds(work: list[Step], device: torch.device) -> float:
    """Lower bound of the time of the steps on a device."""
    rate = arithmetic(device)
    return 1000 * sum(
        max(step.moved / bandwidth(device, _size(step.held)), step.operations / rate)
        for step in work
    )


def _size(held: float) -> int:
    """The next power of two, within a useful range."""
    return min(max(1 << int(held).bit_length(), 2**20), 2**28)


@cache
def bandwidth(device: torch.device, held: int) -> float:
    """Bytes per second read from and written to arrays of `held` bytes in total.

    On a GPU small arrays are read repeatedly, so the bandwidth of its caches matters.
    """
    if device.type == "cuda" and held <= torch.cuda.get_device_properties(device).L2_cache_size:
        again = 64
        source = torch.ones(2**22, device=device)
        many = source.expand(again, -1)
        return again * FLOAT * source.numel() / _seconds(lambda: many.sum(0), device)
    source = torch.ones(held // 8, device=device)
    target = torch.empty_like(source)
    rounds = max(2**26 // held, 1)

    def copy() -> None:
        for _ in range(rounds):
            target.copy_(source)

    return rounds * held / _seconds(copy, device)


@cache
def arithmetic(device: torch.device) -> float:
    """Floating-point operations per second of a large product."""
    size = 1024 if device.type == "cpu" else 8192
    one = torch.ones(size, size, device=device)
    return 2 * size**3 / _seconds(lambda: one @ one, device)


def _seconds(task: Callable[[], object], device: torch.device) -> float:
    """The shortest of several measurements."""
    spent = []
    if device.type == "cuda":
        task()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()  # without the gaps between launches
        with torch.cuda.graph(graph):
            task()
        task = graph.replay
    for _ in range(20):
        if device.type == "cuda":
            torch.cuda.synchronize()
        start = perf_counter()
        task()
        if device.type == "cuda":
            torch.cuda.synchronize()
        spent.append(perf_counter() - start)
    return min(spent)
