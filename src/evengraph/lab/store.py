"""The store: one SQLite file with the runs of experiments, and who works on which of them."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from sys import intern
from time import time
from typing import Any, Literal, NamedTuple

import psutil

from evengraph.core.errors import one_line_errors
from evengraph.core.files import SqliteFile

SCHEMA = 1
STALE = 24 * 3600.0  # seconds after which a job claimed on another machine may be claimed again
CLOCK = 5.0  # seconds by which the clock may have been set forward between two looks at it

TABLES = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    imbalance TEXT NOT NULL,
    imbalance_fields TEXT NOT NULL,
    method TEXT NOT NULL,
    method_fields TEXT NOT NULL,
    seed INTEGER NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    outcome TEXT NOT NULL,
    environment TEXT NOT NULL,
    created TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS boards (
    name TEXT PRIMARY KEY,
    content TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS maps (
    key TEXT PRIMARY KEY,
    content TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS claims (
    key TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    process INTEGER NOT NULL,
    seen REAL NOT NULL
);
"""

FORMER = ("boot TEXT NOT NULL DEFAULT ''", "started TEXT NOT NULL DEFAULT ''")  # in claims of 0.2.0


# Jobs and rows.


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """Everything that defines a run; all parameters are listed, defaults included."""

    dataset: str
    imbalance: str
    imbalance_fields: Mapping[str, Any]
    method: str
    method_fields: Mapping[str, Any]
    seed: int

    @cached_property
    def stem(self) -> str:
        parts = [self.dataset, self.imbalance, _sorted(_normalize(self.imbalance_fields))]
        return "\n".join([*parts, self.method, _sorted(_normalize(self.method_fields))])

    @cached_property
    def key(self) -> str:
        """Hash of the job: equal for equal jobs only."""
        return hashlib.sha256(f"{self.stem}\n{self.seed}".encode()).hexdigest()[:20]

    def with_seed(self, seed: int) -> JobSpec:
        """The same job with another seed; much faster than a new job."""
        job, put = object.__new__(JobSpec), object.__setattr__
        for name in _JOB_FIELDS[:-1]:  # in one order for all: they then share their names
            put(job, name, getattr(self, name))
        put(job, "seed", seed)
        put(job, "stem", self.stem)
        return job


_JOB_FIELDS = tuple(item.name for item in fields(JobSpec))
_COLUMNS = ", ".join(("key", *_JOB_FIELDS, "status", "reason", "outcome", "environment", "created"))


@dataclass(frozen=True, kw_only=True)
class Row:
    """A finished job with its outcome, or the reason why it failed."""

    job: JobSpec
    status: Literal["done", "failed"] = "done"
    reason: str = ""
    outcome: Mapping[str, Any] = field(default_factory=dict)  # a Record without its epochs
    environment: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""

    @property
    def done(self) -> bool:
        return self.status == "done"

    def flat(self) -> dict[str, Any]:
        """One line of a table: names and scalar values, without per-class results."""
        job, outcome = self.job, dict(self.outcome.items())
        names = ("validation", "best_epoch", "epochs", "seconds")
        return {
            "dataset": job.dataset,
            "imbalance": job.imbalance,
            **{f"imbalance.{name}": value for name, value in job.imbalance_fields.items()},
            "method": job.method,
            **{f"method.{name}": value for name, value in job.method_fields.items()},
            "seed": job.seed,
            "status": self.status,
            "reason": self.reason,
            **outcome.get("metrics", {}),
            **{name: outcome.get(name) for name in names},
            **{name: self.environment.get(name) for name in ("commit", "device")},
            "created": self.created,
            "key": job.key,
        }


def _normalize(params: Mapping[str, Any]) -> dict[str, Any]:
    """Turn integral floats into integers: 1 and 1.0 are the same parameter."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in params.items()
    }


def _sorted(params: Mapping[str, Any]) -> str:
    return json.dumps(dict(params), sort_keys=True)


# What comes from a file.


class DamagedRowError(ValueError):
    """A row that is not as it was written."""


class _LazyOutcome(Mapping[str, Any]):
    """An outcome as text, parsed at each use: a tenth of the memory."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def _content(self) -> dict[str, Any]:
        return json.loads(self.text)  # type: ignore[no-any-return]

    def __getitem__(self, name: str) -> Any:
        return self._content()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content())

    def __len__(self) -> int:
        return len(self._content())

    def items(self) -> Any:
        """All parts, parsed once."""
        return self._content().items()


