"""The commands `reproduce` and `results`, also when they are killed, stopped or started twice."""

import csv
import json
import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from time import monotonic, time

import pytest

from command_line import call
from evengraph.lab.reproduce import Plan
from evengraph.lab.spec import read_spec
from evengraph.lab.store import Store
from evengraph.methods import METHODS
from other_process import command
from tiny_experiments import damage, ended, failed, figures, python, running, toy_job, wait_for

# Twelve runs: four to choose from for each of two seeds, and what follows the choice.
EXPERIMENT = """
title = "Tiny"
seeds = [5, 6]

[[setup]]
dataset = "toy"

[[method]]
name = "gcn"
fields = { max_epochs = 20 }
grid.hidden = [8, 16]
grid.learning_rate = [0.01, 0.02]
more_seeds = [8, 9]

[[method]]
name = "reweight"
like = "GCN"
"""
TOTAL = 12


def experiment(**fields):
    """A file with a run of each method."""
    methods = (
        f'\n[[method]]\nname = "{name}"\nfields = {{ {of} }}\n' for name, of in fields.items()
    )
    return '\nseeds = [5]\n\n[[setup]]\ndataset = "toy"\n' + "".join(methods)


BRIEF = "max_epochs = 2"
SHORT = experiment(gcn=BRIEF, unignn=f"{BRIEF}, clusters_per_class = 900", reweight=BRIEF)
ENDLESS = experiment(gcn=BRIEF, reweight="max_epochs = 1000000000, patience = 1000000000")


