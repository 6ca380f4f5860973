"""reproduce(): run what experiments lack, until nothing is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import sleep
from typing import Any

from evengraph.lab.plan import Cell, OnRow, Plan, known_runs
from evengraph.lab.sources import finished_mark
from evengraph.lab.spec import Spec
from evengraph.lab.store import Holder, JobSpec, Row, Store
from evengraph.methods import METHODS
from evengraph.pipeline.executor import NamedGraph
from evengraph.pipeline.parameters import paper_cell
from evengraph.splits import SPLITS

WAIT = 2.0  # seconds, while another process runs what is left
PARTS = ("validation",)  # all that a plan needs of an outcome


def reproduce(
    specs: Sequence[Spec],
    store: Store,
    run_jobs: Callable[[Sequence[JobSpec], OnRow], None],
    *,
    on_row: OnRow = lambda row: None,
    on_round: Callable[[int], None] = lambda missing: None,
    on_wait: Callable[[Sequence[Holder]], None] = lambda holders: None,
    embed: Callable[[JobSpec], dict[str, Any] | None] | None = None,
    inputs: Mapping[str, str] | None = None,
) -> None:
    """Run experiments to their end; runs that the store holds are not repeated.

    Runs whose settings are selected on validation follow in a later round, once all candidates
    have run.

    Args:
        specs: The experiments; runs that they share are run once.
        store: Where rows are read and written.
        run_jobs: Runs jobs and stores their rows.
        on_row: Called with each new row.
        on_round: Called with the number of missing runs at the start of a round.
        on_wait: Called with the processes that run what is left, before waiting for them.
        embed: Repeats a run and returns the positions of its nodes in a plane.
        inputs: What determined the runs of each experiment, by its name, as `inputs_of` gives it;
            with it a finished experiment is marked as such in the store.
    """
    known: Mapping[str, Row] | None = None
    finished = False
    try:
        while jobs := missing(specs, store, known := known_runs(store.rows(parts=PARTS))):
            known = None  # out of date from here on
            on_round(len(jobs))
            before = store.count()
            run_jobs(jobs, on_row)
            if store.count() == before:
                on_wait(store.holders())
                sleep(WAIT)
        _embed(specs, store, embed)
        finished = True
    finally:
        known = known_runs(store.rows(parts=PARTS)) if known is None else known
        for spec in specs:  # so that results so far can be drawn, also after Ctrl-C
            content = experiment_content(spec, store, known)
            if finished and inputs and (content["map"] or not spec.map):
                rows = (known[job.key] for job in Plan(spec, known).jobs())
                content["finished"] = finished_mark(inputs[spec.name], rows, content["cells"])
            store.save_experiment(spec.name, content)


def _embed(
    specs: Sequence[Spec], store: Store, embed: Callable[[JobSpec], dict[str, Any] | None] | None
) -> None:
    """Save the positions of embeddings that an experiment draws, where they are missing."""
    for spec in specs:
        if embed is None or not spec.map:
            continue
        job = Plan(spec, store.rows(parts=PARTS)).embedded_run()
        positions = None if job is None or store.tsne(job.key) is not None else embed(job)
        if job is not None and positions is not None:
            store.save_tsne(job.key, positions)


def check(specs: Sequence[Spec], root: Path | None = None) -> None:
    """Make one split per setting, so that a mistake shows before hours of training."""
    setups = [setup for spec in specs for setup in spec.setups]
    for setup in {(setup.name, str(setup.fields)): setup for setup in setups}.values():
        protocol = SPLITS[setup.imbalance](**setup.fields)
        try:
            protocol(NamedGraph(setup.dataset, root).load(), seed=specs[0].seeds[0])
        except ValueError as error:
            raise ValueError(f"{setup.name} cannot be set up: {error}") from None


def experiment_content(
    spec: Spec, store: Store, known: Mapping[str, Row] | None = None
) -> dict[str, Any]:
    """The cells of an experiment, in a form that can be drawn without loading any method."""
    plan = Plan(spec, store.rows(parts=PARTS) if known is None else known)
    job = plan.embedded_run()
    return {
        "title": spec.title,
        "draws": spec.draws,
        "seeds": list(spec.seeds),
        "map": None if job is None or store.tsne(job.key) is None else job.key,
        "cells": [_cell_content(cell, spec.draws) for cell in plan.cells()],
    }


def _cell_content(cell: Cell, draws: str) -> dict[str, Any]:
    setup, entry = cell.setup, cell.entry
    names = [name for name in (entry.grid or entry.search or entry.vary) if name != "trials"]
    where = setup.dataset, setup.imbalance, setup.fields
    is_variant = entry.label != METHODS[entry.method].title
    published = None
    if draws == "ablation":
        published = paper_cell(*where, entry.label, table="ablation")
    elif not is_variant:  # which the paper's tables do not have
        published = paper_cell(*where, entry.method)
    if draws == "comparison":
        published = published or paper_cell(*where, entry.label, table="published")
    return {
        "setup": setup.name,
        "dataset": setup.dataset,
        "imbalance": setup.imbalance,
        "imbalance_fields": dict(setup.fields),
        "label": entry.label,
        "method": entry.method,
        "role": "" if is_variant else METHODS[entry.method].role,
        "varies": next(iter(entry.vary), None),
        "value": cell.value,
        "note": entry.note,
        "chosen": {name: cell.settings[name] for name in names} if not entry.vary else {},
        "settings": dict(cell.settings),
        "keys": [row.job.key for row in cell.rows],
        "paper": published,
    }


def missing(
    specs: Sequence[Spec], store: Store, known: Mapping[str, Row] | None = None
) -> list[JobSpec]:
    """Runs that experiments lack, as far as is known now."""
    known = known_runs(store.rows(parts=PARTS)) if known is None else known
    return list({job.key: job for spec in specs for job in Plan(spec, known).missing()}.values())
