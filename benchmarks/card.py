"""On a graphics card: one run and many runs of Uni-GNN against a plain PyG GCN step.

`python -m benchmarks.card` prints milliseconds an epoch, evaluation and pseudo-labels included.
Start-up is taken out: two lengths are timed and subtracted.
"""

from __future__ import annotations

import platform
import sys
import warnings
from time import perf_counter

import torch

warnings.simplefilter("ignore")  # PyG's and torch's own, about each other

from benchmarks.epoch import gcn_step  # noqa: E402
from benchmarks.timing import table  # noqa: E402
from evengraph import Task, UniGNN, fit_many, load  # noqa: E402
from evengraph.imbalance import Step  # noqa: E402

SHORT, LONG = 100, 600  # epochs
TOGETHER = 64


def gcn_milliseconds(task: Task, steps: int = 300) -> float:
    """One training step of a plain two-layer GCN, hidden 64, dense features."""
    step = gcn_step(task)
    for _ in range(20):
        step()
    _wait()
    start = perf_counter()
    for _ in range(steps):
        step()
    _wait()
    return 1000 * (perf_counter() - start) / steps


def epoch_milliseconds(task: Task, runs: int, short: int = SHORT, long: int = LONG) -> float:
    """One epoch of so many runs side by side."""
    spent = []
    for length in (short, short, long):  # the first time compiles
        models = [UniGNN(max_epochs=length, recluster_every=0) for _ in range(runs)]
        _wait()
        start = perf_counter()
        fit_many(models, [task] * runs, seeds=range(runs), slots=runs)
        _wait()
        spent.append(perf_counter() - start)
    return 1000 * (spent[2] - spent[1]) / (long - short)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    print(f"{name}, torch {torch.__version__}")
    rows: list[list[object]] = []
    for graph in sys.argv[1:] or ["cora", "citeseer", "pubmed"]:
        task = Step(minority=1 if graph == "pubmed" else 3)(load(graph), seed=5).to(device)
        plain = gcn_milliseconds(task)
        one, many = epoch_milliseconds(task, 1), epoch_milliseconds(task, TOGETHER)
        rows.append([graph, plain, one, one / plain, many, TOGETHER * one / many])
    table(
        "milliseconds: a plain PyG GCN step; an epoch of one run (target: 1.5 times the step) and "
        f"of {TOGETHER} side by side",
        ["graph", "GCN step", "one run", "ratio", f"{TOGETHER} runs", "times the rate"],
        rows,
    )


if __name__ == "__main__":
    main()