@pytest.fixture
def write(tmp_path):
    def write(text, name="tiny.toml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.fixture
def output(tmp_path, monkeypatch):
    """Where commands write, as the arguments of `command`, and how to read it."""
    monkeypatch.setenv("COLUMNS", "200")

    class Output:
        def to(self, name="out"):
            return {"stdout": tmp_path / f"{name}.out", "stderr": tmp_path / f"{name}.err"}

        def read(self, name="out"):
            return tuple(path.read_text() for path in self.to(name).values())

    return Output()


@pytest.fixture
def watched(tmp_path):
    return Store(tmp_path / "watched.sqlite")


def times_written(store):
    """How often a row was written, by whomever: one that replaces another has a new number."""
    with closing(sqlite3.connect(store.path)) as base:
        return base.execute("SELECT max(rowid) FROM runs").fetchone()[0]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What the experiment gives when nobody stops it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "tiny.toml").write_text(EXPERIMENT)
    path = folder / "store.sqlite"
    assert call("reproduce", folder / "tiny.toml", "--store", path, "--jobs", "1") == 0
    store = Store(path)
    plan = Plan(read_spec(str(folder / "tiny.toml")), store.rows())
    assert [len(cell.keys) for cell in plan.cells()] == [4, 2]
    assert [row.done for row in store.rows()] == [True] * TOTAL
    return store


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_command_goes_on_where_it_was(write, watched, undisturbed, output):
    words = ["reproduce", write(EXPERIMENT), "--store", watched.path, "--jobs", "1"]
    with command(*words) as child:
        wait_for(lambda: len(watched.rows()) >= 3, child)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    before = watched.rows()
    assert 3 <= len(before) < TOTAL
    assert running(watched) == 0
    with command(*words, **output.to()) as child:
        assert child.wait() == 0
    out, err = output.read()
    assert err.strip() == ""
    after = watched.rows()
    assert after[: len(before)] == before  # created, seconds and all
    assert len(after) == TOTAL
    assert times_written(watched) == len(after)
    assert figures(after) == figures(undisturbed.rows())
    assert "Re-weight" in out


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_ctrl_c_keeps_what_has_ended(write, tmp_path, output):
    store = Store(tmp_path / "store.sqlite")
    words = ["reproduce", write(ENDLESS), "--store", store.path, "--jobs", "1"]
    with command(*words, **output.to()) as child:
        wait_for(lambda: len(store.rows()) == 1 and running(store) == 1, child)
        child.send_signal(signal.SIGINT)
        assert child.wait() == 130
    out, err = output.read()
    assert "Interrupted: finished runs are stored" in err
    assert "Traceback" not in err
    assert "GCN" in out  # the table of what there is
    assert [row.job.method for row in store.rows()] == ["gcn"]
    with closing(sqlite3.connect(store.path)) as base:
        assert base.execute("SELECT * FROM claims").fetchall() == []  # given back, not left behind


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_several_processes(write, tmp_path, number):
    """A terminal sends Ctrl-C to the command and its workers, others signal the command alone."""
    store = Store(tmp_path / "store.sqlite")
    words = ["reproduce", write(ENDLESS), "--store", store.path]
    child = python(
        "from evengraph.cli import main; main()",
        *map(str, [*words, "--jobs", "2"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_for(lambda: len(store.rows()) == 1 and running(store) == 1, child)
        if number == signal.SIGINT:
            os.killpg(child.pid, number)
        else:
            child.send_signal(number)
        started = monotonic()
        _, err = child.communicate()  # ends once the last worker has closed its end of the pipe
    finally:
        child.kill()
        child.communicate()
    assert monotonic() - started < 20
    if number == signal.SIGKILL:
        wait_for(lambda: running(store) == 0)
    else:
        assert child.returncode == 128 + number
        assert "Interrupted: finished runs are stored" in err
    assert [row.job.method for row in store.rows()] == ["gcn"]
    assert running(store) == 0


# Runs that fail.


def test_failed_runs_are_told_and_tried_again_when_asked(write, tmp_path, monkeypatch, capsys):
    def fail(self, task):
        raise RuntimeError("a cable came loose")

    path = tmp_path / "store.sqlite"
    words = ["reproduce", write(SHORT), "--store", path, "--jobs", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(METHODS["reweight"], "_fit", fail)
        assert call(*words) == 1
    shown = capsys.readouterr()
    assert "failed: Uni-GNN on toy, seed 5: ValueError: clusters_per_class=900" in shown.err
    assert "failed: Re-weight on toy, seed 5: RuntimeError: a cable came loose" in shown.err
    assert "GCN" in shown.out
    first = Store(path).rows()
    assert sorted(row.status for row in first) == ["done", "failed", "failed"]
    # They are left alone without a word, and run again at one, unless that has a mistake.
    call(*words)
    call(*words, "--release")  # plans again
    assert call(*words, "--retry", "--jobs", "0") == 2
    assert Store(path).rows() == first
    capsys.readouterr()
    assert call(*words, "--retry") == 1
    assert "2 failed runs are tried again" in capsys.readouterr().err
    again = Store(path).rows()
    assert [row for row in again if row.job == first[0].job] == first[:1]
    assert sorted(row.status for row in again) == ["done", "done", "failed"]
    assert call(*words, "--retry", "--method", "gcn,reweight") == 0
    capsys.readouterr()
    assert call(*words, "--retry", "--method", "gcn,reweight") == 0
    assert "tried again" not in capsys.readouterr().err


# What is asked for.


def test_who_is_waited_for_is_told_and_can_be_released(write, tmp_path, monkeypatch, capsys):
    path = tmp_path / "store.sqlite"
    spec = read_spec(str(write(SHORT)))
    jobs = Plan(spec, []).missing()
    with closing(sqlite3.connect(Store(path).path)) as base:
        for job in jobs[:2]:
            row = (job.key, "far[away]", 77, time())
            base.execute("INSERT INTO claims (key, host, process, seen) VALUES (?, ?, ?, ?)", row)
        base.commit()

    def stop(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("evengraph.lab.reproduce.sleep", stop)
    words = "reproduce", write(SHORT), "--store", path, "--jobs", "1"
    assert call(*words) == 130
    said = capsys.readouterr().err
    assert said.count("Waiting for 2 runs of process 77 on far[away], since 20") == 1
    assert "--release" in said
    assert call(*words, "--release") == 1  # one of the runs fails
    assert "2 runs of other processes are released." in capsys.readouterr().err
    assert Store(path).count() == 3


def test_a_part_and_several_experiments_can_be_asked_for(write, tmp_path, capsys):
    path = tmp_path / "store.sqlite"
    files = [write(SHORT.replace("900", "3"), name) for name in ("one.toml", "two.toml")]
    words = ["--store", path, "--jobs", "1"]
    part = ["--method", "Re-weight", "--splits", "6-7", "--setups", "toy"]
    assert call("reproduce", files[0], *words, *part) == 0
    jobs = [row.job for row in Store(path).rows()]
    assert [(job.method, job.seed) for job in jobs] == [("reweight", 6), ("reweight", 7)]
    assert "paper" in capsys.readouterr().out
    assert call("reproduce", *files, files[0], *words) == 0
    assert len(Store(path).rows()) == 2 + 3
    assert capsys.readouterr().out.startswith("one, two, rows go to")


BAD_FILE = SHORT.replace("max_epochs = 2 }", "max_epochs = -2 }", 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bad.toml"], ["bad.toml: method", "max_epochs", "-2"]),
        (["tiny.toml", "--splits", "7-5"], ["upwards"]),
        (["tiny.toml", "--method", "nobody"], ["nobody", "lte4g"]),
        (["tiny.toml", "--device", "tpu"], ["auto, cpu, cuda"]),
        (["tiny.toml", "--jobs", "0"], ["--jobs", "at least 1"]),
        (["tiny.toml", "--store", "bad.toml"], ["bad.toml", "not an evengraph store"]),
        (["tiny.toml", "--store", "."], ["Cannot open"]),
        (["many.toml"], ["toy-step-9-0.1 cannot be set up", "minority"]),
        ([], ["what"]),
    ],
    ids=str,
)
def test_mistakes_are_one_line_and_status_two(
    arguments, words, write, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    write(SHORT)
    write(BAD_FILE, "bad.toml")
    write(SHORT.replace('dataset = "toy"', 'dataset = "toy"\nminority = 9'), "many.toml")
    assert call("reproduce", *arguments) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("Error: ")
    for word in words:
        assert word.lower() in line.lower()
    assert (tmp_path / "bad.toml").read_text() == BAD_FILE


# Results.


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("filled") / "store.sqlite")
    for seed, test in ((5, 40.0), (6, 50.0)):
        store.add(ended(toy_job(max_epochs=2, seed=seed), test=test))
    store.add(ended(toy_job("reweight", max_epochs=2), validation=30.0, test=61.5))
    store.add(failed(toy_job("unignn", max_epochs=2), "ValueError: [too] many, clusters"))
    return store


def test_results_lists_what_there_is(filled, capsys):
    assert call("results", filled.path) == 0
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[1] == "toy, step 3 0.1"
    assert lines[2] == "gcn 2 0 45.0 45.0 45.0 50.0 0.5"
    assert lines[3] == "reweight 1 0 61.5 61.5 61.5 30.0 0.5"
    assert lines[4] == "unignn 1 1"
    assert "failed: unignn on toy, seed 5: ValueError: [too] many, clusters" in out


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ([], 4),
        (["--method", "gcn", "--seed", "6"], 1),
        (["--status", "failed"], 1),
        (["--dataset", "toy", "--split", "step"], 4),
        (["--dataset", "cora"], 0),
        (["--split", "longtail"], 0),
    ],
    ids=str,
)
def test_results_are_filtered(words, count, filled, tmp_path, capsys):
    path = tmp_path / "rows.json"
    assert call("results", filled.path, *words, "--export", path) == 0
    assert f"{count} runs" in capsys.readouterr().out
    assert len(json.loads(path.read_text())) == count
    assert call("results", filled.path, *words) == 0
    assert (capsys.readouterr().out == "None of the 4 runs match.\n") == (count == 0)


def test_results_leave_out_a_damaged_row_and_name_it(tmp_path, capsys):
    store = Store(tmp_path / "store.sqlite")
    store.add(*(ended(toy_job(max_epochs=2, seed=seed)) for seed in (5, 6)))
    damage(store, "outcome", "x")
    assert call("results", store.path) == 0
    said, key = capsys.readouterr(), toy_job(max_epochs=2).key
    assert f"Row {key} of {store.path} is damaged: outcome is not JSON." in said.err
    assert "gcn" in said.out


@pytest.mark.parametrize("words", [[], ["--export", "rows.csv"]])
def test_an_empty_store_has_nothing_to_list(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Store(tmp_path / "empty.sqlite")
    assert call("results", "empty.sqlite", *words) == 2
    assert "The store empty.sqlite holds no runs." in capsys.readouterr().err
    assert not (tmp_path / "rows.csv").exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_exports_hold_every_value(filled, tmp_path, suffix):
    import pandas

    path = tmp_path / f"rows.{suffix}"
    assert call("results", filled.path, "--export", path) == 0
    expected = [row.flat() for row in filled.rows()]
    if suffix == "csv":
        with path.open(newline="") as file:
            found = list(csv.DictReader(file))
        assert found[0]["method.alpha"] == ""  # a parameter that only others have
        expected = [
            {name: "" if value is None else str(value) for name, value in row.items()}
            for row in expected
        ]
    elif suffix == "json":
        found = json.loads(path.read_text())
        assert found[0]["outcome"] == filled.rows()[0].outcome
    else:
        frame = pandas.read_parquet(path)
        assert frame["macro_f1"].isna().tolist() == [False, False, False, True]
        found = frame.astype(object).where(frame.notna(), None).to_dict("records")
    assert [float(row["macro_f1"]) for row in found[:3]] == [40.0, 50.0, 61.5]
    for one, other in zip(found, expected, strict=True):
        assert {name: one[name] for name in other} == other


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["store.sqlite", "--export", "rows.xlsx"], [".csv, .json or .parquet", "rows.xlsx"]),
        (["store.sqlite", "--export", "rows"], [".csv, .json or .parquet"]),
        (["nothing.sqlite"], ["There is no store nothing.sqlite"]),
        (["."], ["There is no store"]),
        (["text.txt"], ["text.txt", "not an evengraph store"]),
        (["store.sqlite", "--seed", "five"], ["--seed"]),
        (["store.sqlite", "--export", "text.txt/rows.csv"], ["text.txt"]),
    ],
    ids=str,
)
def test_results_refuses_with_one_line(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Store(tmp_path / "store.sqlite").add(ended(toy_job()))
    (tmp_path / "text.txt").write_text("words " * 200)
    assert call("results", *words) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    for word in ("Error: ", *said):
        assert word in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store.sqlite", "text.txt"]
