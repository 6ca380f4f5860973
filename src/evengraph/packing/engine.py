"""Engine: DuckDB with a memory limit, which spills to disk what does not fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from evengraph.core.errors import MissingPackageError

Progress = Callable[[str, float | None], None]
"""Called with the name of a stage and its share that is done, or None if that is not known."""

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
        self.progress = progress
        self.connection = duckdb.connect(str(path))
        self.errors = duckdb.Error
        spill = str(path.with_suffix(".spill"))
        for name, value in (
            ("memory_limit", f"{max(memory, 2**27) // 2**20}MiB"),
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

    def values(self, query: str) -> tuple[Any, ...]:
        """The first row of a result."""
        with self._own_errors():
            row: tuple[Any, ...] = self.connection.execute(query).fetchone()
        return row

    def frame(self, query: str) -> Any:
        """A small result as a pandas DataFrame, with the types that Arrow gives it."""
        with self._own_errors():
            return self.connection.sql(query).to_arrow_table().to_pandas()

    def batches(self, query: str, stage: str = "") -> Iterator[Any]:
        """The result as Arrow record batches, in order."""
        self.connection.execute("SET preserve_insertion_order = true")
        with self._watch(stage), self._own_errors():
            reader = self.connection.sql(query).to_arrow_reader(BATCH_ROWS)
            yield from reader

    @contextmanager
    def _watch(self, stage: str) -> Iterator[None]:
        """Report the progress of a query from a second thread."""
        if not stage:
            yield
            return
        ended = Event()

        def poll() -> None:
            while not ended.wait(POLL_SECONDS):
                share = self.connection.query_progress()
                self.progress(stage, share / 100 if share >= 0 else None)

        self.progress(stage, None)
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
            raise ValueError(_one_line(str(error))) from None


def _one_line(message: str) -> str:
    """The file and the reason of an error, without advice about DuckDB's options."""
    file = re.search(r"^\s*file ?= ?(.+)$", message, flags=re.MULTILINE)
    reason = " ".join(re.split(r"Possible (?:fixes|Solution)|LINE \d", message)[0].split())
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
