"""A made-up store: three experiments, shaped like those that `evengraph reproduce` leaves."""

import random
import sqlite3
from contextlib import closing

from evengraph.lab.results import Cell, ExperimentResults
from evengraph.lab.store import JobSpec, Row

STEP, TAIL, PUBMED = "cora-step-3-0.1", "cora-longtail-0.01", "pubmed-step-1-0.1"
SETUPS = {
    STEP: ("cora", "step", {"minority": 3, "ratio": 0.1}),
    TAIL: ("cora", "longtail", {"ratio": 0.01}),
    PUBMED: ("pubmed", "step", {"minority": 1, "ratio": 0.1}),
}
FEW, MANY = range(5, 8), range(5, 25)
CENTRES = {"GCN": 61.0, "Re-weight": 66.0, "LTE4G": 69.0, "Uni-GNN": 74.0}
ROLES = {"GCN": "baseline", "Uni-GNN": "highlight"}
CHOSEN = {"alpha": 2, "clusters_per_class": 20}
PUBLISHED = {
    (STEP, "GCN"): 60.25,
    (STEP, "LTE4G"): 71.4,
    (STEP, "Uni-GNN"): 76.5,
    (TAIL, "Uni-GNN"): 73.0,
}


def published(mean):
    """A cell of the paper; its other metrics lie a fixed step away."""
    return {
        "balanced_accuracy": {"mean": mean, "std": 0.5},
        "macro_f1": {"mean": mean - 1, "std": None},
        "g_mean": {"mean": mean + 9, "std": 0.2},
    }


def spread(centre, seeds, name, width=1.5):
    """A figure for each seed; the same for the same name."""
    draw = random.Random(name)
    return {seed: round(draw.gauss(centre, width), 3) for seed in seeds}


def outcome(value, classes, **changes):
    """What a run leaves, around its balanced accuracy; the classes are not in order of size."""
    counts = [2, 20, 10, 5, 3, 8, 15][:classes]
    recall = [min(value + count / 2 - 4, 100.0) for count in counts]
    metrics = {"balanced_accuracy": value, "macro_f1": value - 1.25, "g_mean": value + 8.5}
    matrix = [[30 if one == other else 2 for other in range(classes)] for one in range(classes)]
    return {
        "metrics": metrics | {"accuracy": value + 1},
        "per_class": {"recall": recall, "f1": recall, "support": [sum(row) for row in matrix]},
        "confusion_matrix": matrix,
        "class_counts": counts,
        "validation": value + 2,
        "best_epoch": 12,
        "epochs": 40,
        "seconds": 1 + value / 10,
        "memory": 0.25,
        "together": 1,
    } | changes


def save_cell(
    store, setup, label, values, varies=None, value=None, chosen=None, paper=None, **changes
):
    """Add a row for each seed; returns the cell as a results names it."""
    dataset, imbalance, fields = SETUPS[setup]
    keys = []
    for seed, figure in values.items():
        settings = {"label": label, **({varies: value} if varies else {})}
        job = JobSpec(
            dataset=dataset,
            imbalance=imbalance,
            imbalance_fields=fields,
            method=label.lower(),
            method_fields=settings,
            seed=seed,
        )
        row = Row(
            job=job,
            outcome=outcome(figure, 7 if dataset == "cora" else 3, **changes),
            environment={"device": "cpu", "commit": "0123abc"},
            created=f"2026-11-{seed:02}T10:00:00+00:00",
        )
        store.add(row)
        keys.append(job.key)
    return {
        "setup": setup,
        "dataset": dataset,
        "label": label,
        "varies": varies,
        "value": value,
        "chosen": chosen or {},
        "keys": keys,
        "paper": paper,
        "role": ROLES.get(label, ""),
    }


def save_experiment(store, name, draws, cells, **more):
    """Write a results of the seeds 5, 6 and 7."""
    content = {"title": name.capitalize(), "draws": draws, "seeds": list(FEW), "cells": cells}
    store.save_experiment(name, content | more)


