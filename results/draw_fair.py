"""Draw the control of docs/reproduction.md from fair.sqlite: `python results/draw_fair.py`.

Does Uni-GNN win because of its ideas, or because its encoder is deeper than the GCN beside it?
Balanced accuracy over seeds 8 to 24, which took no part in selecting hyperparameters.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import fmean

from draw_reproduction import METRIC, OURS, OUTSIDE, table, title

from evengraph.core.store import Store
from evengraph.metrics.significance import bootstrap_interval, holm, t_test
from evengraph.report.store.comparisons import ALPHA, paired_gaps
from evengraph.report.store.experiment_results import Cell, ExperimentResults, load_experiments

STORE = Path(__file__).with_name("fair.sqlite")
PLAIN, SYMMETRIC, DEEP = "GCN", "GCN, symmetric", "GCN, three convolutions"
COLUMNS = (PLAIN, SYMMETRIC, DEEP, OURS)


@cache
def results() -> ExperimentResults:
    """The control experiment."""
    (found,) = [one for one in load_experiments(Store(STORE)) if one.name == "control"]
    return found


def cell(setting: str, label: str) -> Cell:
    """The runs of a method outside the choice."""
    found = results().find(setting, label)
    assert found is not None
    return found.with_seeds(OUTSIDE)


def gains(label: str) -> list[list[float]]:
    """Uni-GNN minus another method for each seed, in every setting."""
    pairs = ((cell(name, OURS), cell(name, label)) for name in results().settings)
    return [list(paired_gaps(*pair, METRIC).values) for pair in pairs]


def control() -> str:
    """The three kinds of GCN beside Uni-GNN, and its gain over the one that is as deep."""
    rows = []
    for name, gap in zip(results().settings, gains(DEEP), strict=True):
        low, high = bootstrap_interval(gap) or (0.0, 0.0)
        scores = [f"{cell(name, label).mean(METRIC):.1f}" for label in COLUMNS]
        rows.append([title(name), *scores, f"{fmean(gap):+.1f} ({low:.1f} to {high:.1f})"])
    return table(["setting", *COLUMNS, "over three convolutions (95%)"], rows)


def verdict() -> str:
    """How much of the advantage is depth."""
    plain, deep = (fmean(fmean(gap) for gap in gains(label)) for label in (PLAIN, DEEP))
    sure = sum(p < ALPHA for p in holm([t_test(gap).p for gap in gains(DEEP)]))
    smallest, largest = (pick(fmean(gap) for gap in gains(DEEP)) for pick in (min, max))
    return (
        f"Depth explains {plain - deep:.1f} of the {plain:.1f} points by which Uni-GNN is ahead of "
        f"GCN on average. Against three convolutions it is ahead by {smallest:.1f} to {largest:.1f}"
        f", significantly after Holm's correction in {sure} of {len(results().settings)} settings."
    )


if __name__ == "__main__":
    print(control(), verdict(), sep="\n\n")
