"""A store: its rows and keys, SQL, claims of processes, and files that are damaged or of others."""

import json
import math
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from threading import Barrier

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core import files as sqlite_file
from evengraph.core.files import ATTEMPTS, SqliteFile
from evengraph.desk.label_file import LabelFile
from evengraph.lab.pages import group_runs
from evengraph.lab.store import (
    SCHEMA,
    STALE,
    TABLES,
    Claimant,
    Row,
    Store,
    this_process,
)
from tiny_experiments import damage, ended, failed, make_job, python, running, wait_for

# Rows.


LARGEST = 2**63 - 1

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | names

values = st.recursive(
    plain, lambda inner: st.lists(inner) | st.dictionaries(names, inner), max_leaves=6
)

tables = st.dictionaries(names, values, max_size=4)

jobs = st.builds(
    make_job,
    dataset=names,
    imbalance=names,
    imbalance_fields=tables,
    method=names,
    method_fields=tables,
    seed=st.integers(0, LARGEST),
)

numbers = st.floats() | st.integers()

outcomes = st.builds(
    lambda table, metrics, score: {**table, "metrics": metrics, "validation": score},
    tables,
    st.dictionaries(names, numbers, max_size=3),
    numbers.filter(lambda number: number == number),
)

rows = st.builds(
    Row,
    job=jobs,
    status=st.sampled_from(["done", "failed"]),
    reason=names,
    outcome=outcomes,
    environment=tables,
    created=st.text("0123456789-", min_size=1),
)


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("shared") / "store.sqlite")


@given(row=rows)
def test_a_row_comes_back_as_it_went_in(shared_store, row):
    shared_store.add(row)
    assert [one for one in shared_store.rows() if one.job.key == row.job.key] == [row]


def test_rows_get_the_time(store):
    store.add(ended(make_job()))
    created = datetime.fromisoformat(store.rows()[0].created)
    assert created.utcoffset().total_seconds() == 0


@given(jobs)
def test_keys_do_not_depend_on_the_order_of_fields(job):
    turned = replace(
        job,
        imbalance_fields=dict(reversed(job.imbalance_fields.items())),
        method_fields=dict(reversed(job.method_fields.items())),
    )
    assert turned.key == job.key


def test_keys_differ_with_any_part():
    changes = [
        {"dataset": "cora"},
        {"imbalance": "longtail"},
        {"imbalance_fields": {"minority": 3, "ratio": 0.05}},
        {"imbalance_fields": {"minority": 3}},
        {"method": "reweight"},
        {"method_fields": {"max_epochs": 4, "patience": 10}},
        {"method_fields": {"max_epochs": 3, "patience": 10, "hidden": 64}},
        {"method_fields": {"max_epochs": 10, "patience": 3}},
        {"imbalance_fields": {}, "method_fields": {"minority": 3, "ratio": 0.1}},
        {"seed": 6},
    ]
    assert len({make_job(**change).key for change in ({}, *changes)}) == len(changes) + 1


def test_equal_jobs_have_the_keys_of_stored_results_however_a_number_is_written():
    assert make_job().key == "1170d3bdcc07fd78a794"
    whole, broken = (make_job(method_fields={"weight_decay": zero}) for zero in (0, 0.0))
    assert whole == broken
    assert whole.key == broken.key


