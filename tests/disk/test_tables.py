"""Tables with one row per node that need not fit in memory."""

import os
import socket
import subprocess
import sys
from itertools import combinations
from shutil import move

import numpy as np
import pytest
import torch

from evengraph.disk.tables import (
    PREFIX,
    UNFINISHED,
    ColumnTable,
    JoinedTable,
    product_table,
    scaled_table,
    scratch_folder,
)
from graphs_on_disk import table_of
from small_graphs import normal


@pytest.fixture
def x():
    return normal(20, 7, dtype=torch.float32)


@pytest.fixture
def stored(tmp_path, x):
    table = ColumnTable(tmp_path / "table", (20, 7), "hash")
    for start, stop in ((0, 3), (3, 4), (4, 7)):
        table.write(start, x[:, start:stop].numpy())
    return table


def test_any_columns_can_be_read(x, stored):
    rows = torch.tensor([3, 3, 19, 0])
    for start, stop in combinations(range(8), 2):
        assert torch.equal(stored.read(rows, slice(start, stop)), x[rows, start:stop])


def test_gaps_are_what_was_not_written(tmp_path, x):
    table = ColumnTable(tmp_path, (20, 7), "hash")
    assert table.missing() == [(0, 7)]
    table.write(2, x[:, 2:4].numpy())
    assert table.missing() == [(0, 2), (4, 7)]
    name = table.parts()[0].path.name
    for odd in (".columns-left-by-a-kill", "columns-000000-000002.npy", "columns-a-b.npy"):
        (tmp_path / odd).write_bytes(b"half a file")
    os.mkfifo(tmp_path / name.replace("000002", "000000"))
    (tmp_path / name.replace("000004", "000007")).mkdir()
    table.check()
    assert table.missing() == [(0, 2), (4, 7)]


def rotated(path):
    np.save(path, np.roll(np.load(path), 7, axis=0))


@pytest.mark.parametrize(
    "damage",
    [
        rotated,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-4]),
        lambda path: np.save(path, np.load(path)[:, :1]),
        lambda path: np.save(path, np.load(path).astype(np.float64)),
        lambda path: path.rename(path.with_name(path.name.replace("000003", "000007"))),
        lambda path: (
            path.unlink() or move(next((path.parents[1] / "other").iterdir()), path.parent)
        ),
    ],
)
def test_what_is_not_as_it_was_written_is_missing(tmp_path, x, stored, damage, caplog):
    ColumnTable(tmp_path / "other", (20, 7), "another hash").write(0, x[:, :3].numpy())
    first = stored.parts()[0].path
    stored.check()
    assert (stored.missing(), caplog.records) == ([], [])
    damage(first)
    stored.check()
    assert stored.missing() == [(0, 3)]
    (record,) = caplog.records
    assert str(tmp_path / "table") in record.getMessage()


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch, x):
    table = ColumnTable(tmp_path, (20, 7), "hash")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        table.write(0, x.numpy())
    assert list(tmp_path.iterdir()) == []


def test_derived_tables(x, stored):
    matrix = normal(7, 4, seed=1, dtype=torch.float32)
    table = product_table(stored, matrix)
    assert table.shape == (20, 4)
    torch.testing.assert_close(table.read(slice(3, 9), slice(1, 3)), (x @ matrix)[3:9, 1:3])
    scaled = scaled_table(stored, x.mean(0), torch.tensor(2.0))
    torch.testing.assert_close(scaled.read(slice(0, 20)), (x - x.mean(0)) * 2)
    joined = JoinedTable([stored, table])
    assert joined.shape == (20, 11)
    expected = torch.cat([x, x @ matrix], dim=1)[:2, 6:8]
    torch.testing.assert_close(joined.read(slice(0, 2), slice(6, 8)), expected)
    half = table_of(x.half())
    assert torch.equal(half.read(slice(2, 5)), x.half().float()[2:5])  # as single precision
    tables = [
        table_of(x),
        table_of(x + 1),
        product_table(stored, matrix),
        product_table(stored, matrix + 1),
        scaled_table(stored, x[0], torch.tensor(1.0)),
    ]
    assert len({table.content_hash for table in tables}) == len(tables)


def test_a_folder_is_gone_at_the_end_or_after_an_error(tmp_path):
    with scratch_folder(tmp_path / "new", 10) as folder:
        assert folder.parent == tmp_path / "new"
        (folder / "file").write_text("x")
    with pytest.raises(KeyboardInterrupt), scratch_folder(tmp_path / "new", 0):
        raise KeyboardInterrupt
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("prefix", [PREFIX, UNFINISHED])
def test_what_killed_processes_were_using_is_removed(tmp_path, x, prefix):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(60)
    host = socket.gethostname()
    dead, alive = (tmp_path / f"{prefix}{pid}@{host}@a" for pid in (ended.pid, os.getpid()))
    # a machine whose name begins like this one
    elsewhere = tmp_path / f"{prefix}{ended.pid}@{host}-2@b"
    for path in (dead, alive, elsewhere):
        path.mkdir() if prefix == PREFIX else path.touch()
    if prefix == PREFIX:
        with scratch_folder(tmp_path, 0):
            pass
    else:
        ColumnTable(tmp_path, (20, 7), "hash").write(0, x[:, :3])
    assert [path.exists() for path in (dead, alive, elsewhere)] == [False, True, True]


def test_a_full_disk_is_noticed_before_anything_is_written(tmp_path):
    with pytest.raises(OSError, match=r"needs .* for rows to learn from, and .* are free"):
        scratch_folder(tmp_path, 2**60).__enter__()
    assert list(tmp_path.iterdir()) == []
