"""Store of runs: one SQLite file with a row per run, written as soon as the run ends."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any, Literal

SCHEMA = 1
STALE = 24 * 3600.0  # seconds after which a job claimed on another machine may be claimed again

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


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """Everything that defines a run; all parameters are listed, defaults included."""

    dataset: str
    imbalance: str
    imbalance_fields: Mapping[str, Any]
    method: str
    method_fields: Mapping[str, Any]
    seed: int

    @property
    def key(self) -> str:
        """Hash of the job: equal for equal jobs only."""
        parts = [self.dataset, self.imbalance, _sorted(_normalize(self.imbalance_fields))]
        parts += [self.method, _sorted(_normalize(self.method_fields)), str(self.seed)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A finished job with its outcome, or the reason why it failed.

    `outcome` holds the fields of a Record without the history of its epochs.
    """

    job: JobSpec
    status: Literal["done", "failed"] = "done"
    reason: str = ""
    outcome: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""

    @property
    def done(self) -> bool:
        """Whether the run succeeded."""
        return self.status == "done"

    def flat(self) -> dict[str, Any]:
        """One line of a table: names and scalar values, without per-class results."""
        job = self.job
        names = ("validation", "best_epoch", "epochs", "seconds", "memory")
        return {
            "dataset": job.dataset,
            "imbalance": job.imbalance,
            **{f"imbalance.{name}": value for name, value in job.imbalance_fields.items()},
            "method": job.method,
            **{f"method.{name}": value for name, value in job.method_fields.items()},
            "seed": job.seed,
            "status": self.status,
            "reason": self.reason,
            **self.outcome.get("metrics", {}),
            **{name: self.outcome.get(name) for name in names},
            "commit": self.environment.get("commit"),
            "device": self.environment.get("device"),
            "created": self.created,
            "key": job.key,
        }


