"""Files: atomic writes, JSON and CSV text, locks, SQLite files."""

import csv
import glob
import io
import json
import math
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from time import sleep
from typing import Any, BinaryIO
from urllib.parse import quote

from filelock import FileLock

from evengraph.core.errors import one_line_errors
from evengraph.core.machine import format_size
from evengraph.core.untrusted import MAX_TEXT_BYTES


def write_json(content: Any, path: Path) -> None:
    """Write a JSON file atomically; NaN and infinity become null."""
    text = json.dumps(_json_value(content), indent=1, allow_nan=False) + "\n"
    write_atomic(compact_number_lists(text).encode(), path)


def read_settings(path: Traversable) -> str:
    """The text of a small file that a person wrote; one line if it is none."""
    with path.open("rb") as file:
        content = file.read(MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise ValueError(f"{path} is larger than {format_size(MAX_TEXT_BYTES)}.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {line} is not UTF-8 text; save it as UTF-8.") from None


def csv_text(rows: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> str:
    """CSV with a header, by default the keys of the first row; None becomes an empty cell."""
    text, first = io.StringIO(), list(rows[0]) if rows else []
    writer = csv.DictWriter(text, first if names is None else names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def compact_number_lists(text: str) -> str:
    """Put every list of numbers in JSON on one line: a history has thousands of epochs."""
    # no string holds a line break
    return re.sub(r'\[\n([^\[\]{}"]*)\]', lambda numbers: f"[{' '.join(numbers[1].split())}]", text)


def write_atomic(content: bytes, path: Path) -> None:
    """Write a file atomically: readers see the old file or the new one, never a part."""
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path, prefix: str = "") -> Iterator[BinaryIO]:
    """A file to write that gets its name when it is complete, and is removed after an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix or f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(name, 0o644)  # mkstemp makes it private; results are shared
        os.replace(name, path)
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, OSError) and error.errno:  # it names no file, or the temporary one
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock file, made for that; a kill frees it. Waits, or raises `filelock.Timeout`."""
    with FileLock(path, timeout=-1 if wait else 0):
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file
                path.unlink()  # who has opened it meanwhile takes a new one


@contextmanager
def temporary_folder(beside: Path) -> Iterator[Path]:
    """A temporary folder in the same place, removed at the end, as those of killed processes."""
    for name in glob.glob(f"{glob.escape(str(beside.parent / f'.{beside.name}.'))}*.tmp"):
        with suppress(OSError), locked(Path(f"{name}.lock"), wait=False):  # no process holds it
            shutil.rmtree(name, ignore_errors=True)
    with ExitStack() as stack:
        name = ""
        while not os.path.isdir(name):  # another process may remove it before it is held
            name = tempfile.mkdtemp(dir=beside.parent, prefix=f".{beside.name}.", suffix=".tmp")
            stack.enter_context(locked(Path(f"{name}.lock")))
        try:
            yield Path(name)
        finally:
            shutil.rmtree(name, ignore_errors=True)


UNTRUSTED = "PRAGMA trusted_schema = OFF"
MAGIC = b"SQLite format 3\0"  # the first bytes of every database
MOST_BYTES = 2**27  # of a cell in a SQLite file
FREE_STEPS, STEPS_PER_BYTE = 2 * 10**6, 1  # of SQLite: what rows of a file of that size can take
ATTEMPTS = 100
WAIT = 60  # seconds for another process that writes


def packaged(name: str) -> Traversable:
    """A file of experiments/: inside an installed package, above it in a checkout."""
    installed = files("evengraph").joinpath("experiments", name)
    if installed.is_file():
        return installed
    return Path(__file__).resolve().parents[3] / "experiments" / name


class SqliteFile:
    """A SQLite file in write-ahead mode: killing a process never leaves a partial row.

    One connection per transaction: forked processes never share one. `kind` is what the file
    should be, for errors. `synchronous=NORMAL` outlives the process, FULL also the machine.
    """

    @one_line_errors()
    def __init__(self, path: Path, kind: str, *, synchronous: str = "NORMAL") -> None:
        self.path, self.kind, self.synchronous = Path(path), kind, synchronous
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"Cannot open {self.path}: {error.strerror}.") from None

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are committed at the end, or undone by an error."""
        with self._errors(), closing(self._connect(self.path)) as base:
            base.set_progress_handler(None, 0)  # many rows may be written
            base.execute(UNTRUSTED)
            _use_log(base)
            base.execute(f"PRAGMA synchronous = {self.synchronous}")
            base.text_factory = _text
            with base:
                yield base

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection to read from, also where nothing may be written."""
        with self._errors(), closing(self._reader()) as base:
            base.execute(UNTRUSTED)
            base.text_factory = _text
            yield base

    def create(self, script: str) -> None:
        """Run SQL in one transaction: other processes see all of it or nothing."""
        with self.write() as base:
            base.executescript(f"BEGIN IMMEDIATE; {script} COMMIT;")

    def prepare(
        self,
        script: str,
        version: int,
        *,
        main: str,
        application: int = 0,
        later: Sequence[str] = (),
    ) -> None:
        """Create the tables of a script in a new file; raise ValueError for a file without them.

        `main` is the table that every file has, `application` the number that marks the file.
        """
        start = b""
        with suppress(OSError), self.path.open("rb") as file:  # SQLite tells why it is unreadable
            start = file.read(len(MAGIC))
        if start not in (b"", MAGIC):  # SQLite takes a short file for an empty one: it replaces it
            raise ValueError(f"{self.path} is not an {self.kind}: file is not a database.")
        with self.read() as base:
            base.execute("BEGIN")  # one moment: another process may be creating the file
            tables = known_tables(base, script, later)
            pragmas = ("application_id", "user_version")
            mark, found = (base.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
        if not (tables or mark or found):
            marks = f"PRAGMA application_id = {application}; PRAGMA user_version = {version};"
            self.create(f"{script} {marks}")
        elif mark == application and found not in (0, version):
            raise ValueError(
                f"{self.path} was written by another version of evengraph "
                f"(format {found}, this version reads {version})."
            )
        elif mark != application or not found or main not in tables or not all(tables.values()):
            raise ValueError(f"{self.path} is not an {self.kind} but another SQLite file.")

    def _reader(self) -> sqlite3.Connection:
        base = self._connect(self.path)
        try:
            base.execute("SELECT name FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            base.close()
            log = self.path.with_name(f"{self.path.name}-wal")
            if "locked" in str(error) or not self.path.is_file():
                raise
            if log.exists() and log.stat().st_size:  # without it, its rows would be missing
                text = f"{error}; copy it and {log.name} elsewhere"
                raise sqlite3.OperationalError(text) from None
            return self._connect(f"file:{quote(str(self.path))}?immutable=1", uri=True)
        return base

    def _connect(self, name: str | Path, **options: Any) -> sqlite3.Connection:
        """A connection on which a file of others can do no harm: nothing in it is run."""
        base: sqlite3.Connection = sqlite3.connect(name, timeout=WAIT, **options)
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
        size = self.path.stat().st_size if self.path.exists() else 0
        left = iter(range((FREE_STEPS + STEPS_PER_BYTE * size) // 1000))
        base.set_progress_handler(lambda: next(left, None) is None, 1000)
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
                if reason == "interrupted":  # pages that are listed again and again
                    reason = "it has more rows than its size allows"
                if "malformed" in reason or "more rows" in reason:
                    raise ValueError(f"{self.path} is damaged: {reason}.") from None
                if isinstance(error, sqlite3.OperationalError):
                    raise ValueError(f"Cannot open or write {self.path}: {reason}.") from None
                raise ValueError(f"{self.path} is not an {self.kind}: {reason}.") from None


def known_tables(
    base: sqlite3.Connection, script: str, later: Sequence[str] = ()
) -> dict[str, bool]:
    """What a file's schema holds: whether each part is a table as the script makes it.

    A view, trigger, index or computed column of somebody else would be run. Tables of former
    versions lack the `later` pieces of the script.
    """

    def plain(text: Any) -> str:
        words = "".join(str(text).split())
        for piece in later:
            words = words.replace(f",{''.join(piece.split())}", "")
        return words

    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"  # not those of keys
    with closing(sqlite3.connect(":memory:")) as ours:
        ours.executescript(script)
        made = {(name, plain(text)) for name, text in ours.execute(query)}
    found: dict[str, bool] = {}
    for name, text in base.execute(query):
        found[str(name)] = found.get(str(name), True) and (name, plain(text)) in made
    return found


def _text(raw: bytes) -> str | bytes:
    """Text, or bytes that are none: one damaged cell must not end the reading of all."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _use_log(base: sqlite3.Connection) -> None:
    for attempt in range(ATTEMPTS):
        try:
            base.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt == ATTEMPTS - 1:
                raise
            sleep(0.05)
