import os
from dataclasses import replace

import pytest

from evengraph.lab import sources as finished
from evengraph.lab.sources import finished_mark, inputs_of, is_finished
from evengraph.lab.store import Row
from tiny_experiments import make_job

PART = {"quick": False, "seeds": None}


@pytest.fixture
def rows():
    done = [Row(job=make_job(seed=seed)) for seed in (1, 2, 3)]
    return [*done[:2], replace(done[2], status="failed")]


@pytest.fixture
def content(rows):
    cells = [{"keys": [rows[0].job.key]}]
    return {"cells": cells, "finished": finished_mark("these", rows, cells)}


def stored(rows):
    return {row.job.key: (row.status, 1.0) for row in rows}


def test_an_experiment_is_finished_while_its_rows_are_as_they_were(rows, content):
    assert is_finished(content, "these", stored(rows))
    assert not is_finished(content, "others", stored(rows))
    assert not is_finished({"cells": []}, "these", stored(rows))


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_row_that_is_gone_or_ended_otherwise_is_seen(rows, content, index):
    other = {"done": "failed", "failed": "done"}[rows[index].status]
    changed = [replace(r, status=other) if r is rows[index] else r for r in rows]
    assert not is_finished(content, "these", stored(changed))
    assert not is_finished(content, "these", stored(rows[:index] + rows[index + 1 :]))


def test_inputs_are_the_text_the_options_and_the_library(tmp_path, monkeypatch):
    path = tmp_path / "mine.toml"
    path.write_text("seeds = [1]")
    before = inputs_of(str(path), PART)
    assert inputs_of(str(path), dict(reversed(PART.items()))) == before
    assert inputs_of(str(path), PART | {"quick": True}) != before
    path.write_text("seeds = [2]")
    assert inputs_of(str(path), PART) != before
    path.write_text("seeds = [1]")
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(finished.evengraph, "__file__", str(package / "__init__.py"))
    elsewhere = inputs_of(str(path), PART)
    assert elsewhere != before
    os.utime(package / "__init__.py", (1, 1))
    assert inputs_of(str(path), PART) != elsewhere
