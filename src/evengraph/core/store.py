"""Store of runs: one SQLite file with a row per run, written as soon as the run ends."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from time import time
from typing import Any, NamedTuple

from evengraph.core.claims import Claimant, Holder, this_process
from evengraph.core.errors import one_line_errors
from evengraph.core.rows import (
    DamagedRowError,
    LazyOutcome,
    RowReader,
    check_outcome,
    part_of_outcome,
    read_setting,
)
from evengraph.core.rows import JobSpec as JobSpec
from evengraph.core.rows import Row as Row
from evengraph.core.sqlite_file import SqliteFile
from evengraph.core.store_sql import SCHEMA as SCHEMA
from evengraph.core.store_sql import (
    TABLES,
    WHOLE,
    add_columns,
    columns_of,
    condition,
    is_part_of_store,
    select_groups,
    select_rows,
    select_values,
)

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
        for dataset, imbalance, fields, method, runs, failed, settings, *means in rows:
            try:
                fields = read_setting(dataset, imbalance, fields, method)
            except DamagedRowError as error:
                self._damage[f"{runs} rows of {self.path} are damaged: {error}."] = None
                continue
            group = RunGroup(dataset, imbalance, fields, method, runs, failed, means, settings)
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
