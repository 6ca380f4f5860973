"""Draw the readings of docs/reproduction.md from unignn-readings.csv.

A reading is an interpretation of what the paper leaves open. Each has the paper's grid of forty
settings, of which validation Macro-F1 over seeds 5 to 7 selects one; seeds 8 to 24 report.
`python results/draw_readings.py` prints the tables.
"""

from __future__ import annotations

import csv
from functools import cache
from statistics import fmean
from typing import Any, NamedTuple

from paper_cells import (
    CHOICE,
    HERE,
    METRIC,
    METRICS,
    OURS,
    OUTSIDE,
    Gaps,
    corrected,
    estimate,
    of,
    paper_cell,
    published,
    table,
)

from evengraph.lab.results import ALPHA
from evengraph.pipeline.parameters import paper_cell as table_of_the_paper

TAILS = ("cora-longtail-0.01", "citeseer-longtail-0.01")
SETTINGS = {
    TAILS[0]: "Cora, long tail",
    TAILS[1]: "CiteSeer, long tail",
    "cora-step-3-0.1": "Cora 3, 10%",
    "citeseer-step-3-0.1": "CiteSeer 3, 10%",
}
GRID = ("alpha", "clusters_per_class", "threshold", "recluster_every")
PUBLISHED, STARTS, ROWS, LOSS = "as published", "ten starts", "rows of length one", "mean loss"
DECAYED = ("weight decay 0.002", "weight decay 0.005")


class Reading(NamedTuple):
    """What a reading changes; the weight decay of the paper's comparison is 0.0005."""

    readings: str = ""
    starts: str = "1"
    weight_decay: str = "0.0005"


