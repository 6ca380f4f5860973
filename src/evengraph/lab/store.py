"""SQL of the store: its tables, and the queries that read them."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from sys import intern
from time import time
from typing import Any, Literal, NamedTuple

from evengraph.core.errors import one_line_errors
from evengraph.core.files import SqliteFile, columns_of

SCHEMA = 1

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
    seen REAL NOT NULL,
    boot TEXT NOT NULL DEFAULT '',
    started TEXT NOT NULL DEFAULT ''
);
"""


# Python writes NaN and Infinity, which SQLite cannot read
WITHOUT_NAN = """CASE WHEN json_valid(outcome) THEN outcome ELSE
replace(replace(replace(outcome, '-Infinity', 'null'), 'Infinity', 'null'), 'NaN', 'null') END"""


def _whole(outcome: str, number: str) -> str:
    """Condition that SQLite can read an outcome, and that it has what a run that is done has."""
    parts = f"(status <> 'done' OR (json_type({outcome}, '$.metrics') = 'object' AND {number}))"
    return (
        f"CASE WHEN json_valid({outcome}) THEN json_type({outcome}) = 'object' AND {parts} "
        "ELSE 0 END"
    )


WHOLE = _whole("outcome", "json_type(outcome, '$.validation') IN ('integer', 'real')")
WHOLE_TEXT = _whole(
    "text",
    "(json_type(text, '$.validation') IN ('integer', 'real') "
    "OR (has_nan AND json_type(text, '$.validation') = 'null'))",
)


