import sqlite3
from contextlib import closing

import pytest

from evengraph.core import files as sqlite_file
from evengraph.core.files import ATTEMPTS, SqliteFile
from evengraph.lab.store import Store


def write_twice(file):
    with file.write() as base:
        base.execute("INSERT INTO t VALUES ('second')")
        base.execute("INSERT INTO u VALUES ('third')")


def test_an_error_undoes_what_was_written(tmp_path):
    file = SqliteFile(tmp_path / "deep" / "file.sqlite", "evengraph file")
    file.create("CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('first');")
    with pytest.raises(ValueError, match="no such table"):
        write_twice(file)
    with file.read() as base:
        assert base.execute("SELECT a FROM t").fetchall() == [("first",)]


def test_creation_is_one_transaction(tmp_path):
    file = SqliteFile(tmp_path / "file.sqlite", "evengraph file")
    with pytest.raises(ValueError, match="Cannot open or write"):
        file.create("CREATE TABLE t (a TEXT); nonsense;")
    with file.read() as base:
        assert base.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_a_file_of_another_kind_is_named(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 100)
    file = SqliteFile(path, "evengraph file")
    with pytest.raises(ValueError, match=r"letter.txt is not an evengraph file"), file.read():
        pass


def test_a_cell_that_is_no_text_is_bytes(tmp_path):
    file = SqliteFile(tmp_path / "file.sqlite", "evengraph file")
    with file.read() as base:
        assert base.execute("SELECT CAST(x'ff41' AS TEXT)").fetchone() == (b"\xffA",)


def test_a_store_refuses_files_of_others_with_its_version_number(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as base:
        base.executescript("CREATE TABLE t (a TEXT); PRAGMA user_version = 1;")
    with pytest.raises(ValueError, match="is not an evengraph store but another SQLite file"):
        Store(path)


class Refusing:
    """A connection that refuses for a number of times, or for ever."""

    def __init__(self, message, times=10**9):
        self.message, self.times, self.calls = message, times, 0

    def execute(self, text):
        self.calls += 1
        if self.calls <= self.times:
            raise sqlite3.OperationalError(self.message)

    def close(self):
        pass


def test_write_ahead_mode_is_on(tmp_path):
    path = tmp_path / "file.sqlite"
    SqliteFile(path, "evengraph file").create("CREATE TABLE t (a TEXT);")
    with closing(sqlite3.connect(path)) as base:
        assert base.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize(
    ("message", "times", "calls"),
    [("database is locked", 3, 4), ("database is locked", 10**9, ATTEMPTS), ("disk", 10**9, 1)],
)
def test_a_lock_is_waited_for_and_nothing_else(message, times, calls, monkeypatch):
    pauses, base = [], Refusing(message, times)
    monkeypatch.setattr(sqlite_file, "sleep", pauses.append)
    if calls > times:
        sqlite_file._use_log(base)
    else:
        with pytest.raises(sqlite3.OperationalError, match=message):
            sqlite_file._use_log(base)
    assert base.calls == calls
    assert pauses == [0.05] * (calls - 1)


def test_how_long_writers_are_waited_for(tmp_path, monkeypatch):
    seen, connect = [], sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, timeout: seen.append(timeout) or connect(path)
    )
    file = SqliteFile(tmp_path / "file.sqlite", "evengraph file")
    for way in (file.write, file.read):
        with way():
            pass
    assert seen == [60, 60]


@pytest.mark.parametrize(
    ("message", "there", "error"),
    [
        ("database is locked", True, "database is locked"),
        ("unable to open database file", False, "unable to open"),
        ("attempt to write a readonly database", True, None),
    ],
)
def test_a_file_is_read_as_it_is_only_where_it_may_not_be_written(
    message, there, error, tmp_path, monkeypatch
):
    file, connect = SqliteFile(tmp_path / "a file?.sqlite", "evengraph file"), sqlite3.connect
    if there:
        file.create("CREATE TABLE t (a TEXT);")
    first, asked = iter([Refusing(message)]), []

    def open_second(*path, **options):
        asked.append(options)
        return next(first, None) or connect(*path, **options)

    monkeypatch.setattr(sqlite3, "connect", open_second)
    if error is None:
        with file.read() as base:
            assert base.execute("SELECT name FROM sqlite_master").fetchall() == [("t",)]
        assert asked[1] == {"uri": True}  # some builds of SQLite do so unasked
    else:
        with pytest.raises(ValueError, match=f"^Cannot open or write .*: {error}"), file.read():
            pass
