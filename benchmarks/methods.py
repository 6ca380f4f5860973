"""Time per epoch and peak memory of every method, relative to GCN.

Each method runs a few epochs of every stage in its own process. Memory is the peak that fitting
adds to what the process held before.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.processes import gibibytes, in_own_process
from benchmarks.timing import table

EPOCHS = {"cora": 30, "pubmed": 8, "toy 169k": 4}  # of the main stage
LARGEST = ("gcn", "graphsmote", "graphens", "unignn")  # methods for the largest graph
STAGES = {"pretrain_epochs": 3, "expert_epochs": 3, "student_epochs": 3}
WARM_UP = 2  # the first epochs allocate memory that later ones reuse


def measure(graph: str, method: str) -> dict[str, Any]:
    """Run one method in its own process."""
    return in_own_process("benchmarks.methods", graph, method)


def _child(graph: str, method: str) -> None:
    import torch

    from evengraph.datasets import load, toy
    from evengraph.methods import METHODS
    from evengraph.splits import Step

    torch.set_num_threads(2)
    data = toy(169_000, 2_300_000, 128, 10) if graph == "toy 169k" else load(graph)
    task = Step(minority=1 if graph == "pubmed" else 3)(data, seed=5)
    params: dict[str, Any] = {"max_epochs": EPOCHS[graph]}
    names = METHODS[method].__dataclass_fields__
    params |= {name: value for name, value in STAGES.items() if name in names}
    if "reconstruct" in names:
        params["reconstruct"] = True  # the more expensive option
    held = gibibytes("VmRSS")
    spent: list[float] = []
    model = METHODS[method](**params).fit(
        task, seed=5, progress=False, on_epoch=lambda history: spent.append(perf_counter())
    )
    peak = gibibytes("VmHWM")
    lengths = [len(history.loss) for history in model.history_]
    (main,) = (index for index, history in enumerate(model.history_) if history.main)
    start = sum(lengths[:main])
    ticks = spent[start + WARM_UP : start + lengths[main]]
    print(
        json.dumps(
            {
                "epoch": median(after - before for before, after in pairwise(ticks)),
                "memory": peak - held,
                "stages": len(model.history_),
            }
        )
    )


def main() -> None:
    from evengraph.methods import METHODS

    for graph in EPOCHS:
        names = LARGEST if graph == "toy 169k" else METHODS
        results = {name: measure(graph, name) for name in names}
        baseline = results["gcn"]
        rows = [
            [
                name,
                values["stages"],
                1000 * values["epoch"],
                values["epoch"] / baseline["epoch"],
                values["memory"],
            ]
            for name, values in results.items()
        ]
        limit = {"pubmed": ", target under 2", "toy 169k": ", target under 10"}.get(graph, "")
        table(
            f"methods on {graph}: milliseconds per epoch of the main stage, including validation;\n"
            f"peak memory added by fitting, GiB{limit}",
            ["method", "stages", "ms", "times GCN", "GiB"],
            rows,
        )


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2])
