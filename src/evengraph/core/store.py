"""Store: one SQLite file with a row for every run, written the moment the run ends."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any, Literal

SCHEMA = 1
STALE = 24 * 3600.0  # seconds after which a run that another machine took may be taken over

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
class Job:
    """One run, as everything that defines it; all fields are spelt out, defaults too."""

    dataset: str
    imbalance: str
    imbalance_fields: Mapping[str, Any]
    method: str
    method_fields: Mapping[str, Any]
    seed: int

    @property
    def key(self) -> str:
        """The same for equal jobs, another for any difference."""
        parts = [self.dataset, self.imbalance, _sorted(_whole(self.imbalance_fields))]
        parts += [self.method, _sorted(_whole(self.method_fields)), str(self.seed)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A job that has ended: what came out, or why nothing did.

    `outcome` holds what a Record does, without the history of its epochs.
    """

    job: Job
    status: Literal["done", "failed"] = "done"
    reason: str = ""
    outcome: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""

    @property
    def done(self) -> bool:
        """Whether there is an outcome."""
        return self.status == "done"

    def flat(self) -> dict[str, Any]:
        """One line of a table: names and figures without anything nested but class by class."""
        job, metrics = self.job, dict(self.outcome.get("metrics", {}))
        plain = {
            name: self.outcome.get(name)
            for name in ("validation", "best_epoch", "epochs", "seconds", "memory")
        }
        return {
            "dataset": job.dataset,
            "imbalance": job.imbalance,
            **{f"imbalance.{name}": value for name, value in job.imbalance_fields.items()},
            "method": job.method,
            **{f"method.{name}": value for name, value in job.method_fields.items()},
            "seed": job.seed,
            "status": self.status,
            "reason": self.reason,
            **metrics,
            **plain,
            "commit": self.environment.get("commit"),
            "device": self.environment.get("device"),
            "created": self.created,
            "key": job.key,
        }