def _expected_columns() -> dict[str, tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as base:
        base.executescript(TABLES)
        return columns_of(base)


COLUMNS = _expected_columns()
ADDED = {"claims": COLUMNS["claims"][4:]}  # columns that stores of earlier versions lack


def is_part_of_store(tables: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a file has tables of a store only, perhaps of an earlier version."""
    for name, columns in tables.items():
        expected = COLUMNS.get(name, ())
        before = tuple(column for column in expected if column not in ADDED.get(name, ()))
        if columns not in (expected, before):
            return False
    return True


def add_columns(base: sqlite3.Connection) -> None:
    """Give a store of an earlier version the columns that it lacks."""
    tables = columns_of(base)
    for table, names in ADDED.items():
        for name in names:
            if name not in tables[table]:
                base.execute(f"ALTER TABLE {table} ADD COLUMN {name} TEXT NOT NULL DEFAULT ''")


def condition(filters: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """A condition on columns, and its values; None stands for any."""
    wanted = {name: value for name, value in filters.items() if value is not None}
    return " AND ".join(f"{name} = ?" for name in wanted) or "1", list(wanted.values())


def select_rows(where: str, parts: Sequence[str] = ()) -> str:
    """All columns of rows with the outcome last, and whether SQLite finds it whole.

    With parts, the outcome is a list of these, unless it is not whole.
    """
    outcome = "outcome"
    if parts:
        # twice the first: two or more paths give a list, with every number as it was written
        paths = ", ".join(f"'$.{name}'" for name in (*parts, parts[0]))
        outcome = f"CASE WHEN {WHOLE} THEN json_extract(outcome, {paths}) ELSE outcome END"
    names = [name for name in COLUMNS["runs"] if name != "outcome"]
    columns = ", ".join([*names, outcome, WHOLE])
    return f"SELECT {columns} FROM runs WHERE {where} ORDER BY rowid"


def select_values(paths: Sequence[str]) -> str:
    """Key and status of every row that can be read, and values in its outcome."""
    values = [f"json_extract(text, '$.{path}')" for path in paths]
    columns = ", ".join(["key", "status", *values])
    return f"SELECT {columns} FROM ({_texts('key', '1')}) WHERE {WHOLE_TEXT}"


def _texts(columns: str, where: str) -> str:
    """Columns of rows, with their outcomes as JSON that SQLite can read, if they are JSON."""
    return (
        f"SELECT rowid AS number, {columns}, status, {WITHOUT_NAN} AS text, "
        "NOT json_valid(outcome) AS has_nan "
        f"FROM runs WHERE {where} AND status IN ('done', 'failed') LIMIT -1"
    )


def select_groups(where: str, paths: Sequence[str]) -> str:
    """Setting, method, runs, failed runs, settings tried, and the mean of each value of outcomes.

    A mean is NULL unless every run that is done has a value.
    """
    names = "dataset, imbalance, imbalance_fields, method"
    values = ", ".join(f"json_extract(text, '$.{path}') AS v{n}" for n, path in enumerate(paths))
    means = ", ".join(
        f"CASE WHEN count(v{n}) = sum(status = 'done') THEN avg(v{n}) END"
        for n in range(len(paths))
    )
    # a LIMIT keeps SQLite from merging the queries, and from computing a value for each of its uses
    rows = (
        f"SELECT number, {names}, method_fields, status, {values} "
        f"FROM ({_texts(f'{names}, method_fields', where)}) WHERE {WHOLE_TEXT} LIMIT -1"
    )
    return (
        f"SELECT {names}, count(*), sum(status = 'failed'), count(DISTINCT method_fields), {means} "
        f"FROM ({rows}) GROUP BY {names} ORDER BY min(number)"
    )


STATUSES = ("done", "failed")


class DamagedRowError(ValueError):
    """A row that is not as it was written."""


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
        """The job without its seed, as text."""
        parts = [self.dataset, self.imbalance, _sorted(_normalize(self.imbalance_fields))]
        return "\n".join([*parts, self.method, _sorted(_normalize(self.method_fields))])

    @cached_property
    def key(self) -> str:
        """Hash of the job: equal for equal jobs only."""
        return hashlib.sha256(f"{self.stem}\n{self.seed}".encode()).hexdigest()[:20]

    def with_seed(self, seed: int) -> JobSpec:
        """The same job with another seed; much faster than a new job."""
        job, put = object.__new__(JobSpec), object.__setattr__
        put(job, "dataset", self.dataset)  # in one order for all: they then share their names
        put(job, "imbalance", self.imbalance)
        put(job, "imbalance_fields", self.imbalance_fields)
        put(job, "method", self.method)
        put(job, "method_fields", self.method_fields)
        put(job, "seed", seed)
        put(job, "stem", self.stem)
        return job


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
        job, outcome = self.job, dict(self.outcome.items())
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
            **outcome.get("metrics", {}),
            **{name: outcome.get(name) for name in names},
            "commit": self.environment.get("commit"),
            "device": self.environment.get("device"),
            "created": self.created,
            "key": job.key,
        }

    def columns(self) -> tuple[Any, ...]:
        """The row as the table `runs` holds it."""
        job = self.job
        return (
            job.key,
            job.dataset,
            job.imbalance,
            _sorted(job.imbalance_fields),
            job.method,
            _sorted(job.method_fields),
            job.seed,
            self.status,
            self.reason,
            json.dumps(dict(self.outcome)),
            _sorted(self.environment),
            self.created or datetime.now(UTC).isoformat(timespec="seconds"),
        )


class LazyOutcome(Mapping[str, Any]):
    """An outcome as text, parsed at each use: a tenth of the memory."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.text)
        return content

    def __getitem__(self, name: str) -> Any:
        return self._content()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content())

    def __len__(self) -> int:
        return len(self._content())

    def items(self) -> Any:
        """All parts, parsed once."""
        return self._content().items()

    def __repr__(self) -> str:
        return repr(self._content())


class LazyParts(LazyOutcome):
    """Some parts of an outcome, as a list in JSON that begins with their values."""

    __slots__ = ("parts",)

    def __init__(self, text: str, parts: Sequence[str]) -> None:
        super().__init__(text)
        self.parts = parts

    def _content(self) -> dict[str, Any]:
        values = zip(self.parts, json.loads(self.text), strict=False)
        return {name: value for name, value in values if value is not None}


class RowReader:
    """Rows from columns. Jobs and environments that recur are parsed once."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[Any, ...], JobSpec] = {}
        self._environments: dict[Any, Mapping[str, Any]] = {}

    def read(self, columns: Sequence[Any], outcome: Mapping[str, Any]) -> Row:
        """One row from the columns of the table but the outcome; raises DamagedRowError."""
        _, *stem, seed, status, reason, environment, created = columns
        if status not in STATUSES:
            raise DamagedRowError("status is neither done nor failed")
        job = self._jobs.get(key := tuple(stem)) or self._new_job(key)
        if environment not in self._environments:
            self._environments[environment] = _parsed("environment", environment)
        return Row(
            job=job.with_seed(_check("seed", seed, int)),
            status="done" if status == "done" else "failed",  # not one string per row
            reason=_check("reason", reason, str),
            outcome=outcome,
            environment=self._environments[environment],
            created=intern(_check("created", created, str)),
        )

    def _new_job(self, stem: tuple[Any, ...]) -> JobSpec:
        names = [item.name for item in fields(JobSpec)]
        values = {name: _check(name, text, str) for name, text in zip(names, stem, strict=False)}
        for name in ("imbalance_fields", "method_fields"):
            values[name] = _parsed(name, values[name])
        self._jobs[stem] = JobSpec(**values, seed=0)
        return self._jobs[stem]


def read_setting(dataset: Any, imbalance: Any, fields: Any, method: Any) -> dict[str, Any]:
    """The parameters of the protocol of a setting; raises DamagedRowError if a part is no text."""
    for name, value in {"dataset": dataset, "imbalance": imbalance, "method": method}.items():
        _check(name, value, str)
    return _parsed("imbalance_fields", fields)


def check_outcome(text: Any, *, done: bool) -> None:
    """Raise DamagedRowError for an outcome that is not as it was written."""
    outcome = _parsed("outcome", text)
    if done and not isinstance(outcome.get("metrics"), dict):
        raise DamagedRowError("outcome has no metrics")
    if done and not isinstance(outcome.get("validation"), int | float):
        raise DamagedRowError("outcome has no validation score")


def part_of_outcome(text: str, parts: Sequence[str], *, whole: bool) -> Mapping[str, Any]:
    """Some parts of an outcome, without those it lacks.

    Args:
        text: A JSON list that begins with their values if `whole`, else all of the outcome.
        parts: Their names.
        whole: Whether the database could extract them; it cannot read NaN.
    """
    if whole:
        return LazyParts(text, parts)
    content = json.loads(text)
    return {name: content[name] for name in parts if content.get(name) is not None}


def _check(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise DamagedRowError(f"{name} is {_what(value)}")
    return value


def _what(value: Any) -> str:
    return "no UTF-8 text" if isinstance(value, bytes) else f"{value!r:.30}"


def _parsed(name: str, text: Any) -> dict[str, Any]:
    try:
        value = json.loads(_check(name, text, str))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DamagedRowError):
            raise
        raise DamagedRowError(f"{name} is not JSON") from None
    if not isinstance(value, dict):
        raise DamagedRowError(f"{name} is not a JSON object")
    return value


def _normalize(params: Mapping[str, Any]) -> dict[str, Any]:
    """Turn integral floats into integers: 1 and 1.0 are the same parameter."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in params.items()
    }


