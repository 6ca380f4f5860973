"""Memory and time per node of every method, for `evengraph inspect` of a packed graph.

`python -m benchmarks.costs` fits each method for a few epochs to two generated graphs, each in a
process of its own, and writes what a node more costs into src/evengraph/methods/costs.csv. A node
has 10 neighbours and 64 features. Time is that of one core, whatever else runs on it.
"""

from __future__ import annotations

import csv
import json
import os
import select
import signal
import sys
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import torch

import evengraph as eg
from evengraph.experiment.memory import PeakMemory

SIZES = (20_000, 60_000)
DEGREE, FEATURES, CLASSES, EPOCHS = 10, 64, 5, 4
SECONDS = 100.0
FILE = Path(__file__).parents[1] / "src" / "evengraph" / "methods" / "costs.csv"


def fit(method: str, graph: Any) -> dict[str, float]:
    """Seconds of a fit besides epochs of the main stage, those per epoch, and memory added."""
    task = eg.splits.Natural(train=0.1, val=0.1)(graph, seed=0)
    parameters = eg.METHODS[method].__dataclass_fields__
    epochs = {"max_epochs": EPOCHS} if "max_epochs" in parameters else {}
    ticks: list[float] = []
    with PeakMemory(torch.device("cpu")) as memory:
        start = process_time()
        model = eg.METHODS[method](**epochs)
        model.fit(task, seed=0, progress=False, on_epoch=lambda _: ticks.append(process_time()))
        end = process_time()
    between = [after - before for before, after in pairwise(ticks)]
    epoch = sorted(between)[len(between) // 2] if between else 0.0
    assert memory.gib is not None
    return {"once": end - start - epoch * len(ticks), "epoch": epoch, "gib": memory.gib}


def measure(method: str, graph: Any) -> dict[str, float] | None:
    """Fit in a child of this process, which has imported everything; None if it takes too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.write(writer, json.dumps(fit(method, graph)).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], SECONDS)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    return json.loads(text) if text else None


def main(methods: list[str]) -> None:
    torch.set_num_threads(1)
    graphs = [eg.toy(size, size * DEGREE, FEATURES, CLASSES) for size in SIZES]
    nodes = SIZES[1] - SIZES[0]
    rows = []
    for method in methods:
        results = [measure(method, graph) for graph in graphs]
        if None in results:
            print(f"{method}: not measured")
            continue
        small, large = results
        slopes = {key: max(large[key] - small[key], 0) / nodes for key in large}  # type: ignore
        row = {
            "method": method,
            "bytes_per_node": round(slopes["gib"] * 2**30),
            "microseconds_per_node": round(1e6 * slopes["once"], 2),
            "microseconds_per_node_and_epoch": round(1e6 * slopes["epoch"], 3),
        }
        rows.append(row)
        print(row, flush=True)
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:] or [name for name in eg.METHODS if name != "auto"])
