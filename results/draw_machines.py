"""Draw the comparison of CPU and GPU of docs/reproduction.md: `python results/draw_machines.py`.

The same seeds, splits and settings on two kinds of machine. What differs is rounding, and what
training makes of it. Balanced accuracy.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import fmean, stdev

import draw_reproduction
from draw_reproduction import METRIC, OURS, table, title

from evengraph.core.store import Store
from evengraph.report.store.comparisons import paired_gaps
from evengraph.report.store.experiment_results import Cell, ExperimentResults, load_experiments

STORE = Path(__file__).with_name("machines.sqlite")
METHODS = ("GCN", OURS)
SEEDS = range(8, 11)


@cache
def results() -> ExperimentResults:
    """The runs on the CPU."""
    (found,) = load_experiments(Store(STORE))
    return found


def pair(setting: str, label: str) -> tuple[Cell, Cell]:
    """The runs of a method on the CPU and on the GPU."""
    found = results().find(setting, label)
    assert found is not None
    return found.with_seeds(SEEDS), draw_reproduction.cell(setting, label, SEEDS)


def differences(label: str) -> list[float]:
    """CPU minus GPU for each setting and seed."""
    pairs = (pair(name, label) for name in results().settings)
    return [gap for cells in pairs for gap in paired_gaps(*cells, METRIC).values]


def machines() -> str:
    """Means over three seeds on both."""
    rows = []
    for name in results().settings:
        cells = (cell for label in METHODS for cell in pair(name, label))
        rows.append([title(name), *(f"{cell.mean(METRIC):.1f}" for cell in cells)])
    header = [f"{label}, {machine}" for label in METHODS for machine in ("CPU", "GPU")]
    return table(["setting", *header], rows)


def mean_gaps() -> list[float]:
    """How far the means over three seeds are apart, by setting and method."""
    cells = (pair(name, label) for name in results().settings for label in METHODS)
    return [abs(cpu.mean(METRIC) - gpu.mean(METRIC)) for cpu, gpu in cells]


def verdict() -> str:
    """How far two machines are apart."""
    gaps = {label: differences(label) for label in METHODS}
    both = [
        f"{stdev(found):.1f} points for {label} (on the CPU {fmean(found):+.1f} on average)"
        for label, found in gaps.items()
    ]
    means = mean_gaps()
    runs = sum(map(len, gaps.values()))
    return (
        f"Over {runs} runs, the standard deviation of the difference is {' and '.join(both)}. "
        f"Means over three seeds differ by {fmean(means):.1f} on average and by {max(means):.1f} "
        "at most."
    )


if __name__ == "__main__":
    print(machines(), verdict(), sep="\n\n")