def _sorted(params: Mapping[str, Any]) -> str:
    """JSON with sorted keys, equal for equal parameters."""
    return json.dumps(dict(params), sort_keys=True)


STALE = 24 * 3600.0  # seconds after which a job claimed on another machine may be claimed again


class Claimant(NamedTuple):
    """A process that works on jobs.

    A process id is used again after a while, and after every start of the machine. The time at
    which the process started and the id of the boot tell the two apart; empty where unknown.
    """

    host: str
    process: int
    boot: str = ""
    started: str = ""

    def alive(self, *, seen: float, now: float) -> bool:
        """Whether the process that made a claim at the time `seen` may still work on it."""
        if not isinstance(seen, int | float) or not _is_process_id(self.process):
            return False  # the claim is damaged
        if self.host != socket.gethostname():
            return abs(now - seen) <= STALE  # a time in the future is that of a wrong clock
        boot = boot_id()
        if self.boot and boot and self.boot != boot:
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # alive, of another user
            pass
        state, started = _state(self.process)
        if state in ("Z", "X"):  # dead, but not yet reaped by its parent
            return False
        return not (self.started and started) or self.started == started


def _is_process_id(value: object) -> bool:
    """Whether it is the id of one process; 0 and negative numbers stand for groups of them."""
    return isinstance(value, int) and 0 < value < 2**31