def test_a_flat_row_has_names_and_figures():
    row = replace(ended(make_job()), environment={"commit": "abc", "device": "cpu"}, created="now")
    flat = row.flat()
    expected = {"dataset": "toy", "imbalance.ratio": 0.1, "method.max_epochs": 3, "seed": 5}
    expected |= {"macro_f1": 50.0, "validation": 50.0, "commit": "abc"}
    expected |= {"device": "cpu", "created": "now", "key": row.job.key, "status": "done"}
    assert expected.items() <= flat.items()
    assert failed(make_job()).flat()["reason"] == "ValueError: no"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("outcome", '{"metrics": {'),
        ("outcome", "{}"),
        ("outcome", "[1]"),
        ("outcome", '{"metrics": 1, "validation": 2}'),
        ("outcome", '{"metrics": {}, "validation": null}'),
        ("outcome", '{"metrics": {}, "validation": "a"}'),
        ("outcome", "[" * 100_000),
        ("outcome", b'{"metrics": {}, "validation": 1, "note": "\xff\xfe"}'),
        ("outcome", 7),
        ("environment", "{"),
        ("method_fields", b"\xff"),
        ("method_fields", "nothing"),
        ("imbalance_fields", "[]"),
        ("dataset", b"\xff\xfe"),
        ("status", "dome"),
        ("created", b"\xff"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_damaged_cell_costs_its_row_alone_and_is_told(store, column, value):
    jobs = [make_job(seed=seed) for seed in (5, 6, 7)]
    store.add(*map(ended, jobs))
    damage(store, column, value)
    assert [row.job for row in store.rows()] == jobs[1:]
    (line,) = store.damage
    assert str(store.path) in line
    assert jobs[0].key in line
    assert column in line
    assert [row.job for row in store.rows(parts=("validation",))] == jobs[1:]
    assert store.damage == [line]
    # It can be run again, which repairs it.
    assert store.claim(jobs) == jobs[:1]
    store.add(ended(jobs[0]))
    assert len(Store(store.path).rows()) == 3


@given(row=rows)
def test_parts_of_an_outcome_are_as_they_were_written(shared_store, row):
    shared_store.add(row)
    (found,) = shared_store.rows(key=row.job.key, parts=("validation", "metrics", "absent"))
    wanted = {name: row.outcome[name] for name in ("validation", "metrics")}
    assert json.dumps(dict(found.outcome)) == json.dumps(wanted)
    assert found.outcome.get("absent") is None
    assert len(found.outcome) == 2


# What is asked in SQL.


def test_rows_come_in_the_order_they_were_written_filtered_by_any_column(store):
    for dataset in ("toy", "cora"):
        for method in ("gcn", "reweight"):
            for seed in (6, 5):
                store.add(failed(make_job(dataset=dataset, method=method, seed=seed)))
                store.add(ended(make_job(dataset=dataset, method=method, seed=seed)))
    store.add(failed(make_job(imbalance="natural", seed=7)))
    assert [row.job.seed for row in store.rows()] == [6, 5] * 4 + [7]
    assert len(store.rows(dataset="toy")) == 5
    assert len(store.rows(dataset="toy", method="gcn")) == 3
    assert len(store.rows(dataset="toy", method="gcn", seed=6)) == 1
    assert len(store.rows(imbalance="natural")) == 1
    # a second try replaces the first
    assert [row.job.seed for row in store.rows(status="failed")] == [7]
    assert store.rows(dataset="pubmed") == []
    assert len(store.rows(dataset=None, seed=None)) == 9  # what is None is not asked for
    some = store.rows(dataset=["toy", "cora"], method={"gcn"}, seed=[6, 7])
    assert [(row.job.dataset, row.job.seed) for row in some] == [
        ("toy", 6),
        ("cora", 6),
        ("toy", 7),
    ]


EARLIER = """
CREATE TABLE claims (
    key TEXT PRIMARY KEY, host TEXT NOT NULL, process INTEGER NOT NULL, seen REAL NOT NULL,
    boot TEXT NOT NULL DEFAULT '', started TEXT NOT NULL DEFAULT ''
);
"""


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("outcome", "{"),
        ("status", "dome"),
        ("imbalance_fields", "[1]"),
        ("imbalance_fields", "[" * 5000 + "]" * 5000),
        ("dataset", b"\xff"),
        ("imbalance", b"\xff"),
        ("method", b"\xff"),
    ],
)
def test_groups_leave_out_damaged_rows_and_tell_them(store, column, value):
    store.add(*(ended(make_job(seed=seed), test=seed) for seed in (5, 6, 7)))
    damage(store, column, value)
    (group,) = group_runs(store.scan()).values()
    assert (group.runs, group.failed, group.sums[1]) == (2, 0, 13.0)
    (line,) = store.damage
    assert make_job().key in line
    assert column in line