def figures_of(setup, label):
    """The runs of a method in a set-up, which experiments share."""
    seeds = MANY if label in ("GCN", "Uni-GNN") else FEW
    return spread(CENTRES[label] - 3 * list(SETUPS).index(setup), seeds, setup + label)


def comparison_cells(store):
    """Four methods in three set-ups: Uni-GNN was searched over, LTE4G lacks PubMed."""
    cells = []
    for setup in SETUPS:
        for label in CENTRES:
            if (setup, label) == (PUBMED, "LTE4G"):
                continue
            paper = PUBLISHED.get((setup, label))
            paper = None if paper is None else published(paper)
            chosen = CHOSEN if label == "Uni-GNN" else None
            figures = figures_of(setup, label)
            cells.append(save_cell(store, setup, label, figures, chosen=chosen, paper=paper))
    return cells


def ablation_cells(store):
    """The whole method and two variants in two set-ups."""
    cells = []
    for setup, paper in ((STEP, 76.5), (PUBMED, None)):
        for label, fall in (("Uni-GNN", 0.0), ("no semantic", -4.0), ("no pseudo-labels", 0.2)):
            values = figures_of(setup, "Uni-GNN")
            if fall:
                noise = spread(fall, MANY, f"{setup}{label}", width=0.8)
                values = {seed: value + noise[seed] for seed, value in values.items()}
            given = None if paper is None else published(paper + fall)
            chosen = CHOSEN if label == "Uni-GNN" else None
            cells.append(save_cell(store, setup, label, values, chosen=chosen, paper=given))
    return cells


def sensitivity_cells(store):
    """The chosen settings, and two curves; the last place of the second has a single seed."""
    cells = [save_cell(store, STEP, "Uni-GNN", figures_of(STEP, "Uni-GNN"), chosen=CHOSEN)]
    for label, field, values in (
        ("alpha", "alpha", (1, 2, 3)),
        ("K", "clusters_per_class", (3, 10, 20, 50)),
    ):
        for place, value in enumerate(values):
            seeds = [5] if value == 50 else FEW
            figures = spread(70.0 + place, seeds, f"{label}{value}")
            cells.append(save_cell(store, STEP, label, figures, varies=field, value=value))
    return cells


def fill(store):
    """Three experiments."""
    # while a reader is there, SQLite does not sync the whole file after every row
    with closing(sqlite3.connect(store.path)) as reader:
        reader.execute("SELECT * FROM runs").fetchall()
        _fill(store)
    return store


def _fill(store):
    save_experiment(store, "comparison", "comparison", comparison_cells(store))
    save_experiment(store, "ablation", "ablation", ablation_cells(store))
    save_experiment(store, "sensitivity", "sensitivity", sensitivity_cells(store))


def make_results(values, **changes):
    """A comparison without any store, from the figures of each seed by set-up and label.

    A set-up is of the graph that its name begins with; changes are those of the results, or of all
    its cells.
    """
    cells = []
    for (setup, label), figures in values.items():
        given = {"selected": {}, "paper": None, "varies": None, "value": None}
        given |= {name: value for name, value in changes.items() if name in given}
        rows = [_row(setup, label, seed, figure) for seed, figure in figures.items()]
        dataset = setup.partition("-")[0]
        role = ROLES.get(label, "")
        cells.append(
            Cell(setting=setup, dataset=dataset, label=label, rows=rows, role=role, **given)
        )
    plain = {"name": "made-up", "title": "Made up", "kind": "comparison", "seeds": list(FEW)}
    plain |= {name: value for name, value in changes.items() if name in plain}
    return ExperimentResults(**plain, cells=cells)


def _row(setup, label, seed, figure):
    fields = {"setup": setup, "label": label}
    names = {"dataset": setup, "imbalance": "step", "imbalance_fields": {}, "method": label}
    job = JobSpec(**names, method_fields=fields, seed=seed)
    return Row(job=job, outcome=outcome(figure, 3), created="2026-11-05T10:00:00+00:00")
