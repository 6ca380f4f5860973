"""SQL of the store: its tables, and the queries that read them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

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


def columns_of(base: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """The tables of a file and their columns."""
    names = [row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    query = "SELECT name FROM pragma_table_info(?)"
    return {name: tuple(row[0] for row in base.execute(query, (name,))) for name in names}


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