def test_groups_count_and_average(store):
    for method, test in (("gcn", 40.0), ("mlp", 10.0), ("gcn", 60.0)):
        store.add(ended(make_job(method=method, seed=int(test)), test=test))
    store.add(failed(make_job(method="mlp", seed=3)))
    store.add(ended(make_job(method="bad", seed=3), test=float("nan")))
    found = {method: group for (_, method), group in group_runs(store.scan()).items()}
    assert list(found) == ["gcn", "mlp", "bad"]
    assert (found["gcn"].runs, found["gcn"].failed, found["gcn"].sums[1]) == (2, 0, 100.0)
    assert (found["mlp"].runs, found["mlp"].failed, found["mlp"].sums[1]) == (2, 1, 10.0)
    assert math.isnan(found["bad"].sums[1])
    assert [key[1] for key in group_runs(store.scan(method="mlp", seed=3))] == ["mlp"]
    assert store.damage == []


def test_groups_are_of_rows_that_can_be_read(store):
    """A score that is missing is damage, but NaN is not."""
    good, bad, *_ = jobs = [make_job(seed=seed) for seed in range(5)]
    store.add(ended(good, test=40.0), failed(bad), *map(ended, jobs[2:]))
    damage(store, "outcome", '{"metrics": {}, "validation": null}', seed=2)
    damage(store, "outcome", '{"metrics": {}, "validation": NaN}', seed=3)
    damage(store, "status", "dome", seed=4)
    (group,) = group_runs(store.scan()).values()
    assert (group.runs, group.failed, len(store.damage)) == (3, 1, 2)


def test_claims_of_an_earlier_version_hold(tmp_path):
    path = tmp_path / "store.sqlite"
    with closing(sqlite3.connect(path)) as base:
        base.executescript(TABLES + "DROP TABLE claims;" + EARLIER)
        base.execute(f"PRAGMA user_version = {SCHEMA}")
        job = make_job()
        process = os.getppid()
        base.execute(
            "INSERT INTO claims VALUES (?, ?, ?, ?, 'a', '1')",
            (job.key, *this_process()[:1], process, NOW),
        )
        base.commit()
    store = Store(path)
    (holder,) = store.holders()
    assert (holder.claimant.process, holder.jobs) == (process, 1)
    assert store.claim([job, make_job(seed=6)]) == [make_job(seed=6)]


# Files that become a store, can be read as one, or are refused and left alone.


def refused(path):
    with pytest.raises(ValueError, match=r".") as error:
        Store(path)
    (line,) = str(error.value).splitlines()
    assert str(path) in line
    return line


def base_with(script):
    def write(path):
        with closing(sqlite3.connect(path)) as base:
            base.executescript(script)

    return write


@pytest.mark.parametrize("kind", ["store", "labels"])
@pytest.mark.parametrize(
    "script",
    [
        "CREATE TRIGGER {0} AFTER INSERT ON {0} BEGIN DELETE FROM {0}; END",
        "CREATE INDEX more ON {0} (length(hex(zeroblob(100000000))))",
        "ALTER TABLE {0} ADD COLUMN more TEXT AS (hex(zeroblob(100000000)))",
        "DROP TABLE {0}; CREATE VIEW {0} AS SELECT * FROM sqlite_master",
        "CREATE TABLE more (a TEXT CHECK (length(hex(zeroblob(100000000))) > 0))",
    ],
    ids=range(5),
)
def test_a_schema_of_somebody_else_is_not_used(tmp_path, kind, script):
    path = tmp_path / "file.sqlite"
    opened = Store if kind == "store" else LabelFile
    opened(path)
    base_with(script.format("runs" if kind == "store" else "events"))(path)
    with pytest.raises(ValueError, match=r"is not an evengraph .* but another SQLite file"):
        opened(path)


def repeating(path):
    """A store of a few pages that list one another hundreds of times each: 10**11 rows."""
    Store(path).add(failed(make_job()))
    with closing(sqlite3.connect(path)) as base:
        base.execute("PRAGMA journal_mode = DELETE")
        (root,) = base.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs'").fetchone()
        (size,) = base.execute("PRAGMA page_size").fetchone()
    content, levels = bytearray(path.read_bytes()), 4
    count = len(content) // size
    leaf, pages = (
        content[(root - 1) * size : root * size],
        [root, *range(count + 1, count + levels)],
    )
    for page, child in zip(pages, [*pages[1:], count + levels], strict=True):
        cells = (size - 8) // 6  # at most
        head = struct.pack(">BHHHBI", 5, 0, cells, size - 5, 0, child)
        cell = struct.pack(">IB", child, 1)
        block = (head + struct.pack(">H", size - 5) * cells).ljust(size - 5, b"\0") + cell
        content[(page - 1) * size : page * size] = block
    content += leaf
    content[28:32] = struct.pack(">I", count + levels)
    path.write_bytes(content)


