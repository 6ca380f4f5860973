"""reproduce(): run what experiments lack, until nothing is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import sleep
from typing import Any

from evengraph.core.store import Job, Store
from evengraph.experiment.engines import Engine, OnRow, load_once
from evengraph.experiment.paper import ablation_cell, paper_cell, published_cell
from evengraph.experiment.plan import Cell, Plan
from evengraph.experiment.spec import Spec
from evengraph.methods import METHODS
from evengraph.splits import SPLITS

WAIT = 2.0  # seconds, while another process is at what is left


def reproduce(
    specs: Sequence[Spec],
    store: Store,
    engine: Engine,
    *,
    on_row: OnRow = lambda row: None,
    on_round: Callable[[int], None] = lambda missing: None,
    embed: Callable[[Job], dict[str, Any] | None] | None = None,
) -> None:
    """Run every experiment to its end; what the store holds is not run again.

    Settings that are chosen on validation, or built on such a choice, follow in a round of their
    own, once all that they are chosen from has ended.

    Args:
        specs: The experiments; runs that they share are run once.
        store: Where rows are and go.
        engine: Does the runs.
        on_row: Hears of every run that ends.
        on_round: Hears how many runs are missing, at the start of a round.
        embed: Does a run once more, to see where its nodes lie.
    """
    try:
        while jobs := missing(specs, store):
            on_round(len(jobs))
            before = len(store.rows())
            engine(jobs, on_row)
            if len(store.rows()) == before:
                sleep(WAIT)
        for spec in specs:
            job = Plan(spec, store.rows()).mapped()
            wanted = job is not None and store.tsne(job.key) is None
            found = embed(job) if job is not None and wanted and embed is not None else None
            if job is not None and found is not None:
                store.save_tsne(job.key, found)
    finally:
        for spec in specs:  # what there is can be drawn, also after Ctrl-C
            store.save_experiment(spec.name, board(spec, store))


def check(specs: Sequence[Spec], root: Path | None = None) -> None:
    """Find out that a graph cannot be had or split before, not after, an hour of training."""
    setups = [setup for spec in specs for setup in spec.setups]
    for setup in {(setup.name, str(setup.fields)): setup for setup in setups}.values():
        protocol = SPLITS[setup.imbalance](**setup.fields)
        seed = specs[0].seeds[0]
        try:
            protocol(load_once(setup.dataset, root), seed=seed)
        except ValueError as error:
            raise ValueError(f"{setup.name} cannot be set up: {error}") from None


def board(spec: Spec, store: Store) -> dict[str, Any]:
    """What an experiment shows, in a form that can be drawn without any method at hand."""
    plan = Plan(spec, store.rows())
    job = plan.mapped()
    return {
        "title": spec.title,
        "draws": spec.draws,
        "seeds": list(spec.seeds),
        "map": None if job is None or store.tsne(job.key) is None else job.key,
        "cells": [_shown(cell, spec.draws) for cell in plan.cells()],
    }


def _shown(cell: Cell, draws: str) -> dict[str, Any]:
    setup, entry = cell.setup, cell.entry
    fields = [name for name in (entry.grid or entry.search or entry.vary) if name != "trials"]
    where = setup.dataset, setup.imbalance, setup.fields
    published = None
    if draws == "ablation":
        published = ablation_cell(*where, entry.label)
    elif entry.label == METHODS[entry.method].title:  # a variant of a method has no cell there
        published = paper_cell(*where, entry.method)
    if draws == "comparison":
        published = published or published_cell(*where, entry.label)
    return {
        "setup": setup.name,
        "dataset": setup.dataset,
        "imbalance": setup.imbalance,
        "imbalance_fields": dict(setup.fields),
        "label": entry.label,
        "method": entry.method,
        "varies": next(iter(entry.vary), None),
        "value": cell.value,
        "note": entry.note,
        "chosen": {name: cell.settings[name] for name in fields} if not entry.vary else {},
        "settings": dict(cell.settings),
        "keys": [row.job.key for row in cell.rows],
        "paper": published,
    }


def missing(specs: Sequence[Spec], store: Store) -> list[Job]:
    """Runs that experiments lack, as far as they can be told now."""
    rows = store.rows()
    return list({job.key: job for spec in specs for job in Plan(spec, rows).missing()}.values())
