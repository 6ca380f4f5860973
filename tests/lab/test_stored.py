"""Rows of a store: tests of whole runs are in test_executor.py."""

import pytest

from evengraph.core.records import Record
from evengraph.lab.reproduce import StoreJournal, resolve, run_stored
from evengraph.lab.store import Store
from evengraph.pipeline.executor import Executor, Failure, NamedGraph
from tiny_experiments import toy_job

OUTCOME = {
    "metrics",
    "per_class",
    "confusion_matrix",
    "validation",
    "best_epoch",
    "epochs",
    "seconds",
    "stages",
    "class_counts",
    "memory",
    "together",
    "criterion",
}


@pytest.fixture
def journal(tmp_path):
    return StoreJournal(tmp_path / "store.sqlite", "cpu")


def test_a_resolved_job_holds_its_objects():
    first, second = (resolve(toy_job(max_epochs=2, seed=s)) for s in (5, 6))
    assert first.protocol is second.protocol
    assert first.method.max_epochs == 2
    assert first.graph == second.graph == NamedGraph("toy")
    assert (first.seed, second.seed) == (5, 6)


def test_a_row_holds_no_more_than_it_did(tmp_path):
    rows = []
    path = tmp_path / "store.sqlite"
    run_stored([toy_job(max_epochs=2)], rows.append, store=path, executor=Executor())
    (row,) = Store(path).rows()
    assert set(row.outcome) == OUTCOME
    assert rows[0].outcome == row.outcome
    assert row.outcome["memory"] is None or row.outcome["memory"] >= 0


def test_a_saved_result_can_be_recovered(journal):
    done, failed, open_ = (resolve(toy_job(max_epochs=1, seed=seed)) for seed in (5, 6, 7))
    assert journal.claim([done, failed, open_]) == [done, failed, open_]
    record = Record(
        seed=5,
        metrics={"macro_f1": 50.0},
        per_class={"f1": [50.0]},
        confusion_matrix=[[1]],
        history={"loss": [1.0]},
        validation=40.0,
        best_epoch=1,
        epochs=1,
        seconds=0.5,
        class_counts=[3],
        memory=0.25,
    )
    journal.save(done, record)
    journal.save(failed, Failure(reason="no", kind="ValueError"))
    again = journal.recover(done)
    assert again.as_dict() == {**record.as_dict(), "history": {}}
    assert journal.recover(failed) == Failure(reason="ValueError: no")
    assert journal.recover(open_) is None
    assert journal.claim([done, failed, open_]) == [open_]