class Holder(NamedTuple):
    """A living process and what it holds."""

    claimant: Claimant
    seen: float  # time of its latest claim
    jobs: int


def this_process() -> Claimant:
    """The calling process."""
    return Claimant(socket.gethostname(), os.getpid(), boot_id(), _state(os.getpid())[1])


@cache
def boot_id() -> str:
    """Differs after every start of the machine; empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _state(process: int) -> tuple[str, str]:
    """State of a process and when it started, in ticks since the boot; empty if unknown."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return "", ""
    parts = text.rpartition(")")[2].split()  # the name of the program may hold spaces
    return parts[0], parts[19]


MAGIC = b"SQLite format 3\0"  # the first bytes of every database


class RunGroup(NamedTuple):
    """Runs of one method in one setting."""

    dataset: str
    imbalance: str
    imbalance_fields: Mapping[str, Any]
    method: str
    runs: int
    failed: int
    means: Sequence[float | None]  # None if a run that is done has no such value
    settings: int = 1  # parameters of the method that were tried, such as those of a grid

    def joined(self, other: RunGroup) -> RunGroup:
        """Both groups as one."""
        done, more = self.runs - self.failed, other.runs - other.failed
        pairs = zip(self.means, other.means, strict=True)
        return self._replace(
            runs=self.runs + other.runs,
            failed=self.failed + other.failed,
            means=[_joint_mean(one, done, two, more) for one, two in pairs],
            settings=max(self.settings, other.settings),
        )