def test_rows_are_not_more_than_the_size_of_the_file_allows(tmp_path):
    repeating(path := tmp_path / "store.sqlite")
    for read in (Store.rows, lambda store: group_runs(store.scan())):
        with pytest.raises(ValueError, match=r"store\.sqlite is damaged: it has more rows than"):
            read(Store(path))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        *(
            (text, "not an evengraph store")
            for text in ("x", "short", "x" * 511, "x" * 512, "dataset,method\n" * 300)
        ),
        (base_with("CREATE TABLE runs (legs)"), "not an evengraph store but another SQLite"),
        (base_with("CREATE TABLE t (a); PRAGMA user_version = 1"), "but another SQLite file"),
        (
            base_with(f"CREATE TABLE t (a); PRAGMA user_version = {SCHEMA + 1}"),
            f"format {SCHEMA + 1}",
        ),
    ],
    ids=range(8),
)
def test_a_file_of_others_is_refused_and_left_as_it_was(content, words, tmp_path):
    path = tmp_path / "other"
    path.write_text(content) if isinstance(content, str) else content(path)
    before = path.read_bytes()
    assert words in refused(path)
    refused(path / "store.sqlite")  # below a file
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_refused_and_an_empty_file_becomes_a_store(tmp_path):
    assert "Cannot open" in refused(tmp_path)
    assert not list(tmp_path.iterdir())
    (path := tmp_path / "empty.sqlite").touch()
    Store(path).add(ended(make_job()))
    assert len(Store(path).rows()) == 1


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
            assert (store.count(), len(group_runs(store.scan()))) == (1, 1)
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
    with closing(sqlite3.connect(store.path)) as base:
        base.execute("UPDATE boards SET content = '{' WHERE name = 'bad'")
        base.commit()
    assert store.experiments() == {"good": {"cells": []}}
    assert len(store.damage) == 1


def test_a_damaged_page_names_the_file(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.add(*(ended(make_job(seed=seed)) for seed in range(200)))
    content = bytearray(store.path.read_bytes())
    content[20_000:60_000] = bytes(40_000)
    store.path.write_bytes(content)
    with pytest.raises(ValueError, match=r"store\.sqlite is damaged: .*malformed"):
        Store(store.path).rows()


# Which process is alive.


NOW = 4e9  # after all processes of these tests started


def alive(claimant, seen=NOW):
    return claimant.alive(seen=seen, now=NOW)


def test_a_number_that_a_later_process_got_is_not_the_one_that_made_the_claim():
    me, started = this_process(), psutil.Process().create_time()
    assert me.process == os.getpid()
    assert alive(me, seen=started + 1)
    assert alive(me, seen=started - 1)  # the clock was set
    assert not alive(me, seen=started - 60)


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="no zombies")
def test_a_dead_process_is_dead_also_before_anyone_waited_for_it():
    child = subprocess.Popen([sys.executable, "-c", ""])
    claimant = Claimant(socket.gethostname(), child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    assert not alive(claimant)
    child.wait()
    assert not alive(claimant)


def test_a_process_of_another_user_is_alive(monkeypatch):
    def forbidden(process):
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil.Process, "create_time", forbidden)
    assert alive(Claimant(socket.gethostname(), os.getppid()))


@pytest.mark.parametrize("process", [0, -1, 2**40, "12", None, b"", 1.5], ids=str)
@pytest.mark.parametrize("seen", ["today", None, b"", float("inf")], ids=str)
def test_a_damaged_claim_is_that_of_nobody(process, seen):
    assert not alive(this_process()._replace(process=process))
    assert not alive(Claimant("another machine", os.getpid()), seen=seen)


# Several processes at one store.


COMMON = """
import json, sys
from pathlib import Path
from evengraph.lab.store import JobSpec, Row, Store
store, given = Store(Path(sys.argv[1])), json.loads(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
"""

