"""Rows of a store: as they went in, their keys, and cells that are damaged."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evengraph.lab.store import Row, Store
from tiny_experiments import damage, ended, failed, make_job

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


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store.sqlite")


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("shared") / "store.sqlite")


@given(row=rows)
def test_a_row_comes_back_as_it_went_in(shared_store, row):
    shared_store.add(row)
    assert [one for one in shared_store.rows() if one.job.key == row.job.key] == [row]


def test_a_row_without_a_time_gets_the_time(store):
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


@pytest.mark.parametrize(
    "change",
    [
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
    ],
    ids=str,
)
def test_keys_differ_with_any_part(change):
    assert make_job(**change).key != make_job().key


@given(jobs, jobs)
def test_keys_differ_as_jobs_do(one, other):
    assert (one.key == other.key) <= (one == other)


def test_equal_jobs_have_equal_keys_however_a_number_is_written():
    whole, broken = (make_job(method_fields={"weight_decay": zero}) for zero in (0, 0.0))
    assert whole == broken
    assert whole.key == broken.key


def test_a_flat_row_has_names_and_figures():
    row = replace(ended(make_job()), environment={"commit": "abc", "device": "cpu"}, created="now")
    flat = row.flat()
    expected = {"dataset": "toy", "imbalance.ratio": 0.1, "method.max_epochs": 3, "seed": 5}
    expected |= {"macro_f1": 50.0, "validation": 50.0, "memory": None, "commit": "abc"}
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
        ("outcome", b"\xff\xfe"),
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


@pytest.mark.parametrize("parts", [(), ("note", "metrics")])
def test_an_outcome_that_is_json_but_no_text_is_damage(store, parts):
    store.add(ended(make_job(seed=5)))
    with closing(sqlite3.connect(store.path)) as base, base:
        content = b'{"metrics": {}, "validation": 1, "note": "\xff\xfe"}'
        base.execute("UPDATE runs SET outcome = CAST(? AS TEXT)", (content,))
    assert [dict(row.outcome) for row in store.rows(parts=parts)] == []
    assert len(store.damage) == 1


@given(row=rows)
def test_parts_of_an_outcome_are_as_they_were_written(shared_store, row):
    shared_store.add(row)
    (found,) = shared_store.rows(key=row.job.key, parts=("validation", "metrics", "absent"))
    wanted = {name: row.outcome[name] for name in ("validation", "metrics")}
    assert json.dumps(dict(found.outcome)) == json.dumps(wanted)
    assert found.outcome.get("absent") is None
    assert len(found.outcome) == 2


def test_keys_are_those_of_stored_results():
    assert make_job().key == "1170d3bdcc07fd78a794"
