"""Draw the readings of docs/reproduction.md from unignn-readings.csv.

A reading is an interpretation of what the paper leaves open. Each has the paper's grid of forty
settings, of which validation Macro-F1 over seeds 5 to 7 selects one; seeds 8 to 24 report.
`python results/draw_readings.py` prints the tables.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from evengraph.experiment.published import paper_cell
from evengraph.metrics.significance import bootstrap_interval, holm, t_test

HERE = Path(__file__).parent
CHOICE, OUTSIDE = range(5, 8), range(8, 25)
METRIC = "balanced_accuracy"
METRICS = (METRIC, "macro_f1", "g_mean")
ALPHA = 0.05
TAILS = ("cora-longtail-0.01", "citeseer-longtail-0.01")
SETTINGS = {
    TAILS[0]: "Cora, long tail",
    TAILS[1]: "CiteSeer, long tail",
    "cora-step-3-0.1": "Cora 3, 10%",
    "citeseer-step-3-0.1": "CiteSeer 3, 10%",
}
GRID = ("alpha", "clusters_per_class", "threshold", "recluster_every")
STARTS, ROWS, LOSS = "ten starts", "rows of length one", "mean loss"


class Reading(NamedTuple):
    """What a reading changes; the weight decay of the paper's comparison is 0.0005."""

    readings: str = ""
    starts: str = "1"
    weight_decay: str = "0.0005"


READINGS = {
    "as published": Reading(),
    STARTS: Reading(starts="10"),
    ROWS: Reading("unit-rows"),
    f"{STARTS}, {ROWS}": Reading("unit-rows", "10"),
    LOSS: Reading("mean-loss"),
    f"{LOSS}, {STARTS}": Reading("mean-loss", "10"),
    f"{LOSS}, {ROWS}": Reading("mean-loss, unit-rows"),
    f"{LOSS}, {STARTS}, {ROWS}": Reading("mean-loss, unit-rows", "10"),
    "stop on validation loss": Reading("stop-on-loss"),
    "stop on balanced accuracy": Reading("stop-on-accuracy"),
    "weight decay 0.002": Reading(weight_decay="0.002"),
    "weight decay 0.005": Reading(weight_decay="0.005"),
}
COMBINED = tuple(READINGS)[:8]  # all combinations of three, among which validation may choose, too
BY_VALIDATION = "the best of the first eight on validation"

Scores = dict[int, dict[str, float]]  # by seed
Runs = dict[tuple[str, ...], Scores]  # by setting of the grid


@cache
def runs(encoders: str = "both") -> dict[tuple[str, Reading], Runs]:
    """Scores by setting of data and reading, by setting of the grid, by seed."""
    found: dict[tuple[str, Reading], Runs] = {}
    with (HERE / "unignn-readings.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["encoders"] == encoders:
                reading = Reading(row["readings"], row["cluster_starts"], row["weight_decay"])
                grid = tuple(row[name] for name in GRID)
                scores = {name: float(row[name]) for name in ("validation", *METRICS)}
                cell = found.setdefault((row["setting"], reading), {})
                cell.setdefault(grid, {})[int(row["seed"])] = scores
    return found


def selected(setting: str, name: str) -> tuple[float, Scores]:
    """Validation score of the selected setting of the grid over seeds 5 to 7, and its runs."""
    if name == BY_VALIDATION:
        return max((selected(setting, one) for one in COMBINED), key=lambda found: found[0])
    grids = runs()[setting, READINGS[name]].values()
    scored = [(fmean(grid[s]["validation"] for s in CHOICE), grid) for grid in grids]
    return max(scored, key=lambda found: found[0])


def outside(setting: str, name: str) -> list[float]:
    """Balanced accuracy on the seeds that took no part in the choice."""
    scores = selected(setting, name)[1]
    return [scores[seed][METRIC] for seed in OUTSIDE]


def readings() -> str:
    """Every reading: validation, and balanced accuracy outside the choice, with intervals."""
    names = [*READINGS, BY_VALIDATION]
    p_values = dict(zip(_pairs(names), holm([_p(*pair) for pair in _pairs(names)]), strict=True))
    rows = []
    for name in names:
        validation = fmean(selected(setting, name)[0] for setting in SETTINGS)
        estimates = []
        for setting in SETTINGS:
            star = "*" if p_values.get((setting, name), 1.0) < ALPHA else ""
            estimates.append(_estimate(outside(setting, name)) + star)
        mean = fmean(fmean(outside(setting, name)) for setting in SETTINGS)
        rows.append([name, f"{validation:.1f}", *estimates, f"{mean:.1f}", cells(name)])
    papers = [published(setting) for setting in SETTINGS]
    rows.append(["**the paper**", "–", *map(str, papers), f"{fmean(papers):.1f}", ""])
    header = ["reading", "validation", *SETTINGS.values(), "mean", "cells that reach the paper"]
    return _table(header, rows)


def published(setting: str, metric: str = METRIC, *, variant: str = "") -> float:
    """The paper's mean of Uni-GNN, or of a variant."""
    dataset, imbalance, *numbers = setting.split("-")
    fields = {"ratio": float(numbers[-1])} | ({"minority": 3} if numbers[:-1] else {})
    table: Any = "ablation" if variant else "paper"
    paper = paper_cell(dataset, imbalance, fields, variant or "unignn", table=table)
    assert paper is not None
    return paper[metric]["mean"] or 0.0


def cells(name: str) -> str:
    """Such as 4 of 12: means outside the choice, rounded as published, that reach the paper's."""
    found = []
    for setting in SETTINGS:
        scores = selected(setting, name)[1]
        for metric in METRICS:
            mean = round(fmean(scores[seed][metric] for seed in OUTSIDE), 1)
            found.append(mean >= published(setting, metric))
    return f"{sum(found)} of {len(found)}"


def semantic() -> str:
    """The semantic encoder alone, by how its clusters are found."""
    rows = []
    for name in COMBINED[:4]:
        cells = []
        for setting in SETTINGS:
            (grid,) = runs("semantic")[setting, READINGS[name]].values()
            cells.append(_estimate([grid[seed][METRIC] for seed in OUTSIDE]))
        rows.append([name, *cells])
    papers = [f"{published(setting, variant='Semantic Enc.')}" for setting in SETTINGS]
    return _table(["clusters", *SETTINGS.values()], [*rows, ["**the paper**", *papers]])


def tried() -> str:
    """How many runs there are."""
    total = sum(
        len(grid)
        for part in ("both", "semantic")
        for cell in runs(part).values()
        for grid in cell.values()
    )
    return f"{total:,} runs"


def chosen() -> str:
    """Which alpha validation selects, as published."""
    found = []
    for setting, title in SETTINGS.items():
        grids = runs()[setting, READINGS["as published"]]
        best = selected(setting, "as published")[1]
        (grid,) = (key for key, scores in grids.items() if scores is best)
        found.append(f"{grid[0]} on {title}")
    return ", ".join(found)


def _pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(setting, name) for setting in SETTINGS for name in names if name != "as published"]


def _p(setting: str, name: str) -> float:
    """Of the difference from the reading as published, on the same seeds."""
    before = outside(setting, "as published")
    gaps = [new - old for new, old in zip(outside(setting, name), before, strict=True)]
    return t_test(gaps).p if any(gaps) else 1.0


def _estimate(values: list[float]) -> str:
    low, high = bootstrap_interval(values) or (0.0, 0.0)
    return f"{fmean(values):.1f} ({low:.1f} to {high:.1f})"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(header)
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(tried(), chosen(), readings(), semantic(), sep="\n\n")