WRITER = (
    COMMON
    + """
first, count = int(sys.argv[3]), int(sys.argv[4])
for seed in range(first, first + count):
    outcome = {"validation": seed, "metrics": {"accuracy": seed}}
    outcome["confusion_matrix"] = [[seed] * 30] * 30
    store.add(Row(job=JobSpec(**given | {"seed": seed}), outcome=outcome))
"""
)

CLAIMER = (
    COMMON
    + """
for seed in range(60):
    print(*(job.seed for job in store.claim([JobSpec(**given | {"seed": seed})])), flush=True)
print("end", flush=True)
sys.stdin.readline()
"""
)

JOB = json.dumps(asdict(make_job()))

PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


def begin(*children):
    """Let processes go at once, when all are ready."""
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()


@contextmanager
def children_of(count, code, *arguments):
    """Processes that are gone, and waited for, at the end."""
    children = [python(code, *map(str, a), **PIPES) for a in zip(*arguments, strict=True)]
    assert len(children) == count
    try:
        yield children
    finally:
        for child in children:
            child.kill()
            child.communicate()


def test_a_store_can_be_created_by_several_at_once(tmp_path):
    def create(path, barrier):
        barrier.wait()
        return Store(path).rows()

    with ThreadPoolExecutor(8) as pool:
        for number in range(30):
            path, barrier = tmp_path / f"{number}.sqlite", Barrier(8)
            started = [pool.submit(create, path, barrier) for _ in range(8)]
            assert [one.result() for one in started] == [[]] * 8


def test_two_processes_write_at_once_and_lose_nothing(tmp_path):
    path = tmp_path / "store.sqlite"
    with children_of(2, WRITER, [path] * 2, [JOB] * 2, [0, 1000], [200] * 2) as children:
        begin(*children)
        assert [child.wait() for child in children] == [0, 0]
    seeds = [row.job.seed for row in Store(path).rows()]
    assert sorted(seeds) == [*range(200), *range(1000, 1200)]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_process_killed_while_it_writes_leaves_whole_rows(tmp_path):
    path = tmp_path / "store.sqlite"
    with children_of(1, WRITER, [path], [JOB], [0], [10**9]) as (child,):
        begin(child)
        wait_for(lambda: len(Store(path).rows()) >= 20, child)
        child.send_signal(signal.SIGKILL)
        child.wait()
    store = Store(path)
    found = store.rows()
    assert [row.job.seed for row in found] == list(range(len(found)))
    for row in found:
        seed = row.job.seed
        outcome = {"validation": seed, "metrics": {"accuracy": seed}}
        outcome["confusion_matrix"] = [[seed] * 30] * 30
        assert row == Row(job=make_job(seed=seed), outcome=outcome, created=row.created)
    store.add(ended(make_job(seed=10**9)))
    assert len(store.rows()) == len(found) + 1
    with closing(sqlite3.connect(path)) as base:
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_only_one_of_two_processes_gets_a_job(tmp_path):
    path = tmp_path / "store.sqlite"
    with children_of(2, CLAIMER, [path] * 2, [JOB] * 2) as children:
        begin(*children)
        taken = [_numbers(child) for child in children]
        assert sorted(taken[0] + taken[1]) == list(range(60))
        store = Store(path)
        assert running(store) == 60
        every = [make_job(seed=seed) for seed in range(60)]
        assert store.claim(every) == []
        # A process that is gone gives way at once, the other one keeps what it has.
        more = max((0, 1), key=lambda place: len(taken[place]))
        freed, kept = taken[more], taken[1 - more]
        children[more].kill()
        children[more].wait()
        assert running(store) == len(kept)
        assert [job.seed for job in store.claim(every)] == sorted(freed)
        assert running(store) == 60
        store.release()
        assert running(store) == len(kept)


def _numbers(child):
    """What a process says until it says that it is at its end."""
    lines = iter(child.stdout.readline, "end\n")
    return [int(number) for line in lines for number in line.split()]


def test_what_has_ended_cannot_be_claimed(store):
    done, not_done, open_ = every = [make_job(seed=seed) for seed in range(3)]
    assert store.claim(every) == every
    assert store.claim(every) == every  # a process may claim twice
    assert running(store) == 3
    store.add(ended(done))
    store.add(failed(not_done))
    assert running(store) == 1  # a row ends its claim
    assert store.claim(every) == [open_]


