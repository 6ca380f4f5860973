"""What is asked of a store in SQL, and tables that are made or completed."""

import os
import sqlite3
from contextlib import closing
from functools import partial

import pytest

from evengraph.lab.store import SCHEMA, TABLES, Store, this_process
from tiny_experiments import damage, ended, failed, make_job


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store.sqlite")


def test_rows_are_filtered_by_any_column(store):
    for dataset in ("toy", "cora"):
        for method in ("gcn", "reweight"):
            for seed in (5, 6):
                store.add(ended(make_job(dataset=dataset, method=method, seed=seed)))
    store.add(failed(make_job(imbalance="natural", seed=7)))
    assert len(store.rows()) == 9
    assert len(store.rows(dataset="toy")) == 5
    assert len(store.rows(dataset="toy", method="gcn")) == 3
    assert len(store.rows(dataset="toy", method="gcn", seed=6)) == 1
    assert len(store.rows(imbalance="natural")) == 1
    assert [row.job.seed for row in store.rows(status="failed")] == [7]
    assert store.rows(dataset="pubmed") == []
    assert len(store.rows(dataset=None, seed=None)) == 9  # what is None is not asked for


def test_rows_come_in_the_order_they_were_written(store):
    seeds = [9, 3, 7, 5]
    for seed in seeds:
        store.add(ended(make_job(seed=seed)))
    assert [row.job.seed for row in store.rows()] == seeds


EARLIER = """
CREATE TABLE claims (
    key TEXT PRIMARY KEY, host TEXT NOT NULL, process INTEGER NOT NULL, seen REAL NOT NULL
);
"""


@pytest.mark.parametrize("statements", [*range(1, 5), EARLIER], ids=str)
def test_a_store_whose_making_was_cut_short_is_completed(statements, tmp_path):
    path = tmp_path / "store.sqlite"
    with closing(sqlite3.connect(path)) as base:  # as versions before transactions left it
        part = (
            statements if isinstance(statements, str) else ";".join(TABLES.split(";")[:statements])
        )
        base.executescript(part)
    Store(path).add(ended(make_job()))
    assert Store(path).claim([make_job(), make_job(seed=6)]) == [make_job(seed=6)]


def test_a_store_is_made_in_one_transaction(tmp_path, monkeypatch):
    class Cut(sqlite3.Connection):
        def executescript(self, text):
            for statement in text.split(";")[:4]:  # two tables of four, then the process is killed
                self.execute(statement)
            raise KeyboardInterrupt

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=Cut))
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path / "store.sqlite")
    monkeypatch.undo()
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as base:
        assert base.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    Store(tmp_path / "store.sqlite").add(ended(make_job()))


def test_groups_leave_out_damaged_rows_and_tell_them(store):
    store.add(*(ended(make_job(seed=seed), test=seed) for seed in (4, 5, 6, 7)))
    damage(store, "outcome", "{", seed=4)
    damage(store, "status", "dome", seed=5)
    (group,) = store.groups(["metrics.macro_f1"])
    assert (group.runs, group.failed, group.means) == (2, 0, [6.5])
    assert len(store.damage) == 2


def test_groups_count_and_average(store):
    for method, test in (("gcn", 40.0), ("mlp", 10.0), ("gcn", 60.0)):
        store.add(ended(make_job(method=method, seed=int(test)), test=test))
    store.add(failed(make_job(method="mlp", seed=3)))
    store.add(ended(make_job(method="bad", seed=3), test=float("nan")))
    paths = ["metrics.macro_f1", "validation", "metrics.absent"]
    found = {group.method: group[4:7] for group in store.groups(paths)}
    assert list(found) == ["gcn", "mlp", "bad"]
    assert found["gcn"] == (2, 0, [50.0, 50.0, None])
    assert found["mlp"] == (2, 1, [10.0, 50.0, None])
    assert found["bad"] == (1, 0, [None, 50.0, None])
    assert [group.method for group in store.groups(paths, method="mlp", seed=3)] == ["mlp"]
    assert store.damage == []


def test_a_score_that_is_missing_is_damage_but_nan_is_not(store):
    for seed in (1, 2, 3):
        store.add(ended(make_job(seed=seed)))
    damage(store, "outcome", '{"metrics": {}, "validation": null}', seed=1)
    damage(store, "outcome", '{"metrics": {}, "validation": NaN}', seed=2)
    (group,) = store.groups(["validation"])
    assert (group.runs, len(store.damage)) == (2, 1)
    assert set(store.values(["validation"]).values()) == {("done", 50.0), ("done", None)}


def test_values_are_those_of_rows_that_can_be_read(store):
    good, bad, other = (make_job(seed=seed) for seed in (1, 2, 3))
    store.add(ended(good, test=40.0), failed(bad), ended(other))
    damage(store, "status", "dome", seed=3)
    found = store.values(["metrics.macro_f1", "metrics.absent"])
    assert found == {good.key: ("done", 40.0, None), bad.key: ("failed", None, None)}


def test_whole_outcomes_by_key(store):
    rows = [ended(make_job(seed=seed), test=float(seed)) for seed in (1, 2)]
    store.add(*rows)
    found = store.outcomes([rows[1].job.key, "none", rows[0].job.key])
    assert found == [dict(rows[1].outcome), dict(rows[0].outcome)]


def test_claims_of_an_earlier_version_hold(tmp_path):
    path = tmp_path / "store.sqlite"
    with closing(sqlite3.connect(path)) as base:
        base.executescript(TABLES + "DROP TABLE claims;" + EARLIER)
        base.execute(f"PRAGMA user_version = {SCHEMA}")
        job = make_job()
        process = os.getppid()
        base.execute(
            "INSERT INTO claims VALUES (?, ?, ?, 0)", (job.key, this_process().host, process)
        )
        base.commit()
    store = Store(path)
    (holder,) = store.holders()
    assert (holder.claimant.process, holder.jobs) == (process, 1)
    assert store.claim([job, make_job(seed=6)]) == [make_job(seed=6)]


@pytest.mark.parametrize("parts", [("validation",), ("validation", "metrics"), ("absent",)])
def test_parts_of_outcomes(store, parts):
    store.add(row := ended(make_job()))
    (found,) = store.rows(parts=parts)
    assert dict(found.outcome) == {name: row.outcome[name] for name in parts if name != "absent"}


def test_stores_written_so_far_are_read(tmp_path):
    with closing(sqlite3.connect(path := tmp_path / "store.sqlite")) as base:
        base.executescript(f"{TABLES} PRAGMA user_version = 1;")
    assert Store(path).rows() == []
