"""Run an experiment: plan what is missing, run it, select on validation, until nothing is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean
from time import sleep
from typing import Any, NamedTuple, cast

import torch

from evengraph.core.task import Record
from evengraph.lab.spec import Entry, Fields, Setup, Spec
from evengraph.lab.store import Holder, JobSpec, Row, Store
from evengraph.methods import METHODS
from evengraph.pipeline.executor import (
    Executor,
    Failure,
    Job,
    Journal,
    NamedGraph,
    Result,
    describe,
)
from evengraph.pipeline.parameters import paper_cell, preset_for, renamed_params
from evengraph.splits import SPLITS, SplitProtocol

WAIT = 2.0  # seconds, while another process runs what is left
OnRow = Callable[[Row], None]
NOT_STORED = ("history", "seed", "interrupted", "total_epochs", "settings", "calibration")


def reproduce(
    specs: Sequence[Spec],
    store: Store,
    run_jobs: Callable[[Sequence[JobSpec], OnRow], None],
    *,
    on_row: OnRow = lambda row: None,
    on_round: Callable[[int], None] = lambda missing: None,
    on_wait: Callable[[Sequence[Holder]], None] = lambda holders: None,
) -> None:
    """Run experiments to their end; runs that the store holds are not repeated.

    Runs whose settings are selected on validation follow in a later round, once all candidates
    have run.
    """
    known: Mapping[str, Run] | None = None
    wanted: dict[str, Any] = {
        "parts": ("validation",),
        "dataset": {setup.dataset for spec in specs for setup in spec.setups},
        "imbalance": {setup.imbalance for spec in specs for setup in spec.setups},
        "method": {entry.name for spec in specs for entry in spec.entries},
        "seed": {seed for spec in specs for seed in spec.seeds}.union(
            *(entry.more_seeds for spec in specs for entry in spec.entries)
        ),
    }
    try:
        while jobs := missing(specs, known := known_runs(store.scan(**wanted))):
            known = None  # out of date from here on
            on_round(len(jobs))
            before = store.count()
            run_jobs(jobs, on_row)
            if store.count() == before:
                on_wait(store.holders())
                sleep(WAIT)
    finally:
        known = known_runs(store.scan(**wanted)) if known is None else known
        for spec in specs:  # so that results so far can be drawn, also after Ctrl-C
            store.save_experiment(spec.name, experiment_content(spec, known))


def check(specs: Sequence[Spec]) -> None:
    """Make one split per setting, so that a mistake shows before hours of training."""
    setups = [setup for spec in specs for setup in spec.setups]
    for setup in {(setup.name, str(setup.fields)): setup for setup in setups}.values():
        protocol = SPLITS[setup.imbalance](**setup.fields)
        try:
            protocol(NamedGraph(setup.dataset).load(), seed=specs[0].seeds[0])
        except ValueError as error:
            raise ValueError(f"{setup.name} cannot be set up: {error}") from None


def experiment_content(spec: Spec, known: Mapping[str, Run]) -> dict[str, Any]:
    """The cells of an experiment, in a form that can be drawn without loading any method."""
    return {
        "title": spec.title,
        "draws": spec.draws,
        "seeds": list(spec.seeds),
        "cells": [_cell_content(cell, spec.draws) for cell in Plan(spec, known).cells()],
    }


def _cell_content(cell: Cell, draws: str) -> dict[str, Any]:
    setup, entry = cell.setup, cell.entry
    where = setup.dataset, setup.imbalance, setup.fields
    is_variant = entry.label != METHODS[entry.name].title
    published = None
    if draws == "ablation":
        published = paper_cell(*where, entry.label, table="ablation")
    elif not is_variant:  # which the paper's tables do not have
        published = paper_cell(*where, entry.name)
    if draws == "comparison":
        published = published or paper_cell(*where, entry.label, table="published")
    return {
        "setup": setup.name,
        "dataset": setup.dataset,
        "imbalance": setup.imbalance,
        "imbalance_fields": dict(setup.fields),
        "label": entry.label,
        "method": entry.name,
        "role": "" if is_variant else METHODS[entry.name].role,
        "varies": next(iter(entry.vary), None),
        "value": cell.value,
        "note": entry.note,
        "chosen": {name: cell.settings[name] for name in entry.grid},
        "settings": dict(cell.settings),
        "keys": list(cell.keys),
        "paper": published,
    }


def missing(specs: Sequence[Spec], known: Mapping[str, Run]) -> list[JobSpec]:
    """Runs that experiments lack, as far as is known now."""
    return list({job.key: job for spec in specs for job in Plan(spec, known).missing()}.values())


@dataclass(frozen=True)
class Cell:
    """One cell of a table or point of a curve, with the runs behind it."""

    setup: Setup
    entry: Entry
    settings: Fields  # selected on validation where there was a choice
    value: Any  # of the parameter that varies, if one does
    keys: Sequence[str]  # of the rows of successful runs, one per seed


class Run(NamedTuple):
    """The key and the validation score of a stored run."""

    key: str  # of its row
    score: float | None  # on validation; None if it failed


class Plan:
    """An experiment and the runs that exist already, also those of other experiments."""

    def __init__(self, spec: Spec, rows: Iterable[Row] | Mapping[str, Run]) -> None:
        self.spec = spec
        self.known = rows if isinstance(rows, Mapping) else known_runs(rows)
        self._templates: dict[str, JobSpec] = {}

    def missing(self) -> list[JobSpec]:
        """Runs that are still needed; those that depend on a selection follow once it is made."""
        specs = {spec.key: spec for spec in self.jobs()}
        return [spec for key, spec in specs.items() if key not in self.known]

    def jobs(self) -> Iterator[JobSpec]:
        """All runs, as far as is known now."""
        for setup, entry in product(self.spec.setups, self.spec.entries):
            for settings in self._candidates(setup, entry):
                yield from self._seeded(setup, entry, settings, self.spec.seeds)
            if entry.more_seeds:
                for settings, _ in self._shown(setup, entry):
                    yield from self._seeded(setup, entry, settings, entry.more_seeds)

    def cells(self) -> list[Cell]:
        """The cells that have at least one run."""
        cells = []
        for setup, entry in product(self.spec.setups, self.spec.entries):
            for settings, value in self._shown(setup, entry):
                seeds = dict.fromkeys([*self.spec.seeds, *entry.more_seeds])
                jobs = self._seeded(setup, entry, settings, seeds)
                found = (self.known.get(job.key) for job in jobs)
                if keys := [run.key for run in found if run and run.score is not None]:
                    cells.append(Cell(setup, entry, settings, value, keys))
        return cells

    def choice(self, setup: Setup, entry: Entry) -> Fields | None:
        """The settings of an entry on a graph; None while, or if, none can be selected."""
        candidates = self._candidates(setup, entry)
        if not entry.grid:
            return candidates[0] if candidates else None
        scores = [self._score(setup, entry, settings) for settings in candidates]
        if not scores or None in scores:
            return None
        best = max(range(len(scores)), key=lambda index: (scores[index], -index))
        return candidates[best] if scores[best] != -math.inf else None  # all of them failed

    def _shown(self, setup: Setup, entry: Entry) -> list[tuple[Fields, Any]]:
        if entry.vary:
            ((name, _),) = entry.vary.items()
            return [(settings, settings[name]) for settings in self._candidates(setup, entry)]
        settings = self.choice(setup, entry)
        return [] if settings is None else [(settings, None)]

    def _candidates(self, setup: Setup, entry: Entry) -> list[Fields]:
        base = dict(self.spec.shared)
        if entry.presets:
            base |= preset_for(setup.dataset, setup.imbalance, setup.fields, entry.name) or {}
        if entry.like:
            other = next(one for one in self.spec.entries if one.label == entry.like)
            selected = self.choice(setup, other)
            if selected is None:
                return []
            base |= selected
        base |= entry.fields
        table = entry.grid or entry.vary
        return [
            {**base, **dict(zip(table, values, strict=True))} for values in product(*table.values())
        ]

    def _score(self, setup: Setup, entry: Entry, settings: Fields) -> float | None:
        """Mean validation score; None while a run is missing, -inf if one failed."""
        jobs = self._seeded(setup, entry, settings, self.spec.seeds)
        if any(job.key not in self.known for job in jobs):
            return None
        scores = [self.known[job.key].score for job in jobs]
        return -math.inf if None in scores else fmean(cast(list[float], scores))

    def _seeded(
        self, setup: Setup, entry: Entry, settings: Fields, seeds: Iterable[int]
    ) -> list[JobSpec]:
        """The same job for several seeds; checking its parameters takes far longer than a key."""
        name = repr((setup, entry.name, sorted(settings.items())))
        if name not in self._templates:
            self._templates[name] = job_spec(setup, entry.name, settings, seed=0)
        return [self._templates[name].with_seed(seed) for seed in seeds]


def known_runs(rows: Iterable[Row]) -> dict[str, Run]:
    """Runs by the key that their job has in this version, with all its parameters.

    A row lists every parameter that there was. One that it lacks came later, and has the value that
    `current_params` gives it, or its default: adding a parameter changes no earlier result.
    """
    current: dict[str, JobSpec] = {}
    known = {}
    for row in rows:
        job = current.get(row.job.stem, row.job)
        kind = METHODS.get(job.method)  # the method of a plugin may not be installed
        if row.job.stem not in current and kind is not None:
            defaults = {item.name: item.default for item in fields(kind)}
            if job.method_fields.get("sound") and "sound" not in defaults:
                continue  # a variant of version 0.2.0, with numbers of its own
            job = replace(job, method_fields=defaults | kind.current_params(job.method_fields))
        current[row.job.stem] = job
        score = float(row.outcome.get("validation", 0)) if row.done else None
        known[job.with_seed(row.job.seed).key] = Run(row.job.key, score)
    return known


def job_spec(setup: Setup, method: str, settings: Fields, seed: int) -> JobSpec:
    """The spec of a run, with every parameter of its method written out."""
    return JobSpec(
        dataset=setup.dataset,
        imbalance=setup.imbalance,
        imbalance_fields=setup.fields,
        method=method,
        method_fields=asdict(METHODS[method](**renamed_params(METHODS[method], settings))),
        seed=seed,
    )


def run_stored(
    specs: Sequence[JobSpec],
    on_row: OnRow,
    *,
    store: Path,
    executor: Executor,
) -> None:
    """Run what a store lacks and no other process is running; `on_row` gets each stored row."""
    journal = StoreJournal(store, executor.device)
    jobs = []
    for spec in specs:
        try:
            jobs.append(resolve(spec))
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            if Store(store).claim([spec]):
                row = journal.row(spec, Failure(reason=reason))
                Store(store).add(row)
                on_row(row)

    replace(executor, journal=journal).execute(
        jobs, lambda job, result: on_row(journal.row(_spec(job), result))
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredJob(Job):
    """A job, and the names and parameters under which a store keeps its result."""

    spec: JobSpec


def resolve(spec: JobSpec) -> StoredJob:
    """Look up what a spec names; equal protocols are one object, so that jobs share splits."""
    return StoredJob(
        label=spec.key,
        graph=NamedGraph(spec.dataset),
        protocol=_protocol(spec.imbalance, tuple(spec.imbalance_fields.items())),
        method=METHODS[spec.method](**METHODS[spec.method].current_params(spec.method_fields)),
        seed=spec.seed,
        spec=spec,
    )


class StoreJournal(Journal):
    """Claims jobs in a store and saves results as rows."""

    def __init__(self, path: Path, device: str) -> None:
        self.path, self.device = path, device

    def claim(self, jobs: Sequence[Job]) -> list[Job]:
        """Take jobs; returns those that are neither done nor taken by another process."""
        keys = {spec.key for spec in Store(self.path).claim([_spec(job) for job in jobs])}
        return [job for job in jobs if _spec(job).key in keys]

    def save(self, job: Job, result: Result) -> None:
        Store(self.path).add(self.row(_spec(job), result))

    def release(self) -> None:
        """Give back jobs that this process took and did not finish."""
        Store(self.path).release()

    def recover(self, job: Job) -> Result | None:
        """Read the result that a worker saved before it died."""
        for row in Store(self.path).rows(key=_spec(job).key):
            if not row.done:
                return Failure(reason=row.reason)
            known = {item.name for item in fields(Record)}  # those of former versions had others
            outcome = {name: value for name, value in row.outcome.items() if name in known}
            return Record(seed=job.seed, history={}, **outcome)
        return None

    def row(self, spec: JobSpec, result: Result) -> Row:
        environment = _environment(self.device)
        if isinstance(result, Failure):
            reason = f"{result.kind}: {result.reason}" if result.kind else result.reason
            return Row(job=spec, status="failed", reason=reason, environment=environment)
        outcome = {n: value for n, value in result.as_dict().items() if n not in NOT_STORED}
        return Row(job=spec, outcome=outcome, environment=environment)


@cache
def _protocol(name: str, params: tuple[tuple[str, Any], ...]) -> SplitProtocol:
    protocol: SplitProtocol = SPLITS[name](**dict(params))
    return protocol


def _spec(job: Job) -> JobSpec:
    assert isinstance(job, StoredJob)
    return job.spec


@cache
def _environment(device: str) -> dict[str, Any]:
    return describe(torch.device(device))