class Store:
    """Rows of runs in one file. Several processes may write at once.

    The file is in SQLite's write-ahead mode: a process that is killed leaves whole rows or none.

    Args:
        path: The file; it is made if there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"Cannot open {self.path}: {error.strerror}.") from None
        with self._open(check=True) as base:
            if base.execute("PRAGMA user_version").fetchone() == (0,):  # who reads leaves no trace
                base.executescript(TABLES)
                base.execute(f"PRAGMA user_version = {SCHEMA}")

    @contextmanager
    def _open(self, *, check: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction; processes that fork do not share any."""
        try:
            base = sqlite3.connect(self.path, timeout=60)
            try:
                if check:
                    self._refuse_others(base)  # before anything is changed in the file
                base.execute("PRAGMA journal_mode = WAL")
                base.execute("PRAGMA synchronous = NORMAL")
                with base:
                    yield base
            finally:
                base.close()
        except sqlite3.OperationalError as error:
            raise ValueError(f"Cannot open or write {self.path}: {error}.") from None
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} is no evengraph store: {error}.") from None

    def _refuse_others(self, base: sqlite3.Connection) -> None:
        """Say of a file that is not ours, or not of this version, that it is not."""
        (version,) = base.execute("PRAGMA user_version").fetchone()
        (tables,) = base.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version == 0 and tables:
            raise ValueError(f"{self.path} is no evengraph store but another program's file.")
        if version not in (0, SCHEMA):
            raise ValueError(
                f"{self.path} was written by another version of evengraph "
                f"(layout {version}, this one reads {SCHEMA}); take another file."
            )

    def add(self, row: Row) -> None:
        """Write a row; it replaces one of the same job, as a second try does."""
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

    def rows(self, **wanted: Any) -> list[Row]:
        """All rows, or those with these values of `dataset`, `method`, `status` and so on."""
        names = [name for name, value in wanted.items() if value is not None]
        condition = " AND ".join(f"{name} = ?" for name in names)
        text = "SELECT * FROM runs" + (f" WHERE {condition}" if names else "") + " ORDER BY rowid"
        with self._open() as base:
            base.row_factory = sqlite3.Row
            found = base.execute(text, [wanted[name] for name in names]).fetchall()
        return [_row(one) for one in found]

    # Boards: how rows make up the tables and curves of an experiment.

    def keep_board(self, name: str, content: Mapping[str, Any]) -> None:
        """Write what an experiment shows; it replaces what it showed before."""
        with self._open() as base:
            values = (name, json.dumps(content))
            text = "INSERT INTO boards VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET content = ?"
            base.execute(text, (*values, values[1]))

    def boards(self) -> dict[str, dict[str, Any]]:
        """What every experiment shows, by its name."""
        with self._open() as base:
            found = base.execute("SELECT name, content FROM boards ORDER BY rowid").fetchall()
        return {name: json.loads(content) for name, content in found}

    def keep_map(self, key: str, content: Mapping[str, Any]) -> None:
        """Write where the nodes of a run lie in a plane."""
        with self._open() as base:
            base.execute("INSERT OR REPLACE INTO maps VALUES (?, ?)", (key, json.dumps(content)))

    def map_of(self, key: str) -> dict[str, Any] | None:
        """Where the nodes of a run lie in a plane, if that was kept."""
        with self._open() as base:
            found = base.execute("SELECT content FROM maps WHERE key = ?", (key,)).fetchone()
        return None if found is None else json.loads(found[0])

    # Claims: who is at work on what, so that two processes do not do the same.

    def claim(self, jobs: Iterable[Job]) -> list[Job]:
        """Take jobs for this process; returns those that are open and no living process has."""
        me, now = (socket.gethostname(), os.getpid()), time()
        taken = []
        with self._open() as base:
            base.execute("BEGIN IMMEDIATE")
            for job in jobs:
                if base.execute("SELECT 1 FROM runs WHERE key = ?", (job.key,)).fetchone():
                    continue
                found = base.execute(
                    "SELECT host, process, seen FROM claims WHERE key = ?", (job.key,)
                ).fetchone()
                if found is None or found[:2] == me or _dead(*found, now=now):
                    base.execute(
                        "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)", (job.key, *me, now)
                    )
                    taken.append(job)
        return taken

    def release(self) -> None:
        """Give back what this process has taken and not finished."""
        with self._open() as base:
            me = socket.gethostname(), os.getpid()
            base.execute("DELETE FROM claims WHERE host = ? AND process = ?", me)

    def abandoned(self) -> set[str]:
        """Keys of jobs that a process took and died over."""
        with self._open() as base:
            found = base.execute("SELECT key, host, process, seen FROM claims").fetchall()
        return {key for key, *holder in found if _dead(*holder, now=time())}

    def running(self) -> int:
        """How many jobs living processes are at."""
        with self._open() as base:
            found = base.execute("SELECT host, process, seen FROM claims").fetchall()
        return sum(not _dead(*holder, now=time()) for holder in found)

    def forget(self, status: str) -> int:
        """Drop rows of a status, to try those jobs again; returns how many there were."""
        with self._open() as base:
            return base.execute("DELETE FROM runs WHERE status = ?", (status,)).rowcount


def _dead(host: str, process: int, seen: float, *, now: float) -> bool:
    """Whether the holder of a claim is gone."""
    if host != socket.gethostname():
        return now - seen > STALE
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # another user's, and alive
        return False
    try:  # dead, though nobody has asked after it yet
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return False


def _row(found: sqlite3.Row) -> Row:
    job = Job(
        dataset=found["dataset"],
        imbalance=found["imbalance"],
        imbalance_fields=json.loads(found["imbalance_fields"]),
        method=found["method"],
        method_fields=json.loads(found["method_fields"]),
        seed=found["seed"],
    )
    return Row(
        job=job,
        status=found["status"],
        reason=found["reason"],
        outcome=json.loads(found["outcome"]),
        environment=json.loads(found["environment"]),
        created=found["created"],
    )


def _whole(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers without a fraction as whole ones: 1 and 1.0 mean the same."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in fields.items()
    }


def _sorted(fields: Mapping[str, Any]) -> str:
    """The same text for equal fields."""
    return json.dumps(dict(fields), sort_keys=True)
