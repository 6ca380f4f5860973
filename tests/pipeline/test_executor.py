"""Jobs and where they run: here, in processes, side by side and on Ray; what a record holds."""

import os
import pickle
import platform
import signal
import socket
import sqlite3
import sys
import threading
from contextlib import closing
from dataclasses import replace
from functools import cache
from time import time

import numpy
import pytest
import torch

from evengraph.datasets import toy
from evengraph.lab.reproduce import resolve, run_stored
from evengraph.lab.store import Store
from evengraph.methods import GCN, METHODS, UniGNN
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.evaluation import evaluate
from evengraph.pipeline import executor as module
from evengraph.pipeline.executor import (
    DIED,
    Executor,
    Failure,
    Job,
    LoadedGraph,
    NamedGraph,
    failure_of,
    score,
)
from evengraph.splits import Natural, Step
from tiny_experiments import ended, failed, figures, running, toy_job, wait_for

HERE = Executor()
PROCESSES = Executor(workers=2)
BAD = toy_job("unignn", max_epochs=2, clusters_per_class=900)
JOBS = [
    toy_job(max_epochs=3),
    BAD,
    toy_job("unignn", max_epochs=2, clusters_per_class=3),
    toy_job(max_epochs=3, seed=6),
]
REASON = "ValueError: clusters_per_class=900 makes 4500 clusters"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


