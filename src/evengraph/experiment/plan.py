"""Plan: which runs an experiment needs, given those that have ended; validation chooses."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from statistics import fmean
from typing import Any

from evengraph.core.store import Job, Row
from evengraph.experiment.presets import preset_for
from evengraph.experiment.spec import Entry, Fields, Setup, Spec, is_range
from evengraph.methods import METHODS

AT_ONCE = 8  # trials of a search that are asked for together


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One place of a table or curve: a set-up, an entry, its settings, and the runs it stands on.

    Args:
        setup: Graph and protocol.
        entry: The method.
        settings: What it was run with; chosen on validation where there was a choice.
        value: Of the field that varies, if one does.
        rows: Runs that have ended well, one for each seed.
    """

    setup: Setup
    entry: Entry
    settings: Fields
    value: Any
    rows: Sequence[Row]


class Plan:
    """An experiment beside what is known of it.

    Args:
        spec: The experiment.
        rows: Runs that have ended, of this experiment or any other.
    """

    def __init__(self, spec: Spec, rows: Iterable[Row]) -> None:
        self.spec = spec
        self.known: Mapping[str, Row] = {row.job.key: row for row in rows}

    def missing(self) -> list[Job]:
        """Runs that have not ended, as far as they can be told now.

        What follows a choice is told once all that is chosen from has ended: run these, make a
        new plan, and go on until nothing is missing.
        """
        found = {job.key: job for job in self.jobs()}
        return [job for key, job in found.items() if key not in self.known]

    def jobs(self) -> Iterator[Job]:
        """All runs, as far as they can be told now."""
        for setup, entry in product(self.spec.setups, self.spec.entries):
            for settings in self._candidates(setup, entry):
                for seed in self.spec.seeds:
                    yield job(setup, entry.method, settings, seed)
            for settings, _ in self._shown(setup, entry):
                for seed in entry.more_seeds:
                    yield job(setup, entry.method, settings, seed)

    def cells(self) -> list[Cell]:
        """What there is to show so far."""
        found = []
        for setup, entry in product(self.spec.setups, self.spec.entries):
            for settings, value in self._shown(setup, entry):
                seeds = dict.fromkeys([*self.spec.seeds, *entry.more_seeds])
                keys = [job(setup, entry.method, settings, seed).key for seed in seeds]
                rows = [self.known[key] for key in keys if key in self.known]
                rows = [row for row in rows if row.done]
                if rows:
                    found.append(
                        Cell(setup=setup, entry=entry, settings=settings, value=value, rows=rows)
                    )
        return found

    def mapped(self) -> Job | None:
        """The run whose embeddings are drawn, once it has ended well."""
        for cell in self.cells():
            if cell.entry.label == self.spec.map and cell.setup is self.spec.setups[0]:
                return cell.rows[0].job
        return None

    def choice(self, setup: Setup, entry: Entry) -> Fields | None:
        """The settings of an entry in a set-up; None while, or if, they cannot be told."""
        candidates = self._candidates(setup, entry)
        if not entry.grid and not entry.search:
            return candidates[0] if candidates else None
        wanted = entry.search.get("trials", 0) if entry.search else len(candidates)
        scores = [self._score(setup, entry, settings) for settings in candidates]
        if not scores or len(scores) < wanted or None in scores:
            return None
        best = max(range(len(scores)), key=lambda place: (scores[place], -place))
        return candidates[best] if scores[best] != -math.inf else None  # all of them failed

    def _shown(self, setup: Setup, entry: Entry) -> list[tuple[Fields, Any]]:
        """Settings that are shown, each with the value that varies."""
        if entry.vary:
            ((name, _),) = entry.vary.items()
            return [(settings, settings[name]) for settings in self._candidates(setup, entry)]
        chosen = self.choice(setup, entry)
        return [] if chosen is None else [(chosen, None)]

    def _candidates(self, setup: Setup, entry: Entry) -> list[Fields]:
        """Every settings to be run; nothing while they cannot be told."""
        base = dict(entry.shared)
        if entry.presets:
            base |= preset_for(setup.dataset, setup.imbalance, setup.fields, entry.method) or {}
        if entry.like:
            other = next(one for one in self.spec.entries if one.label == entry.like)
            chosen = self.choice(setup, other)
            if chosen is None:
                return []
            base |= chosen
        base |= entry.fields
        if entry.search:
            return self._asked(setup, entry, base)
        table = entry.grid or entry.vary
        return [
            {**base, **dict(zip(table, values, strict=True))} for values in product(*table.values())
        ]

    def _score(self, setup: Setup, entry: Entry, settings: Fields) -> float | None:
        """Mean validation score; None while a run is missing, the worst if one failed."""
        keys = [job(setup, entry.method, settings, seed).key for seed in self.spec.seeds]
        if any(key not in self.known for key in keys):
            return None
        rows = [self.known[key] for key in keys]
        if not all(row.done for row in rows):
            return -math.inf
        return fmean(float(row.outcome["validation"]) for row in rows)

    def _asked(self, setup: Setup, entry: Entry, base: Fields) -> list[Fields]:
        """What a search asks for, given what came of its earlier trials.

        The search is gone through from its start each time: it is decided by its name and by
        what its trials gave, and nothing of it needs to be kept.
        """
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        name = f"{self.spec.name} {setup.name} {entry.label}"
        sampler = optuna.samplers.TPESampler(seed=zlib.crc32(name.encode()))
        study = optuna.create_study(direction="maximize", sampler=sampler)
        ranges = {key: value for key, value in entry.search.items() if key != "trials"}
        found: list[Fields] = []
        while len(found) < entry.search["trials"]:
            count = min(AT_ONCE, entry.search["trials"] - len(found))
            trials = [study.ask() for _ in range(count)]
            asked = [
                {**base, **{key: _suggest(trial, key, value) for key, value in ranges.items()}}
                for trial in trials
            ]
            found += asked
            scores = [self._score(setup, entry, settings) for settings in asked]
            if None in scores:
                break
            for trial, score in zip(trials, scores, strict=True):
                study.tell(trial, max(score or 0.0, -1.0))
        return found


def job(setup: Setup, method: str, settings: Fields, seed: int) -> Job:
    """A run, with every field of its method spelt out."""
    return Job(
        dataset=setup.dataset,
        imbalance=setup.imbalance,
        imbalance_fields=setup.fields,
        method=method,
        method_fields=asdict(METHODS[method](**settings)),
        seed=seed,
    )


def _suggest(trial: Any, name: str, allowed: Sequence[Any]) -> Any:
    """A value between two numbers, on a logarithmic scale if so said, or one of a list."""
    log = allowed[-1] == "log"
    ends = allowed[:-1] if log else allowed
    if not is_range(ends):
        return trial.suggest_categorical(name, list(allowed))
    if all(isinstance(one, int) for one in ends):
        return trial.suggest_int(name, *ends, log=log)
    return trial.suggest_float(name, *ends, log=log)
