"""Engine: DuckDB with a memory limit, which spills to disk what does not fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from glob import glob
from pathlib import Path
from threading import Event, Thread
from typing import Any

from evengraph.core.errors import MissingPackageError
from evengraph.core.machine import format_size
from evengraph.tables.read import csv_header, table_suffix

Progress = Callable[[str, float | None], None]
"""Called with the name of a stage and its share that is done, or None if that is not known."""

Span = tuple[float, float]
WHOLE: Span = (0.0, 1.0)
POLL_SECONDS = 0.5
BATCH_ROWS = 1 << 20


def no_progress(stage: str, share: float | None) -> None:
    """Show nothing."""


class Engine:
    """A DuckDB database in a file.

    Args:
        path: The file; its tables survive a kill.
        memory: Bytes that DuckDB may hold.
        progress: Is told how far a query is.
    """

    def __init__(self, path: Path, memory: int, progress: Progress = no_progress) -> None:
        duckdb = import_duckdb()
        self.progress, self.memory = progress, max(memory, 2**27)
        self.connection = duckdb.connect(str(path))
        self.errors, self.out_of_memory = duckdb.Error, duckdb.OutOfMemoryException
        spill = str(path.with_suffix(".spill"))
        for name, value in (
            ("memory_limit", f"{self.memory // 2**20}MiB"),
            ("temp_directory", spill),
            ("enable_progress_bar", True),  # otherwise progress is not counted
            ("enable_progress_bar_print", False),
        ):
            self.connection.execute(f"SET {name} = {quote_value(value)}")

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def run(self, query: str, stage: str = "", *, ordered: bool = True) -> None:
        """Run a statement; rows need not keep their order unless `ordered`, which saves memory."""
        self.connection.execute(f"SET preserve_insertion_order = {ordered}")
        with self._watch(stage), self._own_errors():
            self.connection.execute(query)

    def values(self, query: str) -> Any:
        """The row of a result of one row; None if there is none."""
        with self._own_errors():
            rows = self.connection.execute(query).fetchall()
        return rows[0] if rows else None  # not `fetchone`, which leaves the result open

    def frame(self, query: str) -> Any:
        """A small result as a pandas DataFrame, with the types that Arrow gives it."""
        with self._own_errors():
            return self.connection.sql(query).to_arrow_table().to_pandas()

    def batches(self, query: str, stage: str = "", span: Span = WHOLE) -> Iterator[Any]:
        """The result as Arrow record batches, in order; `span` is the part of the stage."""
        self.connection.execute("SET preserve_insertion_order = true")
        with self._watch(stage, span), self._own_errors():
            reader = self.connection.sql(query).to_arrow_reader(BATCH_ROWS)
            yield from reader

    @contextmanager
    def _watch(self, stage: str, span: Span = WHOLE) -> Iterator[None]:
        """Report the progress of a query from a second thread."""
        if not stage:
            yield
            return
        ended = Event()

        def poll() -> None:
            while not ended.wait(POLL_SECONDS):
                share = self.connection.query_progress()
                done = start + (stop - start) * share / 100
                self.progress(stage, done if share >= 0 else None)

        start, stop = span
        self.progress(stage, start or None)
        thread = Thread(target=poll, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        """Turn errors of DuckDB into errors of one line."""
        try:
            yield
        except self.errors as error:
            if isinstance(error, self.out_of_memory):
                share = format_size(self.memory)
                raise ValueError(
                    f"memory must be larger: DuckDB needs more than its share, {share}."
                ) from None
            raise ValueError(_one_line(str(error))) from None
        except RuntimeError as error:
            if "interrupted" in str(error):  # DuckDB takes Ctrl-C while it runs a query
                raise KeyboardInterrupt from None
            raise


def _one_line(message: str) -> str:
    """The file and the reason of an error, without advice about DuckDB's options."""
    file = re.search(r"^\s*file ?= ?(.+)$", message, flags=re.MULTILINE)
    reason = " ".join(re.split(r"Possible (?:fixes|[Ss]olution)|LINE \d", message)[0].split())
    return f"{file[1] if file else 'The tables'} cannot be read: {reason[:300].rstrip('.')}."


def import_duckdb() -> Any:
    """Import DuckDB, or raise an error that says what to install."""
    try:
        import duckdb
    except ImportError:
        raise MissingPackageError(
            "Packing tables needs DuckDB: pip install 'evengraph[disk]'."
        ) from None
    return duckdb


def quote_name(name: str) -> str:
    """A column name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_value(value: Any) -> str:
    """A text, number, truth value or list of them in SQL."""
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(quote_value(item) for item in value)}]"
    return "'" + str(value).replace("'", "''") + "'"


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
