"""Runs that a store keeps: from a JobSpec to a job, and from a result to a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from evengraph.core.records import Record
from evengraph.core.store import JobSpec, Row, Store
from evengraph.experiment.environment import describe
from evengraph.experiment.executor import Executor, Journal
from evengraph.experiment.jobs import Failure, Job, NamedGraph, Result
from evengraph.methods import METHODS
from evengraph.splits import SPLITS, SplitProtocol

OnRow = Callable[[Row], None]
NOT_STORED = ("history", "seed", "interrupted", "total_epochs", "settings", "calibration")


def run_stored(
    specs: Sequence[JobSpec],
    on_row: OnRow,
    *,
    store: Path,
    executor: Executor,
    root: Path | None = None,
) -> None:
    """Run what a store lacks and no other process is running; `on_row` gets each stored row."""
    journal = StoreJournal(store, executor.device)
    jobs = []
    for spec in specs:
        try:
            jobs.append(resolve(spec, root))
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            if Store(store).claim([spec]):
                row = journal.row(spec, Failure(reason=reason))
                Store(store).add(row)
                on_row(row)

    def on_end(job: Job, result: Result) -> None:
        on_row(journal.row(_spec(job), result))

    replace(executor, journal=journal).execute(jobs, on_end)


def resolve(spec: JobSpec, root: Path | None = None) -> Job:
    """Look up what a spec names; equal protocols are one object, so that jobs share splits."""
    return Job(
        label=spec.key,
        graph=NamedGraph(spec.dataset, root),
        protocol=_protocol(spec.imbalance, tuple(spec.imbalance_fields.items())),
        method=METHODS[spec.method](**spec.method_fields),
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
        """Save a result as a row."""
        Store(self.path).add(self.row(_spec(job), result))

    def release(self) -> None:
        """Give back jobs that this process took and did not finish."""
        Store(self.path).release()

    def recover(self, job: Job) -> Result | None:
        """Read the result that a worker saved before it died."""
        for row in Store(self.path).rows(key=_spec(job).key):
            if not row.done:
                return Failure(reason=row.reason)
            return Record(seed=job.seed, history={}, **row.outcome)
        return None

    def row(self, spec: JobSpec, result: Result) -> Row:
        """The row of a result."""
        environment = _environment(self.device)
        if isinstance(result, Failure):
            reason = f"{result.kind}: {result.reason}" if result.kind else result.reason
            return Row(job=spec, status="failed", reason=reason, environment=environment)
        outcome = {n: value for n, value in result.as_dict().items() if n not in NOT_STORED}
        outcome["memory"] = result.memory
        return Row(job=spec, outcome=outcome, environment=environment)


@cache
def _protocol(name: str, params: tuple[tuple[str, Any], ...]) -> SplitProtocol:
    protocol: SplitProtocol = SPLITS[name](**dict(params))
    return protocol


def _spec(job: Job) -> JobSpec:
    assert job.spec is not None
    return job.spec


@cache
def _environment(device: str) -> dict[str, Any]:
    return describe(torch.device(device))
