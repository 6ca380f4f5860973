"""Files that become a store, can be read as one, or are refused and left alone."""

import os
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from evengraph.lab.store import SCHEMA, RunGroup, Store
from tiny_experiments import ended, failed, make_job


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store.sqlite")


def test_a_second_try_replaces_the_first(store):
    store.add(failed(make_job()))
    store.add(ended(make_job(seed=6)))
    store.add(ended(make_job(), validation=70.0))
    assert sorted((row.job.seed, row.status) for row in store.rows()) == [(5, "done"), (6, "done")]
    assert [row.outcome["validation"] for row in store.rows(seed=5)] == [70.0]


def test_a_store_can_be_opened_again_and_its_folder_is_made(tmp_path):
    place = tmp_path / "a" / "b" / "store.sqlite"
    Store(place).add(ended(make_job()))
    assert len(Store(place).rows()) == 1


def other_format(path):
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE things (name)")
        base.execute(f"PRAGMA user_version = {SCHEMA + 1}")
        base.commit()


def other_program(path):
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE runs (legs)")
        base.commit()


def refused(path):
    with pytest.raises(ValueError, match=r".") as error:
        Store(path)
    (line,) = str(error.value).splitlines()
    assert str(path) in line
    return line


def test_a_file_of_another_format_is_refused(tmp_path):
    other_format(path := tmp_path / "other.sqlite")
    assert f"format {SCHEMA + 1}" in refused(path)
    with closing(sqlite3.connect(path)) as base:
        assert base.execute("SELECT name FROM sqlite_master").fetchall() == [("things",)]


def test_a_file_of_another_format_is_left_as_it_was(tmp_path):
    other_format(path := tmp_path / "other.sqlite")
    before = path.read_bytes()
    refused(path)
    assert path.read_bytes() == before


def test_another_programs_base_is_refused_and_left_as_it_was(tmp_path):
    other_program(path := tmp_path / "other.sqlite")
    before = path.read_bytes()
    refused(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["short", "dataset,method\n" * 300])
