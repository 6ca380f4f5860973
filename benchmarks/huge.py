"""`python -m benchmarks.huge`: a graph of 20 million nodes and 400 million edges on one GPU.

The graph is generated and put into the memory of the host. From there on the clock runs: Uni-GNN
at alpha 1, then Unison, each until its predictions. `--nodes` and `--edges` make it small enough
for any machine; without a GPU everything runs on the CPU.
"""

from __future__ import annotations

import argparse
import gc
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch_geometric.data import Data

from benchmarks.timing import table
from evengraph.core.task import Task
from evengraph.fast import unignn
from evengraph.fast.unignn import UnifiedBatch
from evengraph.methods import METHODS
from evengraph.methods.bases.method import Method
from evengraph.nn.members import Views
from evengraph.pipeline.executor import describe
from evengraph.training import History

SHARES = (0.5, 0.25, 0.15, 0.08, 0.02)  # of the classes
SAME_CLASS = 0.5  # share of the edges within a class
LABELLED = 0.1  # share of the nodes to train on, and as many to validate on


def generate(nodes: int, edges: int, features: int, device: torch.device) -> Task:
    """A graph on the host, both directions of every edge; it is generated on the device."""
    torch.manual_seed(0)
    y = torch.multinomial(torch.tensor(SHARES), nodes, replacement=True).to(device)
    centres = torch.randn(len(SHARES), features, device=device)
    x = torch.randn(nodes, features, device=device).mul_(8).add_(centres[y]).cpu()
    source = torch.randint(nodes, (edges // 2,), device=device)
    target = torch.randint(nodes, (edges // 2,), device=device)
    within = torch.rand(edges // 2, device=device) < SAME_CLASS
    sizes = torch.bincount(y, minlength=len(SHARES))
    first, members = sizes.cumsum(0) - sizes, y.argsort()
    kind = y[source]
    inside = members[first[kind] + target % sizes[kind]]
    target = torch.where(within, inside, target)
    edge_index = torch.empty(2, 2 * source.numel(), dtype=torch.long)  # on the host
    edge_index[0], edge_index[1] = _both(source, target), _both(target, source)
    part = torch.rand(nodes)
    train, val = part < LABELLED, (part >= LABELLED) & (part < 2 * LABELLED)
    graph = Data(x=x, edge_index=edge_index, y=y.cpu())
    return Task(graph, train, val, ~train & ~val, len(SHARES))


def _both(source: Tensor, target: Tensor) -> Tensor:
    return torch.cat([source, target]).cpu()


class Clock:
    """Seconds since the data were on the host, of stages and of epochs."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.stages = device, dict[str, float]()
        self.first_epoch: float | None = None
        self.epochs: list[float] = []  # seconds of each
        self.start = self.last = perf_counter()

    def now(self) -> float:
        """Seconds since the start, after all work on the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return perf_counter() - self.start

    def timed(self, stage: str, task: Callable[..., Any]) -> Callable[..., Any]:
        """A function that adds its time to a stage."""

        def run(*arguments: Any, **options: Any) -> Any:
            before = self.now()
            result = task(*arguments, **options)
            self.stages[stage] = self.stages.get(stage, 0.0) + self.now() - before
            return result

        return run

    def on_epoch(self, history: History) -> None:
        """An epoch has ended."""
        now = self.now()
        if self.first_epoch is None:
            self.first_epoch = now
        else:
            self.epochs.append(now - self.last)
        self.last = now


@contextmanager
def watched(clock: Clock, kind: type[Method]) -> Iterator[None]:
    """Time the parts of a fit."""
    owner: Any = unignn if kind.__name__ == "UniGNN" else Views
    name, stage = ("connect", "matrices") if owner is unignn else ("forward", "views")
    clusters = _method(clock.timed("clusters", UnifiedBatch.before))
    with (
        patch.object(owner, name, _method(clock.timed(stage, getattr(owner, name)))),
        patch.object(UnifiedBatch, "before", clusters),
    ):
        yield


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *arguments, **options: function(self, *arguments, **options)


def measure(task: Task, method: Method, device: torch.device) -> list[object]:
    """Fit and predict; one row of the table."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    clock = Clock(device)
    moved = clock.timed("transfer", task.to)(device) if device.type == "cuda" else task
    with watched(clock, type(method)):
        method.fit(moved, seed=0, on_epoch=clock.on_epoch, progress=False)
    fitted = clock.now()
    probabilities = method.predict_proba(moved.graph)
    predicted = clock.now() - fitted
    classes = probabilities.argmax(1)
    scores = [
        (classes[moved.test & (moved.graph.y == label)] == label).double().mean().item()
        for label in range(moved.num_classes)
    ]
    for stage, seconds in clock.stages.items():
        print(f"{method.title}: {stage} {seconds:.1f} s", flush=True)
    return [
        method.title,
        clock.first_epoch,
        1000 * median(clock.epochs) if clock.epochs else "",
        fitted,
        predicted,
        _peak(device),
        f"{100 * sum(scores) / len(scores):.1f}",
        f"{100 * scores[-1]:.1f}",
    ]


def _peak(device: torch.device) -> float:
    """GiB at most: on a GPU of allocated memory, on the CPU resident."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**30
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=20_000_000)
    parser.add_argument("--edges", type=int, default=400_000_000, help="both directions")
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--methods", default="unignn,unison")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    device = torch.device(options.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else platform.processor()
    print(f"{name}, torch {torch.__version__}, commit {describe(device)['commit']}")
    start = perf_counter()
    task = generate(options.nodes, options.edges, options.features, device)
    print(f"generated in {perf_counter() - start:.1f} s, on the host", flush=True)
    rows: list[list[object]] = []
    for method in options.methods.split(","):
        kind = METHODS[method]
        params: dict[str, Any] = {"max_epochs": options.epochs}
        if method == "unignn":
            params |= {"alpha": 1, "memory_limit": 2**36}
        rows.append(measure(task, kind(**params), device))
        print(*rows[-1], flush=True)
    table(
        f"{options.nodes:,} nodes, {options.edges:,} directed edges, {options.features} features, "
        f"{len(SHARES)} classes; targets: first epoch within 60 s, 600 ms per epoch",
        [
            "method",
            "first epoch s",
            "ms per epoch",
            f"{options.epochs} epochs s",
            "predict s",
            "GiB",
            "bAcc",
            "rare recall",
        ],
        rows,
    )


if __name__ == "__main__":
    main()
