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
from evengraph.fast.replicas import Fit, Replicas  # noqa: E402
from evengraph.fast.supervised import SupervisedReplicas  # noqa: E402
from evengraph.fast.unignn import UnifiedReplicas  # noqa: E402
from evengraph.methods import GCN, UniGNN  # noqa: E402
from evengraph.methods.bases.method import reset  # noqa: E402
from evengraph.splits import Natural, Step  # noqa: E402

TOGETHER = 64
REPLAYS = 40  # per measurement: the record holds 50 epochs


def gcn_milliseconds(task: Task) -> float:
    """One training step of a two-layer PyG GCN, hidden 64, dense features."""
    step = gcn_step(task)
    return _milliseconds(lambda: [step() for _ in range(REPLAYS)]) / REPLAYS


def epoch_milliseconds(engine: Replicas) -> float:
    """One epoch of all runs of an engine whose epoch has been recorded."""

    def replay() -> None:
        engine.row.zero_()
        for _ in range(REPLAYS):
            assert engine.graph is not None
            engine.graph.replay()

    return _milliseconds(replay) / REPLAYS


def _milliseconds(task: Callable[[], object]) -> float:
    spent = []
    for _ in range(7):
        torch.cuda.synchronize()
        start = perf_counter()
        task()
        torch.cuda.synchronize()
        spent.append(perf_counter() - start)
    return 1000 * median(spent[2:])


def unified(task: Task, count: int, alpha: int = 2) -> UnifiedReplicas:
    """An engine with `count` runs of Uni-GNN, after some epochs."""
    models = [UniGNN(alpha=alpha, max_epochs=20, memory_limit=2**36) for _ in range(count)]
    fits = [Fit(_reset(model, task), task, seed) for seed, model in enumerate(models)]
    engine = UnifiedReplicas(fits, count)
    for _ in engine.steps():
        pass
    return engine


def plain(task: Task, count: int) -> SupervisedReplicas:
    """An engine with `count` runs of GCN, after some epochs."""
    models = [GCN(max_epochs=20) for _ in range(count)]
    fits = [Fit(_reset(model, task), task, seed) for seed, model in enumerate(models)]
    engine = SupervisedReplicas(fits, count)
    for _ in engine.steps():
        pass
    return engine


def _reset(model: Any, task: Task) -> Any:
    reset(model, task)
    return model


def floor_milliseconds(engine: UnifiedReplicas) -> float:
    """Lower bound of the time of an epoch."""
    work = floor.steps(engine.inputs, engine.num_classes, 64, engine.slots, few=engine.few)
    return floor.milliseconds(work, engine.alive.device)


def small() -> None:
    rows: list[list[object]] = []
    many: list[list[object]] = []
    for name in ("cora", "citeseer", "pubmed"):
        task = Step(minority=1 if name == "pubmed" else 3)(load(name), seed=5).to("cuda")
        step = gcn_milliseconds(task)
        for alpha in (1, 2):
            engine = unified(task, 1, alpha)
            one, least = epoch_milliseconds(engine), floor_milliseconds(engine)
            rows.append([name, alpha, step, one, one / step, least, one / least])
            engine = unified(task, TOGETHER, alpha)
            all_, least = epoch_milliseconds(engine), floor_milliseconds(engine)
            many.append(
                [name, f"Uni-GNN {alpha}", one, all_, TOGETHER * one / all_, least, all_ / least]
            )
        one, all_ = (epoch_milliseconds(plain(task, count)) for count in (1, TOGETHER))
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
        engine = unified(task, 1, alpha)
        one, least = epoch_milliseconds(engine), floor_milliseconds(engine)
        pairs = engine.inputs.structural.matrix.values().numel()
        peak = torch.cuda.max_memory_allocated() / 2**30
        rows.append([name, alpha, f"{pairs:,}", step, one, one / step, least, one / least, peak])
        del engine, task
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
