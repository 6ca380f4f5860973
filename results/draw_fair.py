"""Draw the fair comparisons of docs/reproduction.md: `python results/draw_fair.py`.

Does Uni-GNN win because of its ideas, or because its encoder is deeper than the GCN beside it, or
because more settings were tried? Balanced accuracy over seeds 8 to 24, which took no part in
selecting hyperparameters.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import fmean

from draw_reproduction import METRIC, OURS, OUTSIDE, table, title
from draw_reproduction import gains as gains_as_published

from evengraph.core.store import Store
from evengraph.metrics.significance import bootstrap_interval, holm, t_test
from evengraph.report.store.comparisons import ALPHA, paired_gaps
from evengraph.report.store.experiment_results import Cell, ExperimentResults, load_experiments

STORE = Path(__file__).with_name("fair.sqlite")
PLAIN, SYMMETRIC, DEEP = "GCN", "GCN, symmetric", "GCN, three convolutions"
COLUMNS = (PLAIN, SYMMETRIC, DEEP, OURS)
OTHERS = (
    *(PLAIN, "Over-sampling", "Re-weight", "SMOTE", "Embed-SMOTE"),
    *("GraphSMOTE", "GraphENS", "LTE4G", DEEP),
)  # of the experiment with equal budgets


@cache
def results(name: str) -> ExperimentResults:
    """The experiment `control` or `budget`."""
    (found,) = [one for one in load_experiments(Store(STORE)) if one.name == name]
    return found


def cell(experiment: str, setting: str, label: str) -> Cell:
    """The runs of a method outside the choice."""
    found = results(experiment).find(setting, label)
    assert found is not None
    return found.with_seeds(OUTSIDE)


def score(experiment: str, setting: str, label: str) -> float:
    """Its mean balanced accuracy."""
    return cell(experiment, setting, label).mean(METRIC)


def gains(experiment: str, label: str) -> list[list[float]]:
    """Uni-GNN minus another method for each seed, in every setting."""
    pairs = (
        (cell(experiment, name, OURS), cell(experiment, name, label))
        for name in results(experiment).settings
    )
    return [list(paired_gaps(*pair, METRIC).values) for pair in pairs]


def significant(gaps: list[list[float]]) -> int:
    """In how many settings a gain is larger than 0 after Holm's correction."""
    corrected = holm([t_test(gap).p for gap in gaps])
    return sum(p < ALPHA and fmean(gap) > 0 for p, gap in zip(corrected, gaps, strict=True))


def control() -> str:
    """The three kinds of GCN beside Uni-GNN, and its gain over the one that is as deep."""
    rows = []
    for name, gap in zip(results("control").settings, gains("control", DEEP), strict=True):
        low, high = bootstrap_interval(gap) or (0.0, 0.0)
        scores = [f"{score('control', name, label):.1f}" for label in COLUMNS]
        rows.append([title(name), *scores, f"{fmean(gap):+.1f} ({low:.1f} to {high:.1f})"])
    return table(["setting", *COLUMNS, "over three convolutions (95%)"], rows)


def verdict() -> str:
    """How much of the advantage is depth."""
    plain, deep = (fmean(fmean(gap) for gap in gains("control", label)) for label in (PLAIN, DEEP))
    gaps = gains("control", DEEP)
    smallest, largest = (pick(fmean(gap) for gap in gaps) for pick in (min, max))
    return (
        f"Depth explains {plain - deep:.1f} of the {plain:.1f} points by which Uni-GNN is ahead of "
        f"GCN on average. Against three convolutions it is ahead by {smallest:.1f} to {largest:.1f}"
        f", significantly after Holm's correction in {significant(gaps)} of {len(gaps)} settings."
    )


def budget() -> str:
    """Every method with its best of eight settings; the best in a setting is bold."""
    rows = []
    for name in results("budget").settings:
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
        selected = fmean(score("budget", name, label) for name in results("budget").settings)
        rows.append(
            [
                label,
                f"{selected:.1f}",
                f"{fmean(means):+.1f}",
                f"{min(means):+.1f} to {max(means):+.1f}",
                f"{significant(gaps)} of {len(gaps)}",
            ]
        )
    header = ["method", "mean", "Uni-GNN minus it", "smallest to largest", "significantly ahead"]
    return table(header, rows)


def budget_verdict() -> str:
    """What is left of the lead when every method has the same number of settings."""
    names = results("budget").settings
    ours = [score("budget", name, OURS) for name in names]
    leads = [
        mine - max(score("budget", name, label) for label in OTHERS)
        for name, mine in zip(names, ours, strict=True)
    ]
    forty = fmean(score("control", name, OURS) for name in names)
    published, searched = (
        fmean(fmean(gap) for gap in gaps)
        for gaps in (gains_as_published("LTE4G", OUTSIDE), gains("budget", "LTE4G"))
    )
    return (
        f"With eight settings for every method Uni-GNN is first in {sum(x > 0 for x in leads)} of "
        f"{len(names)} settings, {fmean(leads):.1f} points ahead of the best other on average. Its "
        f"own mean is {fmean(ours):.1f}, and {forty:.1f} with the best of forty. Over LTE4G its "
        f"lead shrinks to {searched:.1f} points, from {published:.1f} with the values named above."
    )


if __name__ == "__main__":
    print(control(), verdict(), budget(), ahead(), budget_verdict(), sep="\n\n")
