"""Commands on a store of 100,000 runs: seconds and peak memory, each in its own process.

`python -m benchmarks.stores`. The runs are made up; their rows have the usual size.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.timing import table
from evengraph.lab.reproduce import experiment_content, job_spec, known_runs
from evengraph.lab.spec import Spec, read_spec
from evengraph.lab.store import Row, Store
from evengraph.methods import METHODS as ALL_METHODS

SETTINGS, SEEDS = 20, 250
METHODS = [name for name in ALL_METHODS if name not in ("auto", "boosting")][:20]
METRICS = ("balanced_accuracy", "macro_f1", "g_mean", "accuracy", "worst_recall", "auroc", "ece")
TARGETS = {"results": 5, "report": 20}


def write_experiment(path: Path) -> None:
    """20 settings, 20 methods and 250 seeds."""
    lines = [f'title = "Load"\ndraws = "comparison"\nseeds = "0-{SEEDS - 1}"\n']
    for index in range(SETTINGS):
        ratio = f"ratio = {0.05 + index / 100:g}"
        lines.append(f'[[setup]]\ndataset = "toy"\nimbalance = "step"\nminority = 3\n{ratio}\n')
    lines += [f'[[method]]\nname = "{name}"\n' for name in METHODS]
    path.write_text("\n".join(lines))


def fill(store: Store, spec: Spec) -> None:
    """Store a made-up result of every run, and the experiment."""
    draw = random.Random(0)
    for setup, entry in product(spec.setups, spec.entries):
        job = job_spec(setup, entry.name, entry.fields, seed=0)
        jobs = [job.with_seed(seed) for seed in spec.seeds]
        rows = [Row(job=job, outcome=_outcome(draw), environment=ENVIRONMENT) for job in jobs]
        store.add(*rows)
    store.save_experiment(spec.name, experiment_content(spec, known_runs(store.rows())))


ENVIRONMENT = {
    "commit": "0" * 40,
    "device": "CPU, two cores of some processor",
    "versions": {"evengraph": "0.1", "python": "3.11.7", "torch": "2.13.0", "pyg": "2.8.1"},
}


def _outcome(draw: random.Random) -> dict[str, Any]:
    """An outcome of about 900 characters."""
    rates = [draw.uniform(0, 100) for _ in range(7)]
    return {
        "metrics": {name: draw.gauss(60, 3) for name in METRICS},
        "per_class": {"recall": rates, "f1": rates, "support": [100] * 7},
        "confusion_matrix": [[draw.randrange(100) for _ in range(7)] for _ in range(7)],
        "validation": draw.gauss(60, 3),
        "best_epoch": 300,
        "epochs": 1300,
        "seconds": draw.uniform(1, 9),
        "criterion": "Macro-F1",
        "memory": 0.1,
    }


# A process of its own starts the command: a child begins with the peak memory of its parent.
LAUNCHER = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
"""


def measure(*arguments: str, folder: Path) -> list[float]:
    """Seconds, seconds of CPU and peak MiB of a command."""
    command = [sys.executable, "-c", LAUNCHER, sys.executable, "-m", "evengraph", *arguments]
    output = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return [float(number) for number in output.stdout.split()]


def main() -> None:
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_experiment(folder / "load.toml")
        start = perf_counter()
        fill(Store(folder / "load.sqlite"), read_spec(str(folder / "load.toml")))
        rows.append(["(writing the store)", perf_counter() - start, "", "", ""])
        for command, *rest in (
            ["methods"],  # what starting costs
            ["results", "load.sqlite"],
            ["results", "load.sqlite", "--method", "gcn"],
            ["report", "load.sqlite"],
            ["reproduce", "load.toml", "--store", "load.sqlite"],
        ):
            seconds, cpu, memory = measure(command, *rest, folder=folder)
            target = TARGETS.get(command, "")
            rows.append([" ".join([command, *rest]), seconds, target, cpu, memory])
    title = f"A store of {SETTINGS * SEEDS * len(METHODS):,} runs"
    table(title, ["command", "seconds", "target", "CPU seconds", "MiB"], rows)


if __name__ == "__main__":
    main()