class Store:
    """Runs and experiments in one SQLite file. Several processes may write at the same time.

    The file is in write-ahead mode: killing a process never leaves a partial row.

    Args:
        path: Path of the file, created if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"Cannot open {self.path}: {error.strerror}.") from None
        with self._open(check=True) as base:
            if base.execute("PRAGMA user_version").fetchone() == (0,):  # reading does not write
                # in one transaction: other processes see all of it or nothing
                base.executescript(
                    f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;"
                )

    @contextmanager
    def _open(self, *, check: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a connection for one transaction; forked processes never share one."""
        try:
            base = sqlite3.connect(self.path, timeout=60)
            try:
                if check:
                    self._check_version(base)  # before anything is written
                base.execute("PRAGMA journal_mode = WAL")
                base.execute("PRAGMA synchronous = NORMAL")
                with base:
                    yield base
            finally:
                base.close()
        except sqlite3.OperationalError as error:
            raise ValueError(f"Cannot open or write {self.path}: {error}.") from None
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} is not an evengraph store: {error}.") from None

    def _check_version(self, base: sqlite3.Connection) -> None:
        """Raise if the file is not a store, or one of another version."""
        # tables first: another process may be creating them together with the version
        (tables,) = base.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (version,) = base.execute("PRAGMA user_version").fetchone()
        if version == 0 and tables:
            raise ValueError(f"{self.path} is not an evengraph store but another SQLite file.")
        if version not in (0, SCHEMA):
            raise ValueError(
                f"{self.path} was written by another version of evengraph "
                f"(format {version}, this version reads {SCHEMA})."
            )

    def add(self, row: Row) -> None:
        """Write a row, replacing that of an earlier attempt at the same job."""
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
            json.dumps(row.outcome),
            _sorted(row.environment),
            row.created or datetime.now(UTC).isoformat(timespec="seconds"),
        )
        marks = ", ".join("?" * len(values))
        with self._open() as base:
            base.execute(f"INSERT OR REPLACE INTO runs VALUES ({marks})", values)
            base.execute("DELETE FROM claims WHERE key = ?", (job.key,))

    def rows(self, **filters: Any) -> list[Row]:
        """Read all rows, or those with these values of `dataset`, `method`, `status` and so on."""
        names = [name for name, value in filters.items() if value is not None]
        condition = " AND ".join(f"{name} = ?" for name in names)
        text = "SELECT * FROM runs" + (f" WHERE {condition}" if names else "") + " ORDER BY rowid"
        with self._open() as base:
            base.row_factory = sqlite3.Row
            rows = base.execute(text, [filters[name] for name in names]).fetchall()
        return [_row(row) for row in rows]

    # Experiments: how rows make up tables and curves. In the file they are called boards and maps.

    def save_experiment(self, name: str, content: Mapping[str, Any]) -> None:
        """Write the results of an experiment, replacing earlier ones."""
        text = "INSERT INTO boards VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET content = ?"
        with self._open() as base:
            base.execute(text, (name, json.dumps(content), json.dumps(content)))

    def experiments(self) -> dict[str, dict[str, Any]]:
        """Read the results of every experiment, by its name."""
        with self._open() as base:
            rows = base.execute("SELECT name, content FROM boards ORDER BY rowid").fetchall()
        return {name: json.loads(content) for name, content in rows}

    def save_tsne(self, key: str, content: Mapping[str, Any]) -> None:
        """Write the t-SNE of the embeddings of a run."""
        with self._open() as base:
            base.execute("INSERT OR REPLACE INTO maps VALUES (?, ?)", (key, json.dumps(content)))

    def tsne(self, key: str) -> dict[str, Any] | None:
        """Read the t-SNE of the embeddings of a run, if one was saved."""
        with self._open() as base:
            row = base.execute("SELECT content FROM maps WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    # Claims: which process works on which job, so that none is run twice.

    def claim(self, jobs: Iterable[JobSpec]) -> list[JobSpec]:
        """Claim the jobs that have no row and no other living process; returns them."""
        me, now = (socket.gethostname(), os.getpid()), time()
        claimed = []
        with self._open() as base:
            base.execute("BEGIN IMMEDIATE")
            for job in jobs:
                if base.execute("SELECT 1 FROM runs WHERE key = ?", (job.key,)).fetchone():
                    continue
                holder = base.execute(
                    "SELECT host, process, seen FROM claims WHERE key = ?", (job.key,)
                ).fetchone()
                if holder is None or holder[:2] == me or _dead(*holder, now=now):
                    base.execute(
                        "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)", (job.key, *me, now)
                    )
                    claimed.append(job)
        return claimed

    def release(self) -> None:
        """Drop the claims of this process on unfinished jobs."""
        with self._open() as base:
            me = socket.gethostname(), os.getpid()
            base.execute("DELETE FROM claims WHERE host = ? AND process = ?", me)

    def running(self) -> int:
        """Number of jobs claimed by living processes."""
        with self._open() as base:
            rows = base.execute("SELECT host, process, seen FROM claims").fetchall()
        return sum(not _dead(*holder, now=time()) for holder in rows)

    def forget(self, status: str) -> int:
        """Delete the rows with a status so that those jobs run again; returns their number."""
        with self._open() as base:
            return base.execute("DELETE FROM runs WHERE status = ?", (status,)).rowcount


def _dead(host: str, process: int, seen: float, *, now: float) -> bool:
    """Whether the process that made a claim has died."""
    if host != socket.gethostname():
        return now - seen > STALE
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # alive, of another user
        return False
    try:  # a zombie: dead, but not yet reaped by its parent
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return False


def _row(values: sqlite3.Row) -> Row:
    columns: dict[str, Any] = dict(values)
    for name in ("imbalance_fields", "method_fields", "outcome", "environment"):
        columns[name] = json.loads(columns[name])
    del columns["key"]
    job = JobSpec(**{column.name: columns.pop(column.name) for column in fields(JobSpec)})
    return Row(job=job, **columns)


def _normalize(params: Mapping[str, Any]) -> dict[str, Any]:
    """Turn integral floats into integers: 1 and 1.0 are the same parameter."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in params.items()
    }


def _sorted(params: Mapping[str, Any]) -> str:
    """JSON with sorted keys, equal for equal parameters."""
    return json.dumps(dict(params), sort_keys=True)
