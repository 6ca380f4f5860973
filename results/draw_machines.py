"""Draw the comparison of CPU and GPU of docs/reproduction.md: `python results/draw_machines.py`.

The same seeds, splits and settings on two kinds of machine. What differs is rounding, and what
training makes of it. Balanced accuracy.
"""

from __future__ import annotations

from itertools import chain
from statistics import fmean, stdev

from paper_cells import METRIC, OURS, Gaps, cell, differences, paper_cell, settings, table, title

from evengraph.lab.results import Cell

METHODS = ("GCN", OURS)
SEEDS = range(8, 11)


def pair(setting: str, label: str) -> tuple[Cell, Cell]:
    """The runs of a method on the CPU and on the GPU."""
    return cell("machines", setting, label, SEEDS), paper_cell(setting, label, SEEDS)


def gains(label: str, machine: int) -> list[Gaps]:
    """Uni-GNN minus another method on the CPU (0) or the GPU (1)."""
    both = ((pair(s, OURS)[machine], pair(s, label)[machine]) for s in settings())
    return differences(both)


def mean_gaps() -> list[float]:
    """How far the means over three seeds are apart, by setting and method."""
    cells = (pair(name, label) for name in settings() for label in METHODS)
    return [abs(cpu.mean(METRIC) - gpu.mean(METRIC)) for cpu, gpu in cells]


def machines() -> str:
    """Means over three seeds on both."""
    rows = []
    for name in settings():
        cells = (cell for label in METHODS for cell in pair(name, label))
        rows.append([title(name), *(f"{cell.mean(METRIC):.1f}" for cell in cells)])
    header = [f"{label}, {machine}" for label in METHODS for machine in ("CPU", "GPU")]
    return table(["setting", *header], rows)


def verdict() -> str:
    """How far two machines are apart."""
    found = (differences(pair(s, label) for s in settings()) for label in METHODS)
    gaps = dict(zip(METHODS, (list(chain(*one)) for one in found), strict=True))
    both = [
        f"{stdev(values):.1f} points for {label} (the CPU is {fmean(values):+.1f} on average)"
        for label, values in gaps.items()
    ]
    means = mean_gaps()
    return (
        f"The standard deviation of the difference of one run is {' and '.join(both)}. Means over "
        f"three seeds differ by {fmean(means):.1f} on average and by {max(means):.1f} at most."
    )


if __name__ == "__main__":
    print(machines(), verdict(), sep="\n\n")
