"""Memory and time per node of every method, for `evengraph inspect` of a packed graph.

`python -m benchmarks.costs [METHOD ...]` fits each method for a few epochs to two generated graphs,
each in a process of its own, and writes what a node costs into src/evengraph/methods/costs.csv,
with the machine and the commit; rows of other methods stay. A node has 10 neighbours and 64
features. Time is that of one core, whatever else runs on it, per node more. Memory is that of the
larger graph, whose arrays are large enough to be returned to the system when they are freed.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import resource
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import torch

import evengraph as eg
from benchmarks.timing import PeakMemory

SIZES = (30_000, 150_000)
DEGREE, FEATURES, CLASSES, EPOCHS = 10, 64, 5, 3
CPU_SECONDS, MEMORY = 240, 5 * 2**30  # at most
FILE = Path(__file__).parents[1] / "src" / "evengraph" / "methods" / "costs.csv"


def fit(method: str, graph: Any) -> dict[str, float]:
    """Seconds of a fit besides epochs of the main stage, those per epoch, and memory added."""
    task = eg.splits.Natural(train=0.1, val=0.1)(graph, seed=0)
    parameters = eg.METHODS[method].__dataclass_fields__
    epochs = {"max_epochs": EPOCHS} if "max_epochs" in parameters else {}
    ticks: list[float] = []
    with PeakMemory() as memory:
        start = process_time()
        model = eg.METHODS[method](**epochs)
        model.fit(task, seed=0, progress=False, on_epoch=lambda _: ticks.append(process_time()))
        end = process_time()
    between = [after - before for before, after in pairwise(ticks)]
    epoch = sorted(between)[len(between) // 2] if between else 0.0
    return {"once": end - start - epoch * len(ticks), "epoch": epoch, "gib": memory.gib}


def measure(method: str, graph: Any) -> dict[str, float] | None:
    """Fit in a child of this process, which has imported everything; None if it takes too much."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            spent = int(process_time())
            resource.setrlimit(resource.RLIMIT_CPU, (spent + CPU_SECONDS, spent + CPU_SECONDS))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            os.write(writer, json.dumps(fit(method, graph)).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def row_of(method: str, graphs: list[Any]) -> dict[str, object] | None:
    """What a node costs; None if a fit takes too much."""
    results = []
    for graph in graphs:
        result = measure(method, graph)
        if result is None:
            return None
        results.append(result)
    small, large = results
    nodes = SIZES[1] - SIZES[0]
    slopes = {key: 1e6 * max(large[key] - small[key], 0) / nodes for key in ("once", "epoch")}
    return {
        "method": method,
        "bytes_per_node": round(large["gib"] * 2**30 / SIZES[1]),
        "microseconds_per_node": round(slopes["once"], 2),
        "microseconds_per_node_and_epoch": round(slopes["epoch"], 3),
        "machine": machine(),
        "commit": commit(),
    }


def machine() -> str:
    """The processor, in a word or two."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.machine()])[0].replace(",", " ")


def commit() -> str:
    """The current commit."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


def main(methods: list[str]) -> None:
    torch.set_num_threads(1)
    graphs = [eg.toy(size, size * DEGREE, FEATURES, CLASSES) for size in SIZES]
    with FILE.open(newline="") as file:
        rows: dict[str, dict[str, Any]] = {row["method"]: row for row in csv.DictReader(file)}
    for method in methods:
        row = row_of(method, graphs)
        if row is None:
            print(f"{method}: too much time or memory", flush=True)
            continue
        rows[method] = row
        print(*row.values(), flush=True)
        with FILE.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n", restval="")
            writer.writeheader()
            writer.writerows(rows[name] for name in eg.METHODS if name in rows)


if __name__ == "__main__":
    main(sys.argv[1:] or [name for name in eg.METHODS if name != "auto"])
