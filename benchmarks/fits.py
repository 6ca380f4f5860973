"""Seconds and peak memory of complete training on two cores: `python -m benchmarks.fits`.

Every method with the parameters that `evengraph run` would use, each fit in its own process.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import Any

from benchmarks.processes import gibibytes, in_own_process
from benchmarks.timing import table

METHODS = ("gcn", "iceberg", "unignn", "unison", "auto")
MINORITY = {"cora": 3, "citeseer": 3, "pubmed": 1}
SEED = 60


def measure(graph: str, method: str) -> dict[str, Any]:
    """Fit in a process of its own."""
    return in_own_process("benchmarks.fits", graph, method)


def _child(graph: str, method: str) -> None:
    import torch

    from evengraph.datasets import load
    from evengraph.methods import METHODS
    from evengraph.pipeline.parameters import preset_for
    from evengraph.splits import Step

    torch.set_num_threads(2)
    protocol = Step(minority=MINORITY[graph])
    task = protocol(load(graph), seed=SEED)
    params = preset_for(graph, "step", vars(protocol), method) or {}
    held, start = gibibytes("VmRSS"), perf_counter()
    METHODS[method](**params).fit(task, seed=SEED, progress=False)
    print(json.dumps({"seconds": perf_counter() - start, "memory": gibibytes("VmHWM") - held}))


def main() -> None:
    """Print one table per graph."""
    for graph in MINORITY:
        results = {name: measure(graph, name) for name in METHODS}
        rows = [[name, found["seconds"], found["memory"]] for name, found in results.items()]
        title = f"complete training on {graph}; peak memory added by it"
        table(title, ["method", "seconds", "GiB"], rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _child(*sys.argv[1:])
    else:
        main()