def hold(store, job, host, process, seen):
    with closing(sqlite3.connect(store.path)) as base:
        text = "INSERT OR REPLACE INTO claims (key, host, process, seen) VALUES (?, ?, ?, ?)"
        base.execute(text, (job.key, host, process, seen))
        base.commit()


def test_a_claim_is_looked_up_and_made_in_one_transaction(store, monkeypatch):
    """While one process looks, no other can write; the race of two processes is hard to hit."""
    seen = []

    def look(claimant, **times):
        with closing(sqlite3.connect(store.path, timeout=0)) as other:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
            seen.append(claimant)
        return True

    hold(store, make_job(), "another machine", 1, 0.0)
    monkeypatch.setattr("evengraph.lab.store.Claimant.alive", look)
    assert store.claim([make_job()]) == []
    assert len(seen) == 1


@pytest.mark.parametrize("sign", [-1, 1], ids=["past", "future"])
def test_another_machines_claim_holds_until_it_is_old(store, monkeypatch, sign):
    store.claim([make_job(seed=1), make_job(seed=2)])
    hold(store, job := make_job(), "another machine", os.getpid(), NOW + sign * STALE)
    monkeypatch.setattr("evengraph.lab.store.time", lambda: NOW + sign)
    mine, other = store.holders()
    assert (mine.claimant, mine.jobs) == (this_process(), 2)
    assert (other.claimant.host, other.jobs) == ("another machine", 1)
    assert (store.claim([job]), running(store)) == ([], 3)
    monkeypatch.setattr("evengraph.lab.store.time", lambda: NOW - sign)
    assert running(store) == 2
    assert store.claim([job]) == [job]


def test_release_leaves_what_others_hold_unless_told_otherwise(store):
    mine, theirs, far = (make_job(seed=seed) for seed in range(3))
    store.claim([mine])
    hold(store, theirs, socket.gethostname(), os.getppid(), NOW)  # alive
    hold(store, far, "another machine", os.getpid(), datetime.now().timestamp())
    assert running(store) == 3
    assert store.release() == 1
    assert running(store) == 2
    assert store.claim([mine, theirs, far]) == [mine]
    assert store.release(all_processes=True) == 3
    assert store.claim([theirs, far]) == [theirs, far]


def test_forget_drops_rows_of_a_status_and_their_jobs_are_open_again(store):
    good, bad, worse = (make_job(seed=seed) for seed in range(3))
    store.add(ended(good))
    store.add(failed(bad))
    store.add(failed(worse))
    assert store.forget("failed") == 2
    assert store.forget("failed") == 0
    assert [row.job for row in store.rows()] == [good]
    assert store.claim([good, bad, worse]) == [bad, worse]


# The file below it.


def test_an_error_undoes_what_was_written(tmp_path):
    file = SqliteFile(tmp_path / "deep" / "file.sqlite", "evengraph file")
    with pytest.raises(ValueError, match="Cannot open or write"):
        file.create("CREATE TABLE t (a TEXT); nonsense;")
    file.create("CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('first');")
    with pytest.raises(ValueError, match="no such table"), file.write() as base:
        [base.execute(f"INSERT INTO {table} VALUES ('second')") for table in "tu"]
    with file.read() as base:
        assert base.execute("SELECT a FROM t").fetchall() == [("first",)]
        # a cell that is no text is bytes
        assert base.execute("SELECT CAST(x'ff41' AS TEXT)").fetchone() == (b"\xffA",)


class Refusing:
    """A connection that refuses for a number of times, or for ever."""

    def __init__(self, message, times=10**9):
        self.message, self.times, self.calls = message, times, 0

    def execute(self, text):
        self.calls += 1
        if self.calls <= self.times:
            raise sqlite3.OperationalError(self.message)

    def close(self, *args):
        pass

    setlimit = set_progress_handler = close


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
        assert asked[1]["uri"]  # some builds of SQLite do so unasked
    else:
        with pytest.raises(ValueError, match=f"^Cannot open or write .*: {error}"), file.read():
            pass


def test_rows_are_found_by_more_values_than_a_query_has_variables(store):
    store.add(ended(make_job(seed=5)), ended(make_job(seed=7)))
    assert [row.job.seed for row in store.rows(seed=range(6, 300_000))] == [7]
    assert store.rows(seed=[], method="gcn") == []