class _RowReader:
    """Rows from columns. Jobs and environments that recur are parsed once."""

    def __init__(self, parts: Sequence[str] = ()) -> None:
        self.parts = parts
        self._jobs: dict[tuple[Any, ...], JobSpec] = {}
        self._environments: dict[Any, Mapping[str, Any]] = {}

    def read(self, columns: Sequence[Any]) -> Row:
        """One row from its `_COLUMNS`; raises DamagedRowError."""
        _, *stem, seed, status, reason, text, environment, created = columns
        done, content = status == "done", _parsed("outcome", text)
        if status not in ("done", "failed"):
            raise DamagedRowError("status is neither done nor failed")
        if done and not isinstance(content.get("metrics"), dict):
            raise DamagedRowError("outcome has no metrics")
        if done and not isinstance(content.get("validation"), int | float):
            raise DamagedRowError("outcome has no validation score")
        if self.parts:
            text = json.dumps({n: content[n] for n in self.parts if content.get(n) is not None})
        if (key := tuple(stem)) not in self._jobs:
            values = {n: _check(n, part, str) for n, part in zip(_JOB_FIELDS, key, strict=False)}
            for name in ("imbalance_fields", "method_fields"):
                values[name] = _parsed(name, values[name])
            self._jobs[key] = JobSpec(**values, seed=0)
        if environment not in self._environments:
            self._environments[environment] = _parsed("environment", environment)
        return Row(
            job=self._jobs[key].with_seed(_check("seed", seed, int)),
            status="done" if done else "failed",  # not one string per row
            reason=_check("reason", reason, str),
            outcome=_LazyOutcome(text),
            environment=self._environments[environment],
            created=intern(_check("created", created, str)),
        )


