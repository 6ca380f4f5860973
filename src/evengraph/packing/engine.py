"""Engine: DuckDB with a memory limit, which spills to disk what does not fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from evengraph.core.errors import MissingPackageError
from evengraph.core.sizes import format_size

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
