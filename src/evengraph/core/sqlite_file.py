"""SqliteFile: connections to a SQLite file that several processes read and write."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import sleep
from urllib.parse import quote

from evengraph.core.errors import one_line_errors

ATTEMPTS = 100
WAIT = 60  # seconds for another process that writes


class SqliteFile:
    """A SQLite file in write-ahead mode: killing a process never leaves a partial row.

    One connection per transaction: forked processes never share one.

    Args:
        path: Path of the file; its folder is created if it does not exist.
        kind: What the file should be, for errors: `evengraph store`.
        synchronous: What SQLite waits for. NORMAL outlives the process, FULL also the machine.
    """

    @one_line_errors()
    def __init__(self, path: Path, kind: str, *, synchronous: str = "NORMAL") -> None:
        self.path = Path(path)
        self.kind = kind
        self.synchronous = synchronous
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"Cannot open {self.path}: {error.strerror}.") from None

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are committed at the end, or undone by an error."""
        with self._errors(), closing(sqlite3.connect(self.path, timeout=WAIT)) as base:
            _use_log(base)
            base.execute(f"PRAGMA synchronous = {self.synchronous}")
            base.text_factory = _text
            with base:
                yield base

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection to read from, also where nothing may be written."""
        with self._errors(), closing(self._reader()) as base:
            base.text_factory = _text
            yield base

    def create(self, script: str) -> None:
        """Run SQL in one transaction: other processes see all of it or nothing."""
        with self.write() as base:
            base.executescript(f"BEGIN IMMEDIATE; {script} COMMIT;")

    def _reader(self) -> sqlite3.Connection:
        base = sqlite3.connect(self.path, timeout=WAIT)
        try:
            base.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            base.close()
            log = self.path.with_name(f"{self.path.name}-wal")
            if "locked" in str(error) or not self.path.is_file():
                raise
            if log.exists() and log.stat().st_size:  # without it, its rows would be missing
                raise sqlite3.OperationalError(
                    f"{error}; copy it and {log.name} elsewhere"
                ) from None
            return sqlite3.connect(f"file:{quote(str(self.path))}?immutable=1", uri=True)
        return base

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with one_line_errors():
            try:
                yield
            except UnicodeDecodeError:  # in a message of SQLite
                raise ValueError(f"{self.path} is damaged: its schema is no text.") from None
            except sqlite3.DatabaseError as error:
                # a damaged schema may put anything into the message
                reason = "".join(c if c.isprintable() else "?" for c in str(error))
                if "malformed" in reason:
                    raise ValueError(f"{self.path} is damaged: {reason}.") from None
                if isinstance(error, sqlite3.OperationalError):
                    raise ValueError(f"Cannot open or write {self.path}: {reason}.") from None
                raise ValueError(f"{self.path} is not an {self.kind}: {reason}.") from None


def _text(raw: bytes) -> str | bytes:
    """Text, or bytes that are none: one damaged cell must not end the reading of all."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _use_log(base: sqlite3.Connection) -> None:
    """Turn on write-ahead mode; SQLite does not wait if another process does so, too."""
    for attempt in range(ATTEMPTS):
        try:
            base.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt == ATTEMPTS - 1:
                raise
            sleep(0.05)