def _check(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        what = "no UTF-8 text" if isinstance(value, bytes) else f"{value!r:.30}"
        raise DamagedRowError(f"{name} is {what}")
    return value


def _parsed(name: str, text: Any) -> dict[str, Any]:
    text = _check(name, text, str)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise DamagedRowError(f"{name} is not JSON") from None
    if not isinstance(value, dict):
        raise DamagedRowError(f"{name} is not a JSON object")
    return value


# Processes.


class Claimant(NamedTuple):
    """A process that works on jobs."""

    host: str
    process: int

    def alive(self, *, seen: float, now: float) -> bool:
        """Whether the process that made a claim at the time `seen` may still work on it."""
        known = isinstance(self.process, int) and 0 < self.process < 2**31  # others are groups
        if not known or not isinstance(seen, int | float):
            return False  # the claim is damaged
        if self.host != socket.gethostname():
            return abs(now - seen) <= STALE  # a time in the future is that of a wrong clock
        try:
            process = psutil.Process(self.process)
            if process.create_time() > seen + CLOCK:
                return False  # the number was used again
            return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:  # alive, of another user
            return True


class Holder(NamedTuple):
    """A living process and what it holds."""

    claimant: Claimant
    seen: float  # time of its latest claim
    jobs: int


def this_process() -> Claimant:
    return Claimant(socket.gethostname(), os.getpid())


class Store:
    """Runs and experiments in one SQLite file, created if there is none.

    Several processes may write at the same time, and killing one never leaves a partial row.
    """

    @one_line_errors()
    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._damage: dict[str, None] = {}
        self._file = SqliteFile(self.path, "evengraph store")
        self._file.prepare(TABLES, SCHEMA, main="runs", later=FORMER)

    @property
    def damage(self) -> list[str]:
        """One sentence for each damaged row or experiment that reading left out."""
        return list(self._damage)

    # Rows.

    def add(self, *rows: Row) -> None:
        """Write rows in one transaction, replacing those of earlier attempts at the same jobs."""
        with self._file.write() as base:
            for row in rows:
                job = row.job
                values = (
                    job.key,
                    job.dataset,
                    job.imbalance,
                    _sorted(job.imbalance_fields),
                    job.method,
                    _sorted(job.method_fields),
                    job.seed,
                    row.status,
                    row.reason,
                    json.dumps(dict(row.outcome)),
                    _sorted(row.environment),
                    row.created or datetime.now(UTC).isoformat(timespec="seconds"),
                )
                marks = ", ".join("?" * len(values))
                base.execute(f"INSERT OR REPLACE INTO runs VALUES ({marks})", values)
                base.execute("DELETE FROM claims WHERE key = ?", values[:1])

    def rows(self, *, parts: Sequence[str] = (), **filters: Any) -> list[Row]:
        """Read all rows, or those with these values of `dataset`, `method`, `status` and so on.

        A filter is a value or several. With `parts`, the names of some parts of the outcome, many
        rows need little memory.
        """
        return list(self.scan(parts=parts, **filters))

    def scan(self, *, parts: Sequence[str] = (), **filters: Any) -> Iterator[Row]:
        """Read rows one by one, as `rows` does; damaged ones are left out, and told in `damage`."""
        wanted = {name: value for name, value in filters.items() if value is not None}
        lists = [[v] if isinstance(v, str | int) else list(v) for v in wanted.values()]
        reader = _RowReader(parts)
        where = " AND ".join(f"{name} IN (SELECT value FROM json_each(?))" for name in wanted)
        with self._file.read() as base:
            query = f"SELECT {_COLUMNS} FROM runs WHERE {where or 1} ORDER BY rowid"
            for columns in base.execute(query, [json.dumps(some) for some in lists]):
                row = self._row(columns, reader)
                if row is not None:
                    yield row

    def _row(self, columns: Sequence[Any], reader: _RowReader) -> Row | None:
        try:
            return reader.read(columns)
        except DamagedRowError as error:
            self._damage[f"Row {columns[0]!s:.40} of {self.path} is damaged: {error}."] = None
            return None

    def count(self) -> int:
        with self._file.read() as base:
            (count,) = base.execute("SELECT count(key) FROM runs").fetchone()
        return int(count)

    def forget(self, status: str) -> int:
        """Delete the rows with a status so that those jobs run again; returns their number."""
        with self._file.write() as base:
            return base.execute("DELETE FROM runs WHERE status = ?", (status,)).rowcount

    # Experiments: how rows make up tables and curves. In the file they are called boards; maps are
    # those of version 0.2.

    def save_experiment(self, name: str, content: Mapping[str, Any]) -> None:
        """Write the results of an experiment, replacing earlier ones."""
        text = "INSERT INTO boards VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET content = ?"
        with self._file.write() as base:
            base.execute(text, (name, json.dumps(content), json.dumps(content)))

    def experiments(self) -> dict[str, dict[str, Any]]:
        """Read the results of every experiment, by its name."""
        with self._file.read() as base:
            rows = base.execute("SELECT name, content FROM boards ORDER BY rowid").fetchall()
        found = {}
        for name, text in rows:
            try:
                content = json.loads(text)
            except (TypeError, ValueError, RecursionError):
                content = None
            if isinstance(content, dict):
                found[str(name)] = content
            else:
                self._damage[f"Experiment {name!s:.40} of {self.path} is damaged: not JSON."] = None
        return found

    # Claims: which process works on which job, so that none is run twice.

    def claim(self, jobs: Iterable[JobSpec]) -> list[JobSpec]:
        """Claim the jobs that have no row and no other living process; returns them."""
        me, now = this_process(), time()
        claimed = []
        with self._file.write() as base:
            base.execute("BEGIN IMMEDIATE")
            for job in jobs:
                query = f"SELECT {_COLUMNS} FROM runs WHERE key = ?"
                columns = base.execute(query, (job.key,)).fetchone()
                if columns is not None and self._row(columns, _RowReader()) is not None:
                    continue  # a damaged row is run again
                query = "SELECT host, process, seen FROM claims WHERE key = ?"
                *holder, seen = base.execute(query, (job.key,)).fetchone() or (*me, now)
                if Claimant(*holder) == me or not Claimant(*holder).alive(seen=seen, now=now):
                    query = "INSERT OR REPLACE INTO claims (key, host, process, seen)"
                    base.execute(f"{query} VALUES (?, ?, ?, ?)", (job.key, *me, now))
                    claimed.append(job)
        return claimed

    def release(self, *, all_processes: bool = False) -> int:
        """Drop the claims of this process, or of all, on unfinished jobs; returns their number."""
        with self._file.write() as base:
            if all_processes:
                return base.execute("DELETE FROM claims").rowcount
            mine = "DELETE FROM claims WHERE host = ? AND process = ?"
            return base.execute(mine, this_process()).rowcount

    def holders(self) -> list[Holder]:
        """The living processes that have claimed jobs."""
        with self._file.read() as base:
            rows = base.execute("SELECT host, process, seen FROM claims").fetchall()
        claims: dict[Claimant, list[float]] = {}
        for host, process, seen in rows:
            if Claimant(host, process).alive(seen=seen, now=time()):
                claims.setdefault(Claimant(host, process), []).append(seen)
        return [Holder(claimant, max(seen), len(seen)) for claimant, seen in claims.items()]
