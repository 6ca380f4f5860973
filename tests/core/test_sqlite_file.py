import sqlite3

import pytest

from evengraph.core.sqlite_file import SqliteFile
from evengraph.core.store import Store


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
