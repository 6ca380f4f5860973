"""`python -m benchmarks.growth [NODES ...]`: time and memory against the size of the graph.

Each case runs in a process of its own, on one thread; seconds are those of the processor, so that a
busy machine counts less. Results are added to results/growth.csv, and `--draw` draws
docs/growth.svg from it and prints the slopes on log-log axes.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import torch
from tools.picture_sources import record

from benchmarks import endtoend
from benchmarks.epoch import gcn_step
from benchmarks.timing import PeakMemory, commit, machine, table
from evengraph.core.machine import keep_freed_memory
from evengraph.core.task import Task
from evengraph.datasets import toy
from evengraph.methods import UniGNN, Unison
from evengraph.splits import Natural

ROOT = Path(__file__).parents[1]
FILE, FIGURE = ROOT / "results" / "growth.csv", ROOT / "docs" / "growth.svg"
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
DEGREE, FEATURES, CLUSTERS = 10, 64, 50
MOST_PAIRS = 10**8  # of a materialised A_sem, 0.8 GB
EPOCHS = 3
FROM_DISK = "Unison on disk, from tables to predictions"


def unignn_epoch(task: Task) -> float:
    """Seconds of an epoch at alpha 1, without clustering."""
    ticks: list[float] = []
    model = UniGNN(alpha=1, recluster_every=0, max_epochs=EPOCHS)
    model.fit(task, seed=0, progress=False, on_epoch=lambda _: ticks.append(process_time()))
    return median(np.diff(ticks))


def gcn(task: Task) -> float:
    """Seconds of a training step of a plain PyG GCN."""
    step = gcn_step(task)
    step()
    return median(_seconds(step) for _ in range(EPOCHS))


def unison_fit(task: Task) -> float:
    """Seconds of a fit of 20 epochs on the structural and the ego view."""
    model = Unison(views="structural,ego", max_epochs=20)
    return _seconds(lambda: model.fit(task, seed=0, progress=False))


def semantic_product(task: Task) -> float | None:
    """Seconds of a product with a materialised A_sem of equal clusters; None if it is too large."""
    nodes, per_cluster = task.graph.num_nodes, task.graph.num_nodes // CLUSTERS
    if nodes * per_cluster > MOST_PAIRS:
        return None
    columns = torch.arange(nodes).view(CLUSTERS, 1, -1).expand(-1, per_cluster, -1).int()
    pointers = torch.arange(0, nodes * per_cluster + 1, per_cluster).int()
    values = torch.ones(nodes * per_cluster)
    matrix = torch.sparse_csr_tensor(pointers, columns.reshape(-1), values, (nodes, nodes))
    x = task.graph.x
    return median(_seconds(lambda: matrix @ x) for _ in range(EPOCHS))


def _seconds(task: Callable[[], object]) -> float:
    start = process_time()
    task()
    return process_time() - start


CASES: dict[str, Callable[[Task], float | None]] = {
    "Uni-GNN, an epoch": unignn_epoch,
    "PyG GCN, a step": gcn,
    "Unison, a fit of 20 epochs": unison_fit,
    "materialised A_sem, a product": semantic_product,
}


def measure(case: str, task: Task) -> tuple[float, float] | None:
    """Seconds and GiB in a child of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            keep_freed_memory()  # as the commands do
            with PeakMemory() as memory:
                seconds = CASES[case](task)
            os.write(writer, json.dumps(seconds and [seconds, memory.gib]).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    result = json.loads(text) if text else None
    return None if result is None else (result[0], result[1])


def slope(rows: Iterable[dict[str, str]], name: str) -> float:
    """The exponent of growth, by least squares on log-log axes."""
    points = [(float(row["nodes"]), float(row[name])) for row in rows]
    return float(np.polyfit(*np.log(np.array(points)).T, 1)[0]) if len(points) > 1 else np.nan


def from_disk(sizes: list[int]) -> None:
    """Add what `benchmarks.endtoend` takes: packing, 50 epochs of Unison and all predictions."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            costs = endtoend.measure(Path(folder), size, "5GB", ["max_epochs=50"])
        seconds, peak = sum(cost.cpu for cost in costs), max(cost.peak for cost in costs)
        with FILE.open("a", newline="") as file:
            row = [FROM_DISK, size, f"{seconds:.4g}", f"{peak:.4g}", machine(), commit()]
            csv.writer(file, lineterminator="\n").writerow(row)


def run(sizes: list[int]) -> None:
    torch.set_num_threads(1)
    new = not FILE.exists()
    with FILE.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(["case", "nodes", "seconds", "gib", "machine", "commit"])
        for size in sizes:
            graph = toy(size, size * DEGREE, FEATURES)
            task = Natural(train=0.1, val=0.1)(graph, seed=0)
            for case in CASES:
                found = measure(case, task)
                if found is not None:
                    row = [case, size, f"{found[0]:.4g}", f"{found[1]:.4g}", machine(), commit()]
                    writer.writerow(row)
                    file.flush()
                    print(*row, flush=True)


def draw() -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "growth"
    from matplotlib import pyplot as plt

    with FILE.open() as file:
        rows = list(csv.DictReader(file))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
    slopes: list[list[object]] = []
    for case in dict.fromkeys(row["case"] for row in rows):
        mine = sorted((row for row in rows if row["case"] == case), key=lambda r: int(r["nodes"]))
        slopes.append([case, slope(mine, "seconds"), slope(mine, "gib"), len(mine)])
        for axis, name in zip(axes, ("seconds", "gib"), strict=True):
            x, y = ([float(row[key]) for row in mine] for key in ("nodes", name))
            axis.loglog(x, y, marker="o", markersize=4, label=case)
    for axis, label in zip(axes, ("seconds of one core", "GiB"), strict=True):
        axis.set(xlabel="nodes, ten edge entries each", ylabel=label)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(FIGURE, metadata={"Date": None})
    table(
        "slopes on log-log axes (target: at most 1.1)", ["case", "time", "memory", "sizes"], slopes
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", type=int, nargs="*")
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--disk", action="store_true", help="from tables to predictions on disk")
    options: Any = parser.parse_args()
    if options.draw:
        draw()
        record("growth.svg")
    elif options.disk:
        from_disk(options.nodes)
    else:
        run(options.nodes or list(SIZES))


if __name__ == "__main__":
    main()