READINGS = {
    PUBLISHED: Reading(),
    STARTS: Reading(starts="10"),
    ROWS: Reading("unit-rows"),
    f"{STARTS}, {ROWS}": Reading("unit-rows", "10"),
    LOSS: Reading("mean-loss"),
    f"{LOSS}, {STARTS}": Reading("mean-loss", "10"),
    f"{LOSS}, {ROWS}": Reading("mean-loss, unit-rows"),
    f"{LOSS}, {STARTS}, {ROWS}": Reading("mean-loss, unit-rows", "10"),
    "stop on validation loss": Reading("stop-on-loss"),
    "stop on balanced accuracy": Reading("stop-on-accuracy"),
    DECAYED[0]: Reading(weight_decay="0.002"),
    DECAYED[1]: Reading(weight_decay="0.005"),
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


def means(setting: str, name: str) -> dict[str, float]:
    """The mean of every metric on these seeds."""
    scores = selected(setting, name)[1]
    return {metric: fmean(scores[seed][metric] for seed in OUTSIDE) for metric in METRICS}


def overall(name: str) -> float:
    """Mean balanced accuracy over the four settings."""
    return fmean(means(setting, name)[METRIC] for setting in SETTINGS)


def validation(name: str) -> float:
    """Mean validation Macro-F1 of what was selected."""
    return fmean(selected(setting, name)[0] for setting in SETTINGS)


def readings() -> str:
    """Every reading: validation, and balanced accuracy outside the choice, with intervals."""
    names = [*READINGS, BY_VALIDATION]
    pairs = [(setting, name) for setting in SETTINGS for name in names if name != PUBLISHED]
    p_values = dict(zip(pairs, corrected(changes(*pair) for pair in pairs), strict=True))
    rows = []
    for name in names:
        estimates = []
        for setting in SETTINGS:
            star = "*" if p_values.get((setting, name), 1.0) < ALPHA else ""
            estimates.append(estimate(outside(setting, name)) + star)
        rows.append([name, f"{validation(name):.1f}", *estimates])
        rows[-1] += [f"{overall(name):.1f}", of(reached(name))]
    papers = [published(setting, OURS) for setting in SETTINGS]
    rows.append(["**the paper**", "–", *map(str, papers), f"{fmean(papers):.1f}", ""])
    header = ["reading", "validation", *SETTINGS.values(), "mean", "cells that reach the paper"]
    return table(header, rows)


def reached(name: str) -> list[bool]:
    """Whether means outside the choice, rounded as published, reach the paper's."""
    return [
        round(means(setting, name)[metric], 1) >= published(setting, OURS, metric)
        for setting in SETTINGS
        for metric in METRICS
    ]


def changes(setting: str, name: str, before: str = PUBLISHED) -> Gaps:
    """A reading minus another on the same seeds."""
    both = zip(outside(setting, name), outside(setting, before), strict=True)
    return Gaps((new - old for new, old in both), paper_cell(setting, OURS).overlap)


def closed() -> str:
    """The reading that closes the gap on CiteSeer's long tail, and how far weight decay gets."""
    tail, best = TAILS[1], f"{LOSS}, {STARTS}"
    paper, before = published(tail, OURS), fmean(outside(tail, PUBLISHED))
    shares = [(fmean(outside(tail, name)) - before) / (paper - before) for name in DECAYED]
    return (
        f"{fmean(outside(tail, best)):.1f}, where the paper has {paper}. More weight decay closes "
        f"{min(shares):.0%} to {max(shares):.0%} of the gap"
    )


def nearly() -> str:
    """The best reading on Cora's long tail, and what the one for CiteSeer does there."""
    tail = TAILS[0]
    best, other = f"{LOSS}, {ROWS}", f"{LOSS}, {STARTS}"
    assert max(READINGS, key=lambda name: fmean(outside(tail, name))) == best
    assert min(READINGS, key=lambda name: fmean(outside(tail, name))) == other
    return (
        f"{estimate(outside(tail, best))}, where the paper has {published(tail, OURS)}. But the "
        "reading that suits CiteSeer is the worst of all on Cora, "
        f"{fmean(outside(tail, other)):.1f}"
    )


def left() -> str:
    """What the readings that validation prefers over all four settings leave of the gaps."""
    scores = {name: round(validation(name), 1) for name in READINGS}
    best = [name for name in READINGS if scores[name] == max(scores.values())]
    assert best == [f"{LOSS}, {ROWS}", f"{LOSS}, {STARTS}, {ROWS}"]
    parts = []
    for tail in TAILS:
        gaps = [published(tail, OURS) - round(fmean(outside(tail, name)), 1) for name in best]
        parts.append(f"{min(gaps):.1f} to {max(gaps):.1f} points on {SETTINGS[tail]}")
    return " and ".join(parts)


def selection() -> str:
    """What is gained if validation selects the reading as well."""
    paper = fmean(published(setting, OURS) for setting in SETTINGS)
    cells = [reached(name) for name in (PUBLISHED, BY_VALIDATION)]
    gaps = [paper - overall(name) for name in (PUBLISHED, BY_VALIDATION)]
    return (
        f"{of(cells[1])} cells of these settings reach the paper instead of {sum(cells[0])}, and "
        f"the mean is {gaps[1]:.1f} below the paper's instead of {gaps[0]:.1f}"
    )


def starts() -> str:
    """What ten starts change in the full model."""
    pairs = ((STARTS, PUBLISHED), (f"{LOSS}, {STARTS}", LOSS))
    alone, with_loss = (
        max(abs(fmean(changes(setting, *pair))) for setting in SETTINGS) for pair in pairs
    )
    gain = overall(STARTS) - overall(PUBLISHED)
    return (
        f"by {alone:.1f} points at most ({gain:+.1f} on average), and by up to {with_loss:.1f} "
        "with the mean loss"
    )


def semantic() -> str:
    """The semantic encoder alone, by how its clusters are found."""
    rows = []
    for name in COMBINED[:4]:
        cells = [estimate(semantic_scores(setting, name)) for setting in SETTINGS]
        rows.append([name, *cells])
    papers = [f"{semantic_of_the_paper(setting)}" for setting in SETTINGS]
    return table(["clusters", *SETTINGS.values()], [*rows, ["**the paper**", *papers]])


def semantic_scores(setting: str, name: str) -> list[float]:
    """Balanced accuracy of the semantic encoder alone."""
    (grid,) = runs("semantic")[setting, READINGS[name]].values()
    return [grid[seed][METRIC] for seed in OUTSIDE]


def semantic_of_the_paper(setting: str) -> float:
    """The paper's mean of the semantic encoder alone."""
    dataset, imbalance, *numbers = setting.split("-")
    fields = {"ratio": float(numbers[-1])} | ({"minority": 3} if numbers[:-1] else {})
    ablation: Any = "ablation"
    paper = table_of_the_paper(dataset, imbalance, fields, "Semantic Enc.", table=ablation)
    assert paper is not None
    return paper[METRIC]["mean"] or 0.0


def semantic_gaps() -> str:
    """How far the best clusters are from the paper: above it, or below."""
    parts = []
    for setting, name in SETTINGS.items():
        best = max(fmean(semantic_scores(setting, kind)) for kind in COMBINED[:4])
        parts.append(f"{best - semantic_of_the_paper(setting):+.1f} on {name}")
    return "; ".join(parts)


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
    for setting, name in SETTINGS.items():
        grids = runs()[setting, READINGS[PUBLISHED]]
        best = selected(setting, PUBLISHED)[1]
        (grid,) = (key for key, scores in grids.items() if scores is best)
        found.append(f"{grid[0]} on {name}")
    return ", ".join(found)


if __name__ == "__main__":
    print(readings(), semantic(), sep="\n\n")
    parts = (tried, chosen, closed, nearly, left, selection, starts, semantic_gaps)
    print(*(part() for part in parts), sep="\n")
