"""Several processes at one store: writers, kills, claims."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from threading import Barrier

import pytest

from evengraph.lab.store import STALE, Row, Store, this_process
from tiny_experiments import ended, failed, make_job, python, wait_for


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store.sqlite")


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
        assert store.running() == 60
        every = [make_job(seed=seed) for seed in range(60)]
        assert store.claim(every) == []
        # A process that is gone gives way at once, the other one keeps what it has.
        more = max((0, 1), key=lambda place: len(taken[place]))
        freed, kept = taken[more], taken[1 - more]
        children[more].kill()
        children[more].wait()
        assert store.running() == len(kept)
        assert [job.seed for job in store.claim(every)] == sorted(freed)
        assert store.running() == 60
        store.release()
        assert store.running() == len(kept)


def _numbers(child):
    """What a process says until it says that it is at its end."""
    lines = iter(child.stdout.readline, "end\n")
    return [int(number) for line in lines for number in line.split()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the state from /proc")
def test_a_killed_process_gives_way_before_anyone_waited_for_it(tmp_path):
    path = tmp_path / "store.sqlite"
    with children_of(1, CLAIMER, [path], [JOB]) as (child,):
        begin(child)
        assert len(_numbers(child)) == 60
        os.kill(child.pid, signal.SIGKILL)
        state = Path(f"/proc/{child.pid}/stat")
        wait_for(lambda: state.read_text().rpartition(")")[2].split()[0] == "Z")
        assert len(Store(path).claim([make_job(seed=0)])) == 1


def test_a_process_may_claim_twice_and_give_back(store):
    jobs = [make_job(seed=seed) for seed in range(3)]
    assert store.claim(jobs) == jobs
    assert store.claim(jobs) == jobs
    assert store.running() == 3
    store.release()
    assert store.running() == 0


def test_what_has_ended_cannot_be_claimed(store):
    done, not_done, open_ = (make_job(seed=seed) for seed in range(3))
    assert store.claim([done, not_done, open_]) == [done, not_done, open_]
    store.add(ended(done))
    store.add(failed(not_done))
    assert store.running() == 1  # a row ends its claim
    assert store.claim([done, not_done, open_]) == [open_]


def hold(store, job, host, process, seen, boot="", started=""):
    values = job.key, host, process, seen, boot, started
    with closing(sqlite3.connect(store.path)) as base:
        base.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?)", values)
        base.commit()


def test_holders_are_processes_with_the_number_of_their_jobs(store):
    store.claim([make_job(seed=1), make_job(seed=2)])
    hold(store, make_job(seed=3), "another machine", 1, datetime.now().timestamp())
    mine, other = store.holders()
    assert (mine.claimant, mine.jobs) == (this_process(), 2)
    assert (other.claimant.host, other.jobs) == ("another machine", 1)


def test_all_claims_can_be_released(store):
    hold(store, make_job(), "another machine", 1, datetime.now().timestamp())
    assert store.claim([make_job()]) == []
    assert store.release() == 0
    assert store.release(all_processes=True) == 1
    assert store.claim([make_job()]) == [make_job()]


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


def test_another_machines_claim_holds_until_it_is_old(store, monkeypatch):
    job, now = make_job(), 1e9
    hold(store, job, "another machine", 1, now)
    monkeypatch.setattr("evengraph.lab.store.time", lambda: now + STALE - 1)
    assert (store.claim([job]), store.running()) == ([], 1)
    monkeypatch.setattr("evengraph.lab.store.time", lambda: now + STALE + 1)
    assert store.running() == 0
    assert store.claim([job]) == [job]


def test_release_leaves_what_others_hold(store):
    mine, theirs, far = (make_job(seed=seed) for seed in range(3))
    store.claim([mine])
    hold(store, theirs, socket.gethostname(), os.getppid(), 0.0)  # alive, and so never too old
    hold(store, far, "another machine", os.getpid(), datetime.now().timestamp())
    assert store.running() == 3
    store.release()
    assert store.running() == 2
    assert store.claim([mine, theirs, far]) == [mine]


def test_forget_drops_rows_of_a_status_and_their_jobs_are_open_again(store):
    good, bad, worse = (make_job(seed=seed) for seed in range(3))
    store.add(ended(good))
    store.add(failed(bad))
    store.add(failed(worse))
    assert store.forget("failed") == 2
    assert store.forget("failed") == 0
    assert [row.job for row in store.rows()] == [good]
    assert store.claim([good, bad, worse]) == [bad, worse]