def test_a_text_file_is_refused_and_left_as_it_was(text, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert "not an evengraph store" in refused(path)
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_file_becomes_a_store(tmp_path):
    path = tmp_path / "empty.sqlite"
    path.touch()
    Store(path).add(ended(make_job()))
    assert len(Store(path).rows()) == 1


def test_a_folder_is_refused(tmp_path):
    assert "Cannot open" in refused(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_place_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("words")
    try:
        refused(tmp_path / "file" / "store.sqlite")
    finally:
        assert (tmp_path / "file").read_text() == "words"


@contextmanager
def open_folder():
    """A folder that any user may look into, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def ordinary_user():
    """For a while without the rights of root, which no file is closed to."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


needs_rights = pytest.mark.skipif(os.name == "nt", reason="Windows has no such rights")


@needs_rights
def test_a_closed_folder_is_refused():
    with open_folder() as folder:
        (closed := folder / "closed").mkdir(mode=0o555)
        with ordinary_user():
            assert "Cannot open" in refused(closed / "store.sqlite")
        assert not list(closed.iterdir())


@needs_rights
@pytest.mark.parametrize("mode", ["wal", "delete"])
@pytest.mark.parametrize("closed", ["file", "folder", "both"])
def test_a_store_that_may_not_be_written_can_be_read(mode, closed):
    with open_folder() as folder:
        Store(path := folder / "store.sqlite").add(ended(make_job()))
        with closing(sqlite3.connect(path)) as base:
            base.execute(f"PRAGMA journal_mode = {mode}")
        before = path.read_bytes()
        if closed != "folder":
            path.chmod(0o444)
        if closed != "file":
            folder.chmod(0o555)
        with ordinary_user():
            store = Store(path)
            assert [row.job for row in store.rows()] == [make_job()]
            assert (store.count(), len(store.groups(["validation"]))) == (1, 1)
            assert store.experiments() == {}
            with pytest.raises(ValueError, match=r"^Cannot open or write .*store\.sqlite"):
                store.add(ended(make_job(seed=6)))
        assert path.read_bytes() == before
        assert [one.name for one in folder.iterdir()] == [path.name]
        folder.chmod(0o755)


@needs_rights
def test_a_closed_store_whose_rows_are_in_its_log_is_refused():
    with open_folder() as folder:
        path = folder / "store.sqlite"
        Store(path)
        with closing(sqlite3.connect(path)) as base:  # the last to close it would empty the log
            base.execute("SELECT * FROM runs").fetchall()
            Store(path).add(ended(make_job()))
            (copied := folder / "copy").mkdir()
            for name in (path.name, f"{path.name}-wal"):
                (copied / name).write_bytes((folder / name).read_bytes())
        copied.chmod(0o555)
        with ordinary_user():
            assert "copy it and store.sqlite-wal" in refused(copied / path.name)
        copied.chmod(0o755)


def test_a_damaged_experiment_costs_itself_alone(store):
    store.save_experiment("good", {"cells": []})
    store.save_experiment("bad", {"cells": []})
    store.save_tsne("key", {})
    with closing(sqlite3.connect(store.path)) as base:
        base.execute("UPDATE boards SET content = '{' WHERE name = 'bad'")
        base.execute("UPDATE maps SET content = '3'")
        base.commit()
    assert store.experiments() == {"good": {"cells": []}}
    assert store.tsne("key") is None
    assert len(store.damage) == 2


def test_a_damaged_page_names_the_file(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.add(*(ended(make_job(seed=seed)) for seed in range(200)))
    content = bytearray(store.path.read_bytes())
    content[20_000:60_000] = bytes(40_000)
    store.path.write_bytes(content)
    with pytest.raises(ValueError, match=r"store\.sqlite is damaged: .*malformed"):
        Store(store.path).rows()


@pytest.mark.parametrize("size", [1, 20, 511, 512, 5000])
def test_another_file_is_never_written_to(tmp_path, size):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"x" * size)
    with pytest.raises(ValueError, match=r"notes\.txt is not an evengraph store"):
        Store(path)
    assert path.read_bytes() == b"x" * size


def test_who_reads_leaves_no_trace(tmp_path):
    path = tmp_path / "store.sqlite"
    Store(path).save_experiment("one", {"cells": []})
    before = path.read_bytes()
    assert Store(path).rows() == []
    assert Store(path).experiments() == {"one": {"cells": []}}
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def group(runs, failed, *means, **others):
    return RunGroup("toy", "step", {}, "gcn", runs, failed, means, **others)


def test_groups_are_joined_as_if_their_runs_were_one_group():
    one, other = group(3, 1, 10.0, 7.0, None), group(6, 2, 40.0, None, None, settings=4)
    joined = one.joined(other)
    assert joined == ("toy", "step", {}, "gcn", 9, 3, [30.0, None, None], 4)
    assert other.joined(one) == joined
    assert one.settings == 1


def test_a_group_without_a_run_that_is_done_has_no_say_in_means():
    for one, other in (
        (group(2, 2, None), group(3, 1, 5.0)),
        (group(3, 1, 5.0), group(2, 2, None)),
    ):
        assert one.joined(other).means == [5.0]
    with pytest.raises(ValueError, match="zip"):
        group(1, 0, 5.0).joined(group(1, 0, 5.0, 6.0))


def test_groups_read_rows_only_where_some_are_damaged(store, monkeypatch):
    store.add(ended(make_job()))
    monkeypatch.setattr(store, "_scan", None)
    assert len(store.groups(["validation"])) == 1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("imbalance_fields", "[1]"),
        ("imbalance_fields", "[" * 5000 + "]" * 5000),
        ("dataset", b"\xff"),
        ("imbalance", b"\xff"),
        ("method", b"\xff"),
    ],
)
def test_groups_leave_out_damaged_settings_and_tell_them(store, column, value):
    store.add(ended(make_job()), ended(make_job(method="mlp")))
    with closing(sqlite3.connect(store.path)) as base, base:
        base.execute(f"UPDATE runs SET {column} = ? WHERE method = 'mlp'", (value,))
    assert len(store.groups(["metrics.macro_f1"])) == 1
    (damage,) = store.damage
    assert "1 rows of" in damage
    assert column in damage
