import os
import signal
import socket
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest
import torch

from evengraph.core.store import Store
from evengraph.experiment import engines
from evengraph.experiment.engines import (
    Place,
    card,
    execute,
    here,
    pick_engine,
    processes,
    ray_cluster,
)
from evengraph.experiment.plan import Plan
from evengraph.experiment.reproduce import reproduce
from evengraph.methods import METHODS
from tiny_experiments import ended, entry, failed, figures, spec_of, toy_job, wait_for

CPU = torch.device("cpu")
BAD = toy_job("unignn", max_epochs=2, clusters_per_class=900)
JOBS = [
    toy_job(max_epochs=3),
    BAD,
    toy_job("unignn", max_epochs=2, clusters_per_class=3),
    toy_job(max_epochs=3, seed=6),
]
REASON = "ValueError: clusters_per_class=900 makes 4500 clusters"


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "store.sqlite")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What the jobs give in this process."""
    place = Place(tmp_path_factory.mktemp("here") / "store.sqlite")
    told = []
    here(JOBS, told.append, place=place)
    return place, told


def check_rows(place, told, expected):
    """The rows of an engine are those of another, stored and told of once each."""
    rows = Store(place.store).rows()
    assert figures(rows) == figures(expected)
    assert figures(told) == figures(rows)
    assert len(told) == len(rows) == len(JOBS)
    assert Store(place.store).running() == 0


def test_runs_in_this_process_are_stored_and_told_of(expected):
    place, told = expected
    check_rows(place, told, told)
    assert [row.job for row in told] == JOBS
    rows = Store(place.store).rows()
    assert [row.status for row in rows] == ["done", "failed", "done", "done"]
    done = rows[0]
    assert done.outcome["epochs"] == 3
    assert 0 <= done.outcome["metrics"]["macro_f1"] <= 100
    assert done.outcome["validation"] > 0
    assert "history" not in done.outcome
    assert done.environment["torch"] == torch.__version__
    assert done.created


def test_a_run_that_fails_has_its_reason_and_the_rest_goes_on(expected):
    _, told = expected
    assert told[1].reason.startswith(REASON)
    assert told[1].outcome == {}
    assert all(row.reason == "" for row in told if row.done)


def test_several_processes_give_the_same_rows(place, expected):
    told = []
    processes(JOBS, told.append, place=place, workers=2)
    check_rows(place, told, expected[1])


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ray_gives_the_same_rows(place, expected, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    told = []
    Store(place.store).add(expected[1][0])  # has ended, and is not run again
    ray_cluster(JOBS, told.append, place=place, address=None)
    assert not ray.is_initialized()
    check_rows(place, [expected[1][0], *told], expected[1])
    assert len(told) == len(JOBS) - 1


def test_a_row_is_stored_before_it_is_told_of(place):
    store = Store(place.store)

    def look(row):
        assert row.job.key in {one.job.key for one in store.rows()}
        assert store.running() == 0

    here([toy_job(max_epochs=1), toy_job(max_epochs=1, seed=6)], look, place=place)
    assert len(store.rows()) == 2


@pytest.mark.parametrize("engine", [here, partial(processes, workers=2)], ids=["here", "many"])
def test_what_has_ended_or_another_process_is_at_is_left_alone(engine, place):
    store = Store(place.store)
    over, broken, taken, free = (toy_job(max_epochs=1, seed=seed) for seed in range(5, 9))
    store.add(ended(over, validation=12.5))
    store.add(failed(broken))
    with closing(sqlite3.connect(store.path)) as base:  # a process that lives: the one above
        values = (taken.key, socket.gethostname(), os.getppid(), 0.0)
        base.execute("INSERT INTO claims VALUES (?, ?, ?, ?)", values)
        base.commit()
    told = []
    engine([over, broken, taken, free], told.append, place=place)
    assert [row.job for row in told] == [free]
    rows = {row.job.key: row for row in store.rows()}
    assert rows.keys() == {over.key, broken.key, free.key}
    assert rows[over.key].outcome["validation"] == 12.5
    assert store.running() == 1


# Failures.


def raise_on(monkeypatch, error):
    """Let the run of seed 6 raise."""
    real = engines.run_seed

    def run(task, method, *, seed):
        if seed == 6:
            raise error
        return real(task, method, seed=seed)

    monkeypatch.setattr(engines, "run_seed", run)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no\nand why"),
        FloatingPointError("loss is nan"),
        MemoryError("none left"),
        RuntimeError("odd shapes"),
        *(
            pytest.param(
                error,
            )
            for error in (IndexError("far"), TypeError("odd"), OSError("no file"))
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_run_raises_is_its_row(error, place, monkeypatch):
    raise_on(monkeypatch, error)
    here([toy_job(max_epochs=1, seed=seed) for seed in (5, 6, 7)], lambda row: None, place=place)
    rows = Store(place.store).rows()
    assert [row.status for row in rows] == ["done", "failed", "done"]
    assert rows[1].reason == f"{type(error).__name__}: {error}".splitlines()[0]
    assert rows[1].environment["torch"] == torch.__version__


def test_a_split_that_cannot_be_made_is_a_failed_row(place):
    job = toy_job(max_epochs=1)
    bad = replace(job, imbalance_fields={**job.imbalance_fields, "minority": 9})
    here([bad, job], lambda row: None, place=place)
    first, second = Store(place.store).rows()
    assert (first.status, second.status) == ("failed", "done")
    assert "minority" in first.reason


def test_a_worker_that_dies_over_a_run_twice_fails_it_and_the_rest_is_done(place):
    """The long run never ends by itself: it has to be killed for the engine to end."""
    store = Store(place.store)
    long = toy_job(max_epochs=10**9, patience=10**9)
    short = [toy_job(max_epochs=2, seed=seed) for seed in (6, 7, 8)]
    killed, over = [], threading.Event()

    def holder():
        with closing(sqlite3.connect(store.path, timeout=60)) as base:
            text = "SELECT process FROM claims WHERE key = ?"
            found = base.execute(text, (long.key,)).fetchone()
        return found is not None and found[0] not in killed and found[0]

    def kill():
        while len(killed) < 4:
            process = wait_for(lambda: over.is_set() or holder())
            if over.is_set():
                return
            assert process != os.getpid()
            if len(killed) == 3:  # it was tried too often: let the engine come to its end
                store.add(failed(long, "not given up"))
            os.kill(process, signal.SIGKILL)
            killed.append(process)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    told = []
    processes([long, *short], told.append, place=place, workers=2)
    over.set()
    killer.join()
    assert len(killed) == 2
    rows = {row.job.key: row for row in store.rows()}
    assert rows.keys() == {job.key for job in (long, *short)}
    assert (rows[long.key].status, rows[long.key].reason) == (
        "failed",
        "The process died over it, twice.",
    )
    assert all(rows[job.key].done for job in short)
    assert sorted(row.job.key for row in told) == sorted(rows)
    assert store.running() == 0


# Ctrl-C.


def test_ctrl_c_before_the_first_epoch_keeps_what_has_ended(place, monkeypatch):
    raise_on(monkeypatch, KeyboardInterrupt())
    jobs = [toy_job(max_epochs=1, seed=seed) for seed in (5, 6, 7)]
    told = []
    with pytest.raises(KeyboardInterrupt):
        here(jobs, told.append, place=place)
    store = Store(place.store)
    assert [row.job.seed for row in store.rows()] == [5]
    assert len(told) == 1
    assert store.running() == 0
    assert store.claim(jobs) == jobs[1:]


def test_a_run_that_ctrl_c_cut_short_is_not_stored(place, monkeypatch):
    real = engines.run_seed
    monkeypatch.setattr(
        engines,
        "run_seed",
        lambda task, method, *, seed: replace(real(task, method, seed=seed), interrupted=seed == 6),
    )
    with pytest.raises(KeyboardInterrupt):
        here([toy_job(max_epochs=1, seed=s) for s in (5, 6, 7)], lambda row: None, place=place)
    assert [row.job.seed for row in Store(place.store).rows()] == [5]
    assert Store(place.store).running() == 0


# Jobs side by side, as on a card; here they go one after the other.


def test_jobs_side_by_side_give_what_each_gives_alone(expected):
    told = []
    jobs = [job for job in JOBS if job != BAD]
    execute(jobs, CPU, None, told.append)
    alone = {row.job.key: row for row in expected[1]}
    assert [row.job for row in told] == jobs
    for row in told:
        for name in ("metrics", "confusion_matrix", "validation", "epochs"):
            assert row.outcome[name] == alone[row.job.key].outcome[name]


def test_a_failure_side_by_side_is_that_of_one_job():
    told = []
    execute(JOBS, CPU, None, told.append)
    assert {row.job.key: row.status for row in told} == {
        job.key: "failed" if job == BAD else "done" for job in JOBS
    }


def test_a_split_that_cannot_be_made_side_by_side_is_a_failed_row():
    job = toy_job(max_epochs=1)
    bad = replace(job, imbalance_fields={**job.imbalance_fields, "minority": 9})
    told = []
    execute([bad, job], CPU, None, told.append)
    assert {row.job.key: row.status for row in told} == {bad.key: "failed", job.key: "done"}


@pytest.mark.parametrize("error", [TypeError("odd"), IndexError("odd"), RuntimeError("odd")])
def test_a_score_that_fails_side_by_side_is_tried_again(monkeypatch, error):
    real, failed = engines.record_of, []

    def fail_once(task, method, *, seed):
        if seed == 6 and not failed:
            failed.append(seed)
            raise error
        return real(task, method, seed=seed)

    monkeypatch.setattr(engines, "record_of", fail_once)
    jobs = [toy_job(max_epochs=1, seed=seed) for seed in (5, 6, 7)]
    told = []
    execute(jobs, CPU, None, told.append)
    assert failed
    assert sorted((row.job.seed, row.status) for row in told) == [(s, "done") for s in (5, 6, 7)]


def test_settings_that_no_method_takes_are_a_failed_row():
    job = toy_job(max_epochs=1)
    bad = replace(job, method_fields={**job.method_fields, "patience": -1})
    for jobs in ([bad], [bad, job]):
        told = []
        execute(jobs, CPU, None, told.append)
        assert {row.job.key: row.status for row in told}[bad.key] == "failed"


def test_tasks_of_one_split_are_made_once_and_share_their_graph(monkeypatch):
    real, made = engines.make_task, []
    monkeypatch.setattr(engines, "make_task", lambda *call: made.append(real(*call)) or made[-1])
    jobs = [toy_job(max_epochs=epochs, seed=seed) for epochs in (1, 2) for seed in (5, 6)]
    told = []
    execute(jobs, CPU, None, told.append)
    assert len(told) == 4
    assert len(made) == 2
    assert made[0].graph.x is made[1].graph.x


def test_the_one_process_there_is_still_hears_ctrl_c(place, monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    job = toy_job(max_epochs=1)
    rows = engines._in_a_process(job, place=place, parent=os.getpid(), workers=2)
    assert [row.job for row in rows] == [job]
    assert signal.getsignal(signal.SIGINT) is before


def test_what_does_not_fit_side_by_side_is_tried_alone(monkeypatch):
    real = engines.fit_many

    def full(methods, tasks, *, seeds, on_fit, progress):
        real(methods[:1], tasks[:1], seeds=seeds[:1], on_fit=on_fit, progress=progress)
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(engines, "fit_many", full)
    jobs = [toy_job(max_epochs=1, seed=seed) for seed in (5, 6, 7)]
    told = []
    execute(jobs, CPU, None, told.append)
    assert [(row.job, row.status) for row in told] == [(job, "done") for job in jobs]


@pytest.mark.parametrize(
    "last",
    [
        False,
        pytest.param(
            True,
        ),
    ],
)
def test_ctrl_c_side_by_side_is_passed_on(last, monkeypatch):
    def cut_short(self, *arguments, **options):
        history = real(self, *arguments, **options)
        history.interrupted = self.max_epochs == 2
        return history

    real = METHODS["gcn"]._train
    monkeypatch.setattr(METHODS["gcn"], "_train", cut_short)
    jobs = [toy_job(max_epochs=1), toy_job(max_epochs=2), toy_job(max_epochs=3)]
    told = []
    with pytest.raises(KeyboardInterrupt):
        execute(jobs[:2] if last else jobs, CPU, None, told.append)
    assert [row.job for row in told] == jobs[:1]


# By name.


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"name": "here"}, "here"),
        ({"name": "processes", "workers": 2}, "processes"),
        ({"name": "processes", "workers": 1}, "here"),
        ({"name": "ray"}, "ray_cluster"),
        ({"name": "auto", "workers": 2}, "processes"),
        ({"name": "auto", "workers": 1}, "here"),
        ({"name": "auto", "workers": 2, "address": "there:1"}, "ray_cluster"),
    ],
)
def test_engines_have_names(asked, found, place):
    engine = pick_engine(place=place, **asked)
    assert engine.func.__name__ == found
    assert engine.keywords["place"] == place
    if found == "processes":
        assert engine.keywords["workers"] == 2
    if found == "ray_cluster":
        assert engine.keywords["address"] == asked.get("address")


def test_a_card_has_an_engine_of_its_own_and_an_unknown_one_is_refused(tmp_path, place):
    there = Place(tmp_path / "store.sqlite", device="cuda")
    assert pick_engine("auto", there, workers=4).func is card
    with pytest.raises(ValueError, match=r"auto, here, processes or ray, got 'slurm'"):
        pick_engine("slurm", place)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_card_takes_some_side_by_side_and_the_rest_by_processes(
    place, expected, monkeypatch, workers
):
    monkeypatch.setattr(engines, "can_replicate", lambda device: True)
    others = [toy_job("smote", max_epochs=2, seed=seed) for seed in (5, 6)]
    told = []
    card([*JOBS, *others], told.append, place=place, workers=workers)
    rows = {row.job.key: row for row in Store(place.store).rows()}
    assert {row.job.key for row in told} == set(rows) == {job.key for job in (*JOBS, *others)}
    together = [rows[job.key].outcome["together"] for job in JOBS if job != BAD]
    assert together == [4, 4, 4]  # the second of four spoils nothing for the others
    assert {rows[job.key].outcome["together"] for job in others} == {1}  # a core for each
    assert rows[BAD.key].reason.startswith(REASON)


@pytest.mark.slow
def test_an_experiment_with_a_choice_goes_through_several_processes(place):
    spec = spec_of(
        entry(grid={"max_epochs": [1, 4]}, more_seeds=[8]), entry("wide", like="GCN"), seeds=[5]
    )
    store = Store(place.store)
    reproduce([spec], store, pick_engine("processes", place, workers=2))
    plan = Plan(spec, store.rows())
    assert plan.missing() == []
    assert [len(cell.rows) for cell in plan.cells()] == [2, 1]
    assert len(store.rows()) == 3