def run_all(specs, path, executor=HERE, on_row=None):
    """Run specs with a store; the rows that were told of."""
    told = []
    run_stored(specs, on_row or told.append, store=path, executor=executor)
    return told


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What the jobs give in this process."""
    path = tmp_path_factory.mktemp("here") / "store.sqlite"
    return path, run_all(JOBS, path)


def check_rows(path, told, expected):
    """The rows of a backend are those of another, stored and told of once each."""
    rows = Store(path).rows()
    assert figures(rows) == figures(expected)
    assert figures(told) == figures(rows)
    assert len(told) == len(rows) == len(JOBS)
    assert running(Store(path)) == 0


def test_runs_in_this_process_are_stored_and_told_of(expected):
    path, told = expected
    check_rows(path, told, told)
    assert [row.job for row in told] == JOBS
    rows = Store(path).rows()
    assert [row.status for row in rows] == ["done", "failed", "done", "done"]
    done = rows[0]
    assert done.outcome["epochs"] == 3
    assert 0 <= done.outcome["metrics"]["macro_f1"] <= 100
    assert done.outcome["validation"] > 0
    assert "history" not in done.outcome
    assert done.environment["torch"] == torch.__version__
    assert done.created
    assert rows[1].reason.startswith(REASON)
    assert rows[1].outcome == {}
    assert all(row.reason == "" for row in told if row.done)


def test_several_processes_give_the_same_rows(path, expected):
    check_rows(path, run_all(JOBS, path, PROCESSES), expected[1])


def test_a_row_is_stored_before_it_is_told_of(path):
    store = Store(path)

    def look(row):
        assert row.job.key in {one.job.key for one in store.rows()}
        assert running(store) == 0

    run_all([toy_job(max_epochs=1), toy_job(max_epochs=1, seed=6)], path, on_row=look)
    assert len(store.rows()) == 2


@pytest.mark.parametrize("executor", [HERE, PROCESSES], ids=["here", "many"])
def test_what_has_ended_or_another_process_is_at_is_left_alone(executor, path):
    store = Store(path)
    over, broken, taken, free = (toy_job(max_epochs=1, seed=seed) for seed in range(5, 9))
    store.add(ended(over, validation=12.5))
    store.add(failed(broken))
    with closing(sqlite3.connect(store.path)) as base:  # a process that lives: the one above
        values = (taken.key, socket.gethostname(), os.getppid(), time())
        base.execute("INSERT INTO claims (key, host, process, seen) VALUES (?, ?, ?, ?)", values)
        base.commit()
    told = run_all([over, broken, taken, free], path, executor)
    assert [row.job for row in told] == [free]
    rows = {row.job.key: row for row in store.rows()}
    assert rows.keys() == {over.key, broken.key, free.key}
    assert rows[over.key].outcome["validation"] == 12.5
    assert running(store) == 1


# Failures.


def raise_on(monkeypatch, error):
    """Let the run of seed 6 raise."""
    real = module.score

    def score(job, *fitted, **options):
        if job.seed == 6:
            raise error
        return real(job, *fitted, **options)

    monkeypatch.setattr(module, "score", score)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no\nand why"),
        MemoryError("none left"),
        IndexError("far"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_run_raises_is_its_row(error, path, monkeypatch):
    raise_on(monkeypatch, error)
    run_all([toy_job(max_epochs=1, seed=seed) for seed in (5, 6, 7)], path)
    rows = Store(path).rows()
    assert [row.status for row in rows] == ["done", "failed", "done"]
    assert rows[1].reason == f"{type(error).__name__}: {error}".splitlines()[0]
    assert rows[1].environment["torch"] == torch.__version__


def test_a_worker_that_dies_over_a_run_twice_fails_it_and_the_rest_is_done(path):
    """The long run never ends by itself: it has to be killed for the executor to end."""
    store = Store(path)
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
            if len(killed) == 3:  # it was tried too often: let the executor come to its end
                store.add(failed(long, "not given up"))
            os.kill(process, signal.SIGKILL)
            killed.append(process)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    told = run_all([long, *short], path, PROCESSES)
    over.set()
    killer.join()
    assert len(killed) == 2
    rows = {row.job.key: row for row in store.rows()}
    assert rows.keys() == {job.key for job in (long, *short)}
    assert (rows[long.key].status, rows[long.key].reason) == ("failed", DIED)
    assert all(rows[job.key].done for job in short)
    assert sorted(row.job.key for row in told) == sorted(rows)
    assert running(store) == 0


# Ctrl-C.


def test_ctrl_c_outside_training_keeps_what_has_ended(path, monkeypatch):
    raise_on(monkeypatch, KeyboardInterrupt())
    jobs = [toy_job(max_epochs=1, seed=seed) for seed in (5, 6, 7)]
    told = []
    with pytest.raises(KeyboardInterrupt):
        run_all(jobs, path, on_row=told.append)
    store = Store(path)
    assert [row.job.seed for row in store.rows()] == [5]
    assert len(told) == 1
    assert running(store) == 0
    assert store.claim(jobs) == jobs[1:]


def cut_short(fitted, interrupted):
    return fitted._replace(record=replace(fitted.record, interrupted=interrupted))


def test_a_run_that_ctrl_c_cut_short_is_not_stored(path, monkeypatch):
    real = module.score
    monkeypatch.setattr(
        module,
        "score",
        lambda job, *fitted, **options: cut_short(real(job, *fitted, **options), job.seed == 6),
    )
    with pytest.raises(KeyboardInterrupt):
        run_all([toy_job(max_epochs=1, seed=s) for s in (5, 6, 7)], path)
    assert [row.job.seed for row in Store(path).rows()] == [5]
    assert running(Store(path)) == 0


# Jobs side by side, as on a GPU; here they go one after the other.


@pytest.fixture
def batched(monkeypatch):
    """An executor that trains side by side whatever can be."""
    monkeypatch.setattr(module, "has_kernels", lambda device: True)
    return Executor(batch=True)


def resolved(specs):
    """Jobs, as `run_stored` makes them."""
    return [resolve(spec) for spec in specs]


def results_of(executor, specs):
    """What an executor gives, by spec, in the order of the ends."""
    ended = []
    assert executor.execute(resolved(specs), lambda job, result: ended.append((job.spec, result)))
    return ended


def test_jobs_side_by_side_give_what_each_gives_alone(expected, batched):
    specs = [spec for spec in JOBS if spec != BAD]
    alone = {row.job.key: row for row in expected[1]}
    ended = results_of(batched, specs)
    assert [spec for spec, _ in ended] == specs
    for spec, record in ended:
        for name in ("metrics", "confusion_matrix", "validation", "epochs"):
            assert getattr(record, name) == alone[spec.key].outcome[name]


@pytest.mark.parametrize("batch", [True, False])
def test_a_split_that_cannot_be_made_is_one_failure(batched, batch):
    job = toy_job(max_epochs=1)
    bad = replace(job, imbalance_fields={**job.imbalance_fields, "minority": 9})
    executor = replace(batched, batch=batch)
    ended = {spec.key: result for spec, result in results_of(executor, [bad, job])}
    assert "minority" in ended[bad.key].reason
    assert not isinstance(ended[job.key], Failure)


def test_settings_that_no_method_takes_are_a_failed_row(path):
    job = toy_job(max_epochs=1)
    bad = replace(job, method_fields={**job.method_fields, "patience": -1})
    told = run_all([bad, job], path)
    assert {row.job.key: row.status for row in told} == {bad.key: "failed", job.key: "done"}
    assert run_all([bad, job], path) == []  # they have rows, and are not run again


def test_tasks_of_one_split_are_made_once_and_share_their_graph(monkeypatch, batched):
    real, made = Job.make_task, []
    monkeypatch.setattr(Job, "make_task", lambda *call: made.append(real(*call)) or made[-1])
    real_share, shared = module.share_tensors, []
    monkeypatch.setattr(
        module, "share_tensors", lambda *call: shared.append(real_share(*call)) or shared[-1]
    )
    specs = [toy_job(max_epochs=epochs, seed=seed) for seed in (5, 6) for epochs in (1, 2)]
    assert len(results_of(batched, specs)) == 4
    assert len(made) == 2
    assert shared[0].graph.x is shared[1].graph.x
    assert len(results_of(HERE, specs)) == 4
    assert len(made) == 4


def test_what_follows_a_failure_under_the_same_label_is_skipped(monkeypatch):
    raise_on(monkeypatch, ValueError("no"))
    specs = [toy_job(max_epochs=1, seed=seed) for seed in (5, 6, 7)]
    jobs = [replace(job, label="gcn") for job in resolved(specs)]
    ended = []
    HERE.execute(jobs, lambda job, result: ended.append((job.seed, type(result).__name__)))
    assert ended == [(5, "Record"), (6, "Failure")]


def test_the_one_process_there_is_still_hears_ctrl_c(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    (job,) = resolved([toy_job(max_epochs=1)])
    index, record, in_time = module._run_in_worker(
        3, job, executor=PROCESSES, folder=tmp_path, parent=os.getpid()
    )
    assert (index, record.seed, in_time) == (3, 5, True)
    assert signal.getsignal(signal.SIGINT) is before


def test_what_does_not_fit_side_by_side_is_tried_alone(monkeypatch, batched):
    real = module.fit_many

    def full(methods, tasks, *, seeds, on_fit, progress):
        real(methods[:1], tasks[:1], seeds=seeds[:1], on_fit=on_fit, progress=progress)
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(module, "fit_many", full)
    specs = [toy_job(max_epochs=1, seed=seed) for seed in (5, 6, 7)]
    ended = results_of(batched, specs)
    assert [spec for spec, _ in ended] == specs
    assert not any(isinstance(result, Failure) for _, result in ended)


@pytest.mark.parametrize("last", [False, True])
def test_ctrl_c_side_by_side_is_passed_on(last, monkeypatch, batched):
    def cut_short(self, *arguments, **options):
        history = real(self, *arguments, **options)
        history.interrupted = self.max_epochs == 2
        return history

    real = METHODS["gcn"]._train
    monkeypatch.setattr(METHODS["gcn"], "_train", cut_short)
    specs = [toy_job(max_epochs=epochs) for epochs in (1, 2, 3)]
    ended = []
    with pytest.raises(KeyboardInterrupt):
        batched.execute(
            resolved(specs[:2] if last else specs), lambda job, result: ended.append(job.spec)
        )
    assert ended == specs[:1]


# By name.


@pytest.mark.parametrize("workers", [1, 2])
def test_some_go_side_by_side_and_the_rest_by_processes(path, batched, workers):
    others = [toy_job("smote", max_epochs=2, seed=seed) for seed in (5, 6)]
    executor = replace(batched, workers=workers)
    told = run_all([*JOBS, *others], path, executor)
    rows = {row.job.key: row for row in Store(path).rows()}
    assert {row.job.key for row in told} == set(rows) == {job.key for job in (*JOBS, *others)}
    together = [rows[job.key].outcome["together"] for job in JOBS if job != BAD]
    assert together == [4, 4, 4]  # the second of four spoils nothing for the others
    assert {rows[job.key].outcome["together"] for job in others} == {1}  # a core for each
    assert rows[BAD.key].reason.startswith(REASON)


def make_job(graph):
    return Job(label="gcn", graph=graph, protocol=Natural(), method=GCN(), seed=0)


def test_a_loaded_graph_is_sent_as_arrays_that_are_made_once():
    graph = toy(60, 200, 8, 2)
    graph.class_names = ["no", "yes"]
    source = LoadedGraph(graph)
    assert source.load() is graph
    first, second = source.__getstate__(), source.__getstate__()
    assert isinstance(first["x"], numpy.ndarray)
    assert first["x"] is second["x"]  # joblib maps an array once
    again = pickle.loads(pickle.dumps(source)).load()
    assert again.class_names == ["no", "yes"]
    for name in ("x", "edge_index", "y"):
        assert torch.equal(again[name], graph[name])


def test_read_only_arrays_become_tensors_that_can_be_written():
    source = LoadedGraph(toy(60, 200, 8, 2))
    arrays = dict(source.__getstate__())
    arrays["x"] = arrays["x"].copy()
    arrays["x"].flags.writeable = False
    other = LoadedGraph.__new__(LoadedGraph)
    other.__setstate__(arrays)
    other.load().x[0, 0] = 7.0
    assert arrays["x"][0, 0] != 7.0


def test_a_named_graph_is_loaded_once(monkeypatch):
    names = []
    load = cache(lambda name: names.append(name) or toy(60, 200, 8, 2))
    monkeypatch.setattr(module, "_load_once", load)
    assert NamedGraph("toy").load() is NamedGraph("toy").load()
    assert names == ["toy"]


def test_a_task_is_not_copied_where_it_is_already():
    graph = toy(60, 200, 8, 2)
    assert make_job(LoadedGraph(graph)).make_task("cpu").graph.x is graph.x


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (ValueError("no\nand why"), "ValueError", "no"),
        (KeyError(), "KeyError", "KeyError"),
        (RuntimeError("odd shapes"), "RuntimeError", "odd shapes"),
        (RuntimeError("can't allocate memory"), "MemoryError", "GCN ran out of memory: can't"),
    ],
)
def test_a_failure_has_one_line(error, kind, reason):
    failure = failure_of(make_job(NamedGraph("toy")), error)
    assert failure.kind == kind
    assert failure.reason.startswith(reason)
    assert "\n" not in failure.reason
    assert type(failure.error).__name__ == kind


def test_an_error_in_a_method_of_somebody_else_is_one_line():
    class Foreign(GCN):
        title = "Foreign"

        def _fit(self, task):
            sys.exit(0)

    job = replace(make_job(LoadedGraph(toy(60, 200, 8, 2))), method=Foreign())
    failure = failure_of(job, ZeroDivisionError("division\nby zero"))
    assert str(failure.error) == "Foreign cannot be used: ZeroDivisionError: division."
    assert isinstance(failure.error, ValueError)
    ended = []
    HERE.execute([job], lambda job, result: ended.append(result))
    assert str(ended[0].error) == "Foreign cannot be used: SystemExit: 0."
    assert failure.kind == "ZeroDivisionError"


@pytest.fixture(scope="module")
def graph():
    return toy()


def fitted(graph, **options):
    job = Job(
        label="gcn",
        graph=LoadedGraph(graph),
        method=GCN(max_epochs=5),
        seed=3,
        **{"protocol": Step()} | options,
    )
    task = job.make_task("cpu")
    return job, task, GCN(max_epochs=5).fit(task, seed=3)


def test_a_record_holds_what_the_method_gives(graph):
    job, task, model = fitted(graph)
    record = score(job, task, model, seconds=2.5, together=4).record
    values = evaluate(task, model.predict_proba(task.graph))
    assert record.metrics["macro_f1"] == pytest.approx(100 * values["macro_f1"])
    assert record.per_class["recall"] == pytest.approx(
        [100 * r for r in values["per_class_recall"]]
    )
    assert record.confusion_matrix == values["confusion_matrix"]
    assert record.epochs == record.total_epochs == 5
    assert len(record.history["loss"]) == len(record.history["score"]) == 6
    assert record.validation == pytest.approx(max(record.history["score"]))
    assert record.criterion == "Macro-F1"
    assert record.class_counts == task.class_counts.tolist()
    assert (record.seconds, record.together, record.seed) == (2.5, 4, 3)
    assert not record.interrupted
    optional = {"calibration", "settings", "summary"}
    assert optional.isdisjoint(record.as_dict())


def test_calibration_is_a_part_of_its_own(graph):
    job, task, model = fitted(graph, calibrate=True, record_settings=True)
    record = score(job, task, model).record
    plain = score(*fitted(graph)).record
    assert record.metrics == plain.metrics
    probabilities = model.predict_proba(task.graph)
    calibrator = Calibrator.fit(probabilities[task.val], task.graph.y[task.val])
    assert record.calibration["calibrator"] == calibrator.as_dict()
    assert 0 <= record.calibration["metrics"]["calibrated_error"] <= 100
    sizes = [size for _, size in record.calibration["coverage"]]
    assert sizes == record.per_class["support"]
    assert record.all_metrics == {**record.metrics, **record.calibration["metrics"]}
    assert record.settings["max_epochs"] == 5


def test_a_record_names_the_criterion():
    job, task, model = fitted(toy(400, 1600, 64, 2, size_ratio=0.1), protocol=Natural(train=0.3))
    record = score(job, task, model).record
    assert record.criterion == "mean of average precision and balanced accuracy"
    assert record.validation == pytest.approx(max(record.history["score"]), abs=1e-3)


def test_a_record_holds_what_auto_stood_for(graph):
    job, task, _ = fitted(graph)
    model = UniGNN(max_epochs=1).fit(task, seed=3)
    assert score(job, task, model).record.resolved == {"alpha": model.alpha_}
    model = UniGNN(alpha=1, max_epochs=1).fit(task, seed=3)
    assert "resolved" not in score(job, task, model).record.as_dict()


def test_it_says_where_a_run_took_place(monkeypatch):
    here = module.describe(torch.device("cpu"))
    assert here["python"] == platform.python_version()
    assert here["torch"] == torch.__version__
    assert here["device"].startswith("cpu")
    assert here["threads"] >= 1
    monkeypatch.setenv("PATH", "")  # there is no git
    assert module.describe(torch.device("cpu"))["commit"] is None
