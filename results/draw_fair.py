"""Draw the fair comparisons of docs/reproduction.md: `python results/draw_fair.py`.

Does Uni-GNN win because of its ideas, or because its encoder is deeper than the GCN beside it, or
because more configurations were tried? Balanced accuracy over seeds 8 to 24, which took no part in
selecting hyperparameters.
"""

from __future__ import annotations

from functools import cache
from statistics import fmean

import draw
from paper_cells import (
    METRIC,
    OURS,
    Gaps,
    cell,
    differences,
    estimate,
    paper_cell,
    settings,
    significant,
    table,
    title,
)

from evengraph.lab.results import Cell

PLAIN, SYMMETRIC, DEEP = "GCN", "GCN, symmetric", "GCN, three convolutions"
COLUMNS = (PLAIN, SYMMETRIC, DEEP, OURS)
OF_THE_PAPER = (
    *(PLAIN, "Over-sampling", "Re-weight", "SMOTE", "Embed-SMOTE"),
    *("GraphSMOTE", "GraphENS", "LTE4G"),
)
OTHERS = (*OF_THE_PAPER, DEEP)  # of the experiment with equal budgets


def budget_cell(setting: str, label: str) -> Cell:
    """A method with the best of eight configurations."""
    return cell("budget", setting, label)


def score(experiment: str, setting: str, label: str) -> float:
    """The mean of a method."""
    return cell(experiment, setting, label).mean(METRIC)


def gains(experiment: str, label: str) -> list[Gaps]:
    """Uni-GNN minus another method for each seed, in every setting."""
    return differences((cell(experiment, s, OURS), cell(experiment, s, label)) for s in settings())


def control() -> str:
    """The three kinds of GCN beside Uni-GNN, and its gain over the one that is as deep."""
    rows = []
    for name, gap in zip(settings(), gains("control", DEEP), strict=True):
        scores = [f"{score('control', name, label):.1f}" for label in COLUMNS]
        rows.append([title(name), *scores, estimate(gap, sign="+")])
    return table(["setting", *COLUMNS, "over three convolutions (95%)"], rows)


def verdict() -> str:
    """How much of the advantage is depth."""
    gaps = gains("control", DEEP)
    deep = [fmean(gap) for gap in gaps]
    plain = fmean(fmean(gap) for gap in gains("control", PLAIN))
    return (
        f"Depth explains {plain - fmean(deep):.1f} of the {plain:.1f} points by which Uni-GNN is "
        f"ahead of GCN on average. Over the GCN with three convolutions it leads by "
        f"{min(deep):.1f} to {max(deep):.1f}, significantly after Holm's correction in "
        f"{significant(gaps)} of {len(gaps)} settings."
    )


@cache
def standing() -> dict[str, int]:
    """In how many settings Uni-GNN is significantly ahead of each, corrected for the table."""
    found = {label: gains("budget", label) for label in OTHERS}
    rest = {a: [gap for b in OTHERS if b != a for gap in found[b]] for a in OTHERS}
    return {label: significant(found[label], rest[label]) for label in OTHERS}


def budget() -> str:
    """Every method with its best of eight configurations; the best in a setting is bold."""
    rows = []
    for name in settings():
        scores = [score("budget", name, label) for label in (*OTHERS, OURS)]
        best = max(scores)
        shown = (f"**{value:.1f}**" if value == best else f"{value:.1f}" for value in scores)
        rows.append([title(name), *shown])
    return table(["setting", *OTHERS, OURS], rows)


def ahead() -> str:
    """Uni-GNN's gain over each of the others when all have the same budget."""
    rows = []
    for label in OTHERS:
        gaps = gains("budget", label)
        means = [fmean(gap) for gap in gaps]
        selected = fmean(score("budget", name, label) for name in settings())
        rows.append(
            [
                label,
                f"{selected:.1f}",
                f"{fmean(means):+.1f}",
                f"{min(means):+.1f} to {max(means):+.1f}",
                f"{standing()[label]} of {len(gaps)}",
            ]
        )
    header = ["method", "mean", "Uni-GNN minus it", "smallest to largest", "significantly ahead"]
    return table(header, rows)


def leads() -> list[tuple[str, str, float]]:
    """The best of the paper's other methods in each setting, and how far Uni-GNN is above it."""
    found = []
    for name in settings():
        scores = {label: score("budget", name, label) for label in OF_THE_PAPER}
        best = max(scores, key=lambda label: scores[label])
        found.append((name, best, score("budget", name, OURS) - scores[best]))
    return found


def budget_verdict() -> str:
    """What is left of the lead when every method has the same number of configurations."""
    found = [value for *_, value in leads()]
    eight, forty = (
        fmean(score(name, setting, OURS) for setting in settings())
        for name in ("budget", "control")
    )
    published = differences((paper_cell(s, OURS), paper_cell(s, "LTE4G")) for s in settings())
    before, after = (fmean(map(fmean, gaps)) for gaps in (published, gains("budget", "LTE4G")))
    return (
        f"With eight configurations for every method, Uni-GNN is first in "
        f"{sum(x > 0 for x in found)} of {len(found)} settings, {fmean(found):.1f} points ahead of "
        f"the best other on average. Its own mean is {eight:.1f}, and {forty:.1f} with the best of "
        f"forty. Its lead over LTE4G shrinks from {before:.1f} points to {after:.1f}."
    )


def lte4g() -> str:
    """The setting in which LTE4G is farthest from its authors' value."""
    name = "cora-step-5-0.05"
    found = cell("budget", name, "LTE4G")
    before, paper = paper_cell(name, "LTE4G"), found.published(METRIC)
    assert dict(found.selected) == {"reconstruct": True, "class_weights": True, "focal_gamma": 1.0}
    twelve = draw.tried("lte4g")["cora", "step", "5", "0.05"].values()
    assert len(twelve) == 12
    best = max(fmean(float(run[METRIC]) for run in runs) for runs in twelve)
    return (
        f"On Cora (5 classes, 5%), where the paper has {paper} for LTE4G, ours rises from "
        f"{before.mean(METRIC):.1f} to {found.mean(METRIC):.1f}, with class weights, gamma 1 and "
        "reconstruction. Its authors publish no configuration for that setting; of the twelve "
        f"that we tried on seeds 5 to 7, the best on the test nodes has {best:.1f}."
    )


if __name__ == "__main__":
    print(control(), verdict(), budget(), ahead(), budget_verdict(), lte4g(), sep="\n\n")