class Store:
    """Runs and experiments in one SQLite file. Several processes may write at the same time.

    The file is in write-ahead mode: killing a process never leaves a partial row.

    Args:
        path: Path of the file, created if it does not exist.

    Attributes:
        damage: One sentence for each damaged row or experiment that reading left out.
    """

    @one_line_errors()
    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._damage: dict[str, None] = {}
        self._file = SqliteFile(self.path, "evengraph store")
        self._check_file()
        with self._read() as base:
            complete = self._check(base)
        if not complete:
            self._file.create(f"{TABLES} PRAGMA user_version = {SCHEMA};")

    @property
    def damage(self) -> list[str]:
        """What reading left out."""
        return list(self._damage)

    def _write(self) -> AbstractContextManager[sqlite3.Connection]:
        return self._file.write()

    def _read(self) -> AbstractContextManager[sqlite3.Connection]:
        return self._file.read()

    def _check_file(self) -> None:
        """Raise for another program's file: SQLite takes a short one for empty, and replaces it."""
        try:
            with self.path.open("rb") as file:
                start = file.read(len(MAGIC))
        except OSError:  # there is none, or SQLite tells why it cannot be read
            return
        if start not in (b"", MAGIC):
            raise ValueError(f"{self.path} is not an evengraph store: file is not a database.")

    def _check(self, base: sqlite3.Connection) -> bool:
        """Whether the file is a complete store; raises if it is none, or of another version."""
        # tables first: another process may be creating them together with the version
        tables = columns_of(base)
        (version,) = base.execute("PRAGMA user_version").fetchone()
        if version not in (0, SCHEMA):
            raise ValueError(
                f"{self.path} was written by another version of evengraph "
                f"(format {version}, this version reads {SCHEMA})."
            )
        # earlier versions could be killed between two tables
        ours = "runs" in columns_of(base) if version else is_part_of_store(tables)
        if not ours:
            raise ValueError(f"{self.path} is not an evengraph store but another SQLite file.")
        return bool(version == SCHEMA)

    # Rows.

    def add(self, *rows: Row) -> None:
        """Write rows in one transaction, replacing those of earlier attempts at the same jobs."""
        with self._write() as base:
            for row in rows:
                values = row.columns()
                marks = ", ".join("?" * len(values))
                base.execute(f"INSERT OR REPLACE INTO runs VALUES ({marks})", values)
                base.execute("DELETE FROM claims WHERE key = ?", values[:1])

    def rows(self, *, parts: Sequence[str] = (), **filters: Any) -> list[Row]:
        """Read all rows, or those with these values of `dataset`, `method`, `status` and so on.

        Args:
            parts: Names of the parts of the outcome that are needed, by default all; with few of
                them, many rows need little memory.
            filters: Values by the names of columns; None stands for any.
        """
        return list(self.scan(parts=parts, **filters))

    def scan(self, *, parts: Sequence[str] = (), **filters: Any) -> Iterator[Row]:
        """Read rows one by one, as `rows` does; damaged ones are left out, and told in `damage`."""
        where, values = condition(filters)
        yield from self._scan(where, values, parts)

    def _scan(self, where: str, values: Sequence[Any], parts: Sequence[str] = ()) -> Iterator[Row]:
        reader = RowReader()
        with self._read() as base:
            for columns in base.execute(select_rows(where, parts), values):
                row = self._row(columns, reader, parts)
                if row is not None:
                    yield row

    def groups(self, paths: Sequence[str], **filters: Any) -> list[RunGroup]:
        """Numbers of runs and means of values, by setting and method.

        Args:
            paths: Values in the outcome, such as `metrics.macro_f1`.
            filters: As in `rows`.
        """
        where, values = condition(filters)
        with self._read() as base:
            rows = base.execute(select_groups(where, paths), values).fetchall()
            (count,) = base.execute(f"SELECT count(*) FROM runs WHERE {where}", values).fetchone()
        if sum(row[4] for row in rows) < count:
            damaged = f"{where} AND (status NOT IN ('done', 'failed') OR NOT {WHOLE})"
            for _ in self._scan(damaged, values):
                pass  # tells damaged rows
        groups = []
        for dataset, imbalance, stored, method, runs, failed, settings, *means in rows:
            try:
                setting = read_setting(dataset, imbalance, stored, method)
            except DamagedRowError as error:
                self._damage[f"{runs} rows of {self.path} are damaged: {error}."] = None
                continue
            group = RunGroup(dataset, imbalance, setting, method, runs, failed, means, settings)
            groups.append(group)
        return groups

    def values(self, paths: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        """Status and values in the outcome of every row that can be read, by key.

        Much faster than rows, which it does not make.

        Args:
            paths: As in `groups`. What an outcome lacks, or NaN, is None.
        """
        with self._read() as base:
            return {row[0]: row[1:] for row in base.execute(select_values(paths))}

    def outcomes(self, keys: Iterable[str]) -> list[Mapping[str, Any]]:
        """The whole outcomes of rows."""
        with self._read() as base:
            query = "SELECT outcome FROM runs WHERE key = ?"
            texts = [base.execute(query, (key,)).fetchone() for key in keys]
        return [json.loads(text[0]) for text in texts if text is not None]

    def count(self) -> int:
        """Number of rows."""
        with self._read() as base:
            (count,) = base.execute("SELECT count(*) FROM runs").fetchone()
        return int(count)

    def _row(self, columns: Sequence[Any], reader: RowReader, parts: Sequence[str]) -> Row | None:
        *columns, text, whole = columns
        try:
            if not whole or not isinstance(text, str):  # SQLite takes bytes for JSON
                check_outcome(text, done=columns[7] == "done")
            outcome = part_of_outcome(text, parts, whole=whole) if parts else LazyOutcome(text)
            return reader.read(columns, outcome)
        except DamagedRowError as error:
            self._damage[f"Row {columns[0]!s:.40} of {self.path} is damaged: {error}."] = None
            return None

    # Experiments: how rows make up tables and curves. In the file they are called boards and maps.

    def save_experiment(self, name: str, content: Mapping[str, Any]) -> None:
        """Write the results of an experiment, replacing earlier ones."""
        text = "INSERT INTO boards VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET content = ?"
        with self._write() as base:
            base.execute(text, (name, json.dumps(content), json.dumps(content)))

    def experiments(self) -> dict[str, dict[str, Any]]:
        """Read the results of every experiment, by its name."""
        with self._read() as base:
            rows = base.execute("SELECT name, content FROM boards ORDER BY rowid").fetchall()
        experiments = {str(name): self._content(name, content) for name, content in rows}
        return {name: content for name, content in experiments.items() if content is not None}

    def save_tsne(self, key: str, content: Mapping[str, Any]) -> None:
        """Write the t-SNE of the embeddings of a run."""
        with self._write() as base:
            base.execute("INSERT OR REPLACE INTO maps VALUES (?, ?)", (key, json.dumps(content)))

    def tsne(self, key: str) -> dict[str, Any] | None:
        """Read the t-SNE of the embeddings of a run, if one was saved."""
        with self._read() as base:
            row = base.execute("SELECT content FROM maps WHERE key = ?", (key,)).fetchone()
        return None if row is None else self._content(f"t-SNE {key}", row[0])

    def _content(self, name: Any, text: Any) -> dict[str, Any] | None:
        try:
            content = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            content = None
        if isinstance(content, dict):
            return content
        self._damage[f"Experiment {name!s:.40} of {self.path} is damaged: not JSON."] = None
        return None

    # Claims: which process works on which job, so that none is run twice.

    def claim(self, jobs: Iterable[JobSpec]) -> list[JobSpec]:
        """Claim the jobs that have no row and no other living process; returns them."""
        me, now = this_process(), time()
        claimed = []
        with self._write() as base:
            base.execute("BEGIN IMMEDIATE")
            add_columns(base)
            for job in jobs:
                if self._has(base, job):
                    continue
                holder = base.execute(
                    "SELECT host, process, boot, started, seen FROM claims WHERE key = ?",
                    (job.key,),
                ).fetchone()
                if holder is None or holder[:2] == me[:2] or not _alive(holder, now):
                    base.execute(
                        "INSERT OR REPLACE INTO claims (key, host, process, boot, started, seen) "
                        "VALUES (?, ?, ?, ?, ?, ?)",
                        (job.key, *me, now),
                    )
                    claimed.append(job)
        return claimed

    def _has(self, base: sqlite3.Connection, job: JobSpec) -> bool:
        """Whether there is a row of a job that can be read; a damaged one is run again."""
        columns = base.execute(select_rows("key = ?"), (job.key,)).fetchone()
        return columns is not None and self._row(columns, RowReader(), ()) is not None

    def release(self, *, all_processes: bool = False) -> int:
        """Drop the claims of this process, or of all, on unfinished jobs; returns their number."""
        host, process, *_ = this_process()
        with self._write() as base:
            if all_processes:
                return base.execute("DELETE FROM claims").rowcount
            mine = "DELETE FROM claims WHERE host = ? AND process = ?"
            return base.execute(mine, (host, process)).rowcount

    def holders(self) -> list[Holder]:
        """The living processes that have claimed jobs."""
        with self._read() as base:
            base.row_factory = sqlite3.Row
            rows = [dict(row) for row in base.execute("SELECT * FROM claims")]
        claims: dict[Claimant, list[float]] = {}
        for row in rows:  # stores of earlier versions lack two columns
            claimant = Claimant(*(row.get(name, "") for name in Claimant._fields))
            if claimant.alive(seen=row["seen"], now=time()):
                claims.setdefault(claimant, []).append(row["seen"])
        return [Holder(claimant, max(seen), len(seen)) for claimant, seen in claims.items()]

    def running(self) -> int:
        """Number of jobs claimed by living processes."""
        return sum(holder.jobs for holder in self.holders())

    def forget(self, status: str) -> int:
        """Delete the rows with a status so that those jobs run again; returns their number."""
        with self._write() as base:
            return base.execute("DELETE FROM runs WHERE status = ?", (status,)).rowcount


def _joint_mean(one: float | None, done: int, two: float | None, more: int) -> float | None:
    if not done or not more:
        return one if done else two
    return None if one is None or two is None else (one * done + two * more) / (done + more)


def _alive(holder: Sequence[Any], now: float) -> bool:
    *claimant, seen = holder
    return Claimant(*claimant).alive(seen=seen, now=now)
