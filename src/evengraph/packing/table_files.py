"""TableFiles: a table in one or many files, CSV or Parquet, as DuckDB reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import Any

from evengraph.packing.engine import Engine, quote_name, quote_value
from evengraph.tables.read import csv_header, table_suffix

STREAMED = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
"""Suffixes of tables that can be larger than memory."""


@dataclass(frozen=True)
class TableFiles:
    """Files with the same columns, whose rows follow one another.

    Args:
        paths: The files, all of one format.
    """

    paths: tuple[Path, ...]

    def __post_init__(self) -> None:
        suffixes = {table_suffix(path).removesuffix(".gz") for path in self.paths}
        if len(suffixes) > 1:
            raise ValueError(
                f"The files of a table must have one format, got {' and '.join(sorted(suffixes))}."
            )

    @property
    def name(self) -> str:
        """What messages call the table."""
        more = len(self.paths) - 1
        return str(self.paths[0]) + (f" and {more} more" if more else "")

    @property
    def is_parquet(self) -> bool:
        """Whether the files are Parquet."""
        return table_suffix(self.paths[0]) == ".parquet"

    @property
    def signature(self) -> list[list[Any]]:
        """Path, size and time of every file: whether they are still the same."""
        stats = [(str(path.absolute()), path.stat()) for path in self.paths]
        return [[path, stat.st_size, stat.st_mtime_ns] for path, stat in stats]

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns."""
        if not self.is_parquet:
            return self._csv_header[1]
        from pyarrow.parquet import read_schema

        try:
            names = [str(name) for name in read_schema(self.paths[0]).names]
        except (ValueError, OSError) as error:
            reason = " ".join(str(error).split())[:120]
            raise ValueError(f"{self.paths[0]} cannot be read as Parquet: {reason}.") from None
        stripped = [name.strip() for name in names]
        for name in stripped:
            if stripped.count(name) > 1:
                raise ValueError(f"{self.name} has two columns called {name!r}.")
        return stripped

    def query(self, columns: Sequence[str] | None = None) -> str:
        """A SELECT of all rows in order; cells of CSV stay text, empty ones are NULL."""
        names = self.columns if columns is None else columns
        paths = quote_value([str(path) for path in self.paths])
        if self.is_parquet:
            return f"SELECT {', '.join(map(quote_name, names))} FROM read_parquet({paths})"
        separator, header = self._csv_header
        types = ", ".join(f"{quote_value(name)}: 'VARCHAR'" for name in header)
        cells = [f"nullif(ltrim({quote_name(name)}, ' '), '')" for name in names]
        selected = (f"{cell} AS {quote_name(n)}" for cell, n in zip(cells, names, strict=True))
        return (
            f"SELECT {', '.join(selected)} FROM read_csv({paths}, auto_detect = false, "
            f"header = true, delim = {quote_value(separator)}, quote = '\"', escape = '\"', "
            f"columns = {{{types}}}, max_line_size = 100000000)"
        )

    @cached_property
    def _csv_header(self) -> tuple[str, list[str]]:
        first = csv_header(self.paths[0])
        for path in self.paths[1:]:
            if csv_header(path) != first:
                raise ValueError(f"{path} must have the columns of {self.paths[0]}.")
        return first

    def types(self, engine: Engine, columns: Sequence[str]) -> list[str]:
        """The SQL types of some columns."""
        rows = engine.connection.execute(f"DESCRIBE {self.query(columns)}").fetchall()
        return [str(row[1]) for row in rows]

    def to_parquet(self, engine: Engine, path: Path) -> TableFiles:
        """Write all rows of CSV files as one Parquet file, whose columns can be read one by one."""
        query = self.query()
        if self._csv_header[0] == ";":
            query = _with_decimal_points(engine, query, self.columns)
        options = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 65536"
        engine.run(f"COPY ({query}) TO {quote_value(str(path))} ({options})", "reading nodes")
        return TableFiles((path,))


def find_files(table: str | Path | Sequence[str | Path]) -> TableFiles:
    """The files of a table: a path, a folder, a pattern such as nodes-*.csv, or several of them."""
    parts = [table] if isinstance(table, str | Path) else list(table)
    if isinstance(table, str) and "," in table and not Path(table).expanduser().exists():
        parts = [part.strip() for part in table.split(",")]
    paths: list[Path] = []
    for part in parts:
        path = Path(part).expanduser()
        if path.is_dir():
            found = sorted(item for item in path.iterdir() if table_suffix(item) in STREAMED)
        else:
            found = [path] if path.exists() else sorted(map(Path, glob(str(path))))
        if not found:
            what = "holds no Parquet or CSV files" if path.is_dir() else "does not exist"
            raise FileNotFoundError(f"{part} {what}.")
        paths += found
    for path in paths:
        if table_suffix(path) not in STREAMED:
            raise ValueError(f"{path} must end in {', '.join(STREAMED)}.")
    return TableFiles(tuple(paths))


def _with_decimal_points(engine: Engine, query: str, columns: Sequence[str]) -> str:
    """Replace decimal commas by points in the columns in which every cell is a number."""
    pattern = quote_value(r"\s*[+-]?\d*(,\d+)?([eE][+-]?\d+)?\s*")
    names = [quote_name(column) for column in columns]
    checks = (f"bool_and(regexp_full_match({name}, {pattern}))" for name in names)
    numeric = engine.values(f"SELECT {', '.join(checks)} FROM ({query})")
    cells = (
        f"replace({name}, ',', '.') AS {name}" if is_numeric else name
        for name, is_numeric in zip(names, numeric, strict=True)
    )
    return f"SELECT {', '.join(cells)} FROM ({query})"
