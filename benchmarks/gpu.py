"""Epochs of Uni-GNN and GCN on a GPU, single and batched, against a step of PyG's GCN.

`python -m benchmarks.gpu` prints milliseconds per epoch, including evaluation and pseudo-labels,
and the floor of `benchmarks.floor`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import torch

warnings.simplefilter("ignore")  # from PyG and torch, about each other

from benchmarks import floor  # noqa: E402
from benchmarks.epoch import gcn_step  # noqa: E402
from benchmarks.timing import table  # noqa: E402
from evengraph.core.task import Task  # noqa: E402
from evengraph.datasets import load, toy  # noqa: E402
from evengraph.fast.replicas import Fit, batching, train_batch  # noqa: E402
from evengraph.fast.unignn import UnifiedBatch  # noqa: E402
from evengraph.methods import GCN, UniGNN  # noqa: E402
from evengraph.methods.bases.method import reset  # noqa: E402
from evengraph.splits import Natural, Step  # noqa: E402

TOGETHER = 64
REPLAYS = 40  # per measurement
SHORT, LONG = 20, 120  # epochs
LIMITS: dict[str, Any] = {"patience": 10**6, "recluster_every": 0, "memory_limit": 2**36}


def gcn_milliseconds(task: Task) -> float:
    """One training step of a two-layer PyG GCN, hidden 64, dense features."""
    step = gcn_step(task)
    return _milliseconds(lambda: [step() for _ in range(REPLAYS)]) / REPLAYS


def _milliseconds(task: Callable[[], object]) -> float:
    spent = []
    for _ in range(7):
        torch.cuda.synchronize()
        start = perf_counter()
        task()
        torch.cuda.synchronize()
        spent.append(perf_counter() - start)
    return 1000 * median(spent[2:])


def unified(task: Task, count: int, alpha: int = 2) -> tuple[float, UnifiedBatch]:
    """Milliseconds per epoch of `count` runs of Uni-GNN, and their batch."""
    return _batch(lambda epochs: UniGNN(alpha=alpha, max_epochs=epochs, **LIMITS), task, count)


def plain(task: Task, count: int) -> float:
    """Milliseconds per epoch of `count` runs of GCN."""
    return _batch(lambda epochs: GCN(max_epochs=epochs, patience=10**6), task, count)[0]


def _batch(make: Callable[[int], Any], task: Task, count: int) -> tuple[float, Any]:
    """Long fits less short ones, so that neither setting up nor recording counts."""
    spent = []
    for epochs in (SHORT, SHORT, LONG):  # the first compiles kernels
        models = [make(epochs) for _ in range(count)]
        for model in models:
            reset(model, task)
        fits = [Fit(model, task, seed) for seed, model in enumerate(models)]
        kind = batching(models[0])
        assert kind is not None
        torch.cuda.synchronize()
        start, batch = perf_counter(), kind(fits)
        train_batch(batch)
        torch.cuda.synchronize()
        spent.append(perf_counter() - start)
    return 1000 * (spent[2] - spent[1]) / (LONG - SHORT), batch


def floor_milliseconds(batch: UnifiedBatch) -> float:
    """Lower bound of the time of an epoch."""
    runs, device = len(batch.fits), batch.labels.device
    work = floor.steps(batch.inputs, batch.num_classes, 64, runs, few=False)
    return floor.milliseconds(work, device)


def small() -> None:
    rows: list[list[object]] = []
    many: list[list[object]] = []
    for name in ("cora", "citeseer", "pubmed"):
        task = Step(minority=1 if name == "pubmed" else 3)(load(name), seed=5).to("cuda")
        step = gcn_milliseconds(task)
        for alpha in (1, 2):
            one, batch = unified(task, 1, alpha)
            least = floor_milliseconds(batch)
            rows.append([name, alpha, step, one, one / step, least, one / least])
            all_, batch = unified(task, TOGETHER, alpha)
            least = floor_milliseconds(batch)
            many.append(
                [name, f"Uni-GNN {alpha}", one, all_, TOGETHER * one / all_, least, all_ / least]
            )
        one, all_ = (plain(task, count) for count in (1, TOGETHER))
        many.append([name, "GCN", one, all_, TOGETHER * one / all_, "", ""])
    table(
        "one run, milliseconds per epoch (target: at most 1.5 times a PyG GCN step)",
        ["graph", "alpha", "PyG GCN step", "Uni-GNN", "ratio", "floor", "times the floor"],
        rows,
    )
    table(
        f"{TOGETHER} runs in one batch, milliseconds per epoch of all",
        ["graph", "method", "one run", "all", "speed-up", "floor", "times the floor"],
        many,
    )


def large() -> None:
    rows: list[list[object]] = []
    graphs = [
        ("physics", lambda: load("physics"), 2),
        ("toy 169k", lambda: toy(169_000, 2_300_000, 64), 1),
        ("toy 169k", lambda: toy(169_000, 2_300_000, 64), 2),
        ("toy 1M", lambda: toy(1_000_000, 10_000_000, 64), 1),
    ]
    for name, make, alpha in graphs:
        task = Natural()(make(), seed=5).to("cuda")
        step = gcn_milliseconds(task)
        torch.cuda.reset_peak_memory_stats()
        one, batch = unified(task, 1, alpha)
        least = floor_milliseconds(batch)
        pairs = batch.inputs.structural.matrix.values().numel()
        peak = torch.cuda.max_memory_allocated() / 2**30
        rows.append([name, alpha, f"{pairs:,}", step, one, one / step, least, one / least, peak])
        del batch, task
        torch.cuda.empty_cache()
    table(
        "one run on larger graphs, milliseconds per epoch (target at 1M: within 2 times the floor)",
        [
            "graph",
            "alpha",
            "pairs",
            "PyG GCN step",
            "Uni-GNN",
            "ratio",
            "floor",
            "times the floor",
            "GiB",
        ],
        rows,
    )


def main() -> None:
    device = torch.device("cuda")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    for name, size in (("cache", 2**20), ("memory", 2**28)):
        print(f"{name} bandwidth {floor.bandwidth(device, size) / 1e12:.1f} TB/s")
    print(f"single-precision products {floor.arithmetic(device) / 1e12:.1f} TFLOP/s")
    small()
    large()


if __name__ == "__main__":
    main()
