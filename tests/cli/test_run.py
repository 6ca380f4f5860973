"""evengraph run and compare, from words to files."""

import csv
import json
import os
import random
import re
import select
import signal
from importlib import import_module
from pathlib import Path
from time import monotonic

import pytest
import torch
from torch_geometric.data import Data

import evengraph as eg
from command_line import COLUMNS, FAST, UNIGNN, call, read, write
from evengraph.cli.training import given_split
from evengraph.core import files
from evengraph.datasets import toy
from evengraph.methods import DEFAULT_METHOD, METHODS
from evengraph.splits import SPLITS
from other_process import command

TINY = ["--set", "max_epochs=2"]
QUICK = [*UNIGNN, "--set", "max_epochs=3", "--set", "clusters_per_class=3"]


def test_run_writes_result_and_report(tmp_path, capsys):
    assert call("run", "toy", *QUICK, "--splits", "5,6", "--out", str(tmp_path)) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["seeds"] == [5, 6]
    assert result["method"]["fields"]["max_epochs"] == 3
    sizes = {"train_per_class": 20, "val_per_class": 25, "test_per_class": 55}
    assert result["imbalance"] == {"name": "step", "minority": 3, "ratio": 0.1, **sizes}
    assert result["class_counts"] == [20, 20, 2, 2, 2]
    assert result["paper"] is None
    assert {"python", "torch", "torch_geometric", "device", "commit"} <= set(result["environment"])
    values = [run["metrics"]["balanced_accuracy"] for run in result["runs"]]
    assert result["mean"]["balanced_accuracy"] == pytest.approx(sum(values) / 2, abs=1e-4)
    assert all(0 <= value <= 100 for value in values)
    assert "<html" in (tmp_path / "report.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "result.json"]
    shown = capsys.readouterr()
    assert f"{result['mean']['balanced_accuracy']:.1f} ±" in shown.out
    assert "seed 5: bAcc" in shown.err


def test_the_default_says_what_it_chose(tmp_path, capsys):
    words = [*TINY, "--set", "candidates=gcn,logistic", "--out", str(tmp_path)]
    assert call("run", "toy", *words, "--splits", "5-5") == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["method"]["name"] == DEFAULT_METHOD
    (run,) = result["runs"]
    assert 2 <= len(run["summary"]) <= 3
    shown = " ".join(capsys.readouterr().out.split())
    page = (tmp_path / "report.html").read_text()
    for line in run["summary"]:
        assert line in shown
        assert line in page


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize("method", ["gcn", "auto"])
def test_ctrl_c_keeps_the_best_model_so_far(method, tmp_path: Path):
    import pty

    words = ["run", "toy", "--method", method, "--splits", "5,6", "--out", str(tmp_path)]
    words += ["--set", "max_epochs=100000", "--set", "patience=100000"]
    words += ["--set", "candidates=iceberg"] * (method == "auto")  # others are soon done
    terminal, end = pty.openpty()
    drawn = b""
    give_up = monotonic() + 120
    with command(*words, stderr=os.ttyname(end)) as child:
        while b"epoch " not in drawn and monotonic() < give_up:  # drawn once training is under way
            drawn += _read(terminal)
        child.send_signal(signal.SIGINT)
        while child.poll() is None and monotonic() < give_up:
            drawn += _read(terminal)
        drawn += _read(terminal)
    os.close(end)
    assert child.returncode == 130, drawn
    assert b"epoch " in drawn
    assert b"Interrupted" in drawn
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["seeds"] == [5]
    assert result["runs"][0]["interrupted"] is True


def _read(terminal: int) -> bytes:
    """What a terminal shows within a moment; a closed one counts as empty."""
    try:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        return os.read(terminal, 65536) if ready else b""
    except OSError:
        return b""


def test_every_setup_has_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in ([], ["--minority", "2"], ["--set", "alpha=1"]):
        assert call("run", "toy", *QUICK, "--splits", "5-5", *words) == 0
    assert len(list(tmp_path.glob("runs/*/result.json"))) == 3


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        ("cora", "gcn", {"patience": 1000}),
        ("cora", "iceberg", {"learning_rate": 0.03, "patience": 300}),
        ("cora", "focal", {}),
        ("toy", "gcn", {}),
    ],
)
def test_the_patience_of_the_paper_is_a_preset_of_its_settings(data, name, expected):
    presets = import_module("evengraph.cli.run")._presets
    assert presets(data, None, "step", SPLITS["step"](), [name]) == {name: expected}
    if name == "gcn":
        assert METHODS[name](**expected).patience == (1000 if data == "cora" else 100)


def test_a_full_disk_of_results_does_not_cost_the_model(shop, monkeypatch, capsys):
    def full(result, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("evengraph.core.files.write_json", full)
    assert call("run", "shop", *COLUMNS, *FAST, "--out", "out", "--save", "model") == 2
    said = capsys.readouterr()
    assert said.err.endswith("Error: out/result.json: No space left on device.\n")
    assert "wrote model: the model of seed 5" in said.out
    assert "result.json" not in said.out
    assert Path("model/model.json").exists()


def test_unlabelled_nodes_are_predicted_by_the_saved_model(shop, capsys, monkeypatch):
    written, write = [], files.write_json
    monkeypatch.setattr(files, "write_json", lambda *both: written.append(both) or write(*both))
    assert call("run", "shop", *COLUMNS, *FAST, "--out", "out", "--save", "model") == 0
    assert len(written) == 2  # before and after the model is saved
    shown, progress = capsys.readouterr()
    assert "retrained on" in shown
    assert "Retraining with test labels" in progress  # no silence meanwhile
    rows, nodes = read(shop / "out" / "predictions.csv"), read(shop / "shop" / "nodes.csv")
    missing = [row["account"] for row in nodes if not row["kind"]]
    assert [row["account"] for row in rows] == missing
    assert f"predictions.csv: {len(missing)} unlabelled nodes" in shown
    assert call("predict", "model", "shop", "--only-unlabelled", "--out", "p.csv") == 0
    assert read(shop / "p.csv") == rows
    result = json.loads((shop / "out" / "result.json").read_text())
    model, likeliest = result["model"], result["likeliest"]
    by_score = sorted(rows, key=lambda row: -float(row["score_fraud"]))
    assert [one["id"] for one in likeliest["nodes"]] == [row["account"] for row in by_score[:10]]
    assert likeliest["nodes"][0]["reasons"]
    assert model["refit"]["train"] > model["refit"]["train_before"]
    assert "trained again with the test labels" in (shop / "out" / "report.html").read_text()
    assert call("run", "shop", *COLUMNS, *FAST, "--out", "b", "--save", "m", "--no-refit") == 0
    assert "trained again" not in capsys.readouterr().out
    assert read(shop / "b" / "predictions.csv") != rows


def test_a_fixed_split_runs_once_for_a_named_class_and_given_shares(shop, capsys):
    parts = ["train", "train", "val", "test"]

    def two(number, row):
        kind = row["kind"] and {"fraud": "fraud"}.get(row["kind"], "honest")
        return {"kind": kind, "split": parts[number % 4]}

    nodes = read(shop / "shop" / "nodes.csv")
    rows = [row | two(number, row) for number, row in enumerate(nodes)]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(row.values()) for row in rows))
    words = [*COLUMNS, *[word for word in FAST if word not in ("--splits", "5-5")]]
    options = ["--positive", "honest", "--shares", "fraud=0.01,honest=0.99", "--recall", 0.7]
    assert call("run", "shop", *words, *options, "--save", "m", "--out", "out") == 0
    shown = capsys.readouterr().out
    assert "±" not in shown
    assert "The threshold is" in shown
    assert "a recall of 70%" in shown
    result = json.loads((shop / "out" / "result.json").read_text())
    assert result["seeds"] == [5]
    (run,) = result["runs"]
    assert run["decision"]["positive"] == 1
    assert sum(map(sum, run["decision"]["confusion"])) == sum(run["per_class"]["support"])
    model = eg.TableModel.load(shop / "m")
    assert model.threshold.positive == 1
    assert model.info.calibrator.shares == (0.01, 0.99)
    chosen = result["decision"]["options"][0]
    assert chosen["positives"] == pytest.approx(0.99 * chosen["nodes"])
    assert call("run", "shop", *words, "--shares", "fraud=1", "--out", "b") == 2
    assert "shares must give a number above 0 to each of fraud, honest" in capsys.readouterr().err


def test_a_kill_during_the_second_fit_costs_no_results(shop, monkeypatch):
    class Killed(BaseException):
        pass

    def refitted(self, task, *, seed):
        raise Killed

    monkeypatch.setattr(METHODS[FAST[1]], "refitted", refitted)
    words = [*COLUMNS, *FAST, "--splits", "5,6", "--out", "out", "--save", "model"]
    with pytest.raises(Killed):
        call("run", "shop", *words)
    result = json.loads(Path("out/result.json").read_text())
    assert result["seeds"] == [5, 6]
    assert result["complete"]
    assert "model" not in result  # there is none
    assert "Balanced accuracy" in Path("out/report.html").read_text()
    assert not Path("model").exists()


def test_a_second_fit_that_fails_is_a_warning_of_one_line(shop, capsys, monkeypatch):
    def refitted(self, task, *, seed):
        raise ValueError("No memory.")

    monkeypatch.setattr(METHODS[FAST[1]], "refitted", refitted)
    assert call("run", "shop", *COLUMNS, *FAST, "--out", "out", "--save", "model") == 0
    shown = capsys.readouterr()
    assert "Warning: Not trained again on all labels: No memory.\n" in shown.err
    assert "retrained" not in shown.out
    assert (shop / "model").is_dir()
    assert json.loads(Path("out/result.json").read_text())["model"]["refit"] is None
    assert "It is used as it was tested." in Path("out/report.html").read_text()


def test_unlabelled_nodes_have_the_features_of_the_split_by_time(shop):
    nodes, edges = (shop / "shop" / f"{name}.csv" for name in ("nodes", "edges"))
    for path, column in ((nodes, "since"), (edges, "when")):
        rows = read(path)
        days = [place / len(rows) for place in range(len(rows))]
        amounts = [10 * day for day in days]
        random.Random(0).shuffle(days if path == nodes else amounts)
        header = [*rows[0], column, "paid"] if path == edges else [*rows[0], column]
        added = zip(days, amounts, strict=True) if path == edges else ((day,) for day in days)
        write(path, header, *([*row.values(), *new] for row, new in zip(rows, added, strict=True)))
    words = [*COLUMNS, *FAST, "--time-column", "since", "--edge-time", "when"]
    assert call("run", "shop", *words, "--out", "out", "--save", "model") == 0
    assert call("predict", "model", "shop", "--only-unlabelled", "--out", "p.csv") == 0
    assert read(shop / "p.csv") == read(shop / "out" / "predictions.csv")


BRIEF = ["--set", "max_epochs=6", "--set", "clusters_per_class=3"]


@pytest.fixture
def fraud(monkeypatch):
    """A graph of two classes under the name of toy."""
    graph = toy(400, 1600, 60, 2, size_ratio=0.2)
    graph.class_names = ["honest", "fraud [new]"]
    monkeypatch.setattr("evengraph.pipeline.sources.load", lambda name: graph)
    return graph


def test_compare_from_start_to_end(tmp_path, capsys):
    words = ["--method", "gcn,reweight,unignn", "--splits", "3", "--out", str(tmp_path)]
    assert call("compare", "toy", *BRIEF, *words) == 0
    kept = json.loads((tmp_path / "comparison.json").read_text())
    rows = list(csv.DictReader((tmp_path / "comparison.csv").read_text().splitlines()))
    files = [f"comparison.{kind}" for kind in ("csv", "html", "json")]
    below = sorted(path.name for path in tmp_path.iterdir() if path.is_dir())
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == files
    assert below == ["gcn", "reweight", "unignn"]
    page = (tmp_path / "comparison.html").read_text()
    for name in below:
        assert f'href="{name}/report.html"' in page
        assert 'href="../comparison.html"' in (tmp_path / name / "report.html").read_text()
    assert kept["command"].startswith("evengraph compare toy --set max_epochs=6")
    assert kept["command"] in re.sub("<[^>]*>", "", page)  # without the marks of words
    assert kept["dataset"] == "toy"
    assert kept["seeds"] == [0, 1, 2]
    assert kept["protocol"] == {"name": "natural", "train": 0.1, "val": 0.1}
    assert [row["method"] for row in rows] == [one["label"] for one in kept["methods"]]
    assert {row["method"] for row in rows} == {"gcn", "reweight", "unignn"}
    means = [float(row["balanced_accuracy"]) for row in rows]
    assert means == sorted(means, reverse=True)
    assert float(rows[1]["behind_difference"]) == pytest.approx(means[0] - means[1], abs=1e-4)
    assert rows[0]["behind_difference"] == ""
    settings = {one["label"]: one["settings"] for one in kept["methods"]}
    assert settings["gcn"]["patience"] == 100
    assert settings["gcn"]["max_epochs"] == 6
    assert settings["reweight"]["balance"] is True
    shown = capsys.readouterr()
    said = " ".join(shown.out.split())
    assert "too few for an interval" in said
    assert " ".join(kept["verdict"]["sentences"]) in said
    assert "split 2: Uni-GNN" in shown.err


def test_two_classes(tmp_path, capsys, fraud):
    words = ["--method", "gcn,reweight", "--splits", "3", "--train", "0.3", "--val", "0.2"]
    assert call("compare", "toy", *BRIEF[:2], *words, "--out", str(tmp_path)) == 0
    said = " ".join(capsys.readouterr().out.split())
    size = int((fraud.y == 1).sum())
    assert f"The positive class is fraud [new], {size} of 400 labelled nodes" in said
    kept = json.loads((tmp_path / "comparison.json").read_text())
    assert kept["positive"] == "fraud [new]"
    words = ["--method", "gcn", "--splits", "1", "--positive", "honest"]
    assert call("compare", "toy", *BRIEF[:2], *words) == 0
    assert "The positive class is honest" in " ".join(capsys.readouterr().out.split())


def test_time_that_runs_out_is_said(capsys, monkeypatch):
    clock = iter(range(100_000))
    for module in ("run", "executor"):
        monkeypatch.setattr(f"evengraph.pipeline.{module}.time", lambda: next(clock))
    words = ["--method", "gcn", "--splits", "5", "--time-limit", "20", *BRIEF[:2]]
    assert call("compare", "toy", *words) == 0
    assert "Time ran out: 2 of 5 splits are counted." in capsys.readouterr().err


def test_a_page_that_cannot_be_written_costs_no_other(tmp_path, monkeypatch, capsys):
    write = files.write_json

    def full(result, path):
        if path.parent.name == "gcn":
            raise OSError(28, "No space left on device", str(path))
        write(result, path)

    monkeypatch.setattr(files, "write_json", full)
    words = ["--method", "gcn,mlp", "--splits", "2", "--set", "max_epochs=2"]
    assert call("run", "toy", *words, "--out", str(tmp_path)) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert (tmp_path / "mlp" / "result.json").exists()
    assert (tmp_path / "comparison.json").exists()


def test_an_interrupt_after_failures_alone_is_an_interrupt(tmp_path, monkeypatch):
    def broken(self, task):
        raise ValueError("broken")

    def interrupted(self, task):
        raise KeyboardInterrupt

    monkeypatch.setattr(METHODS["gcn"], "_fit", broken)
    monkeypatch.setattr(METHODS["mlp"], "_fit", interrupted)
    assert call("run", "toy", "--method", "gcn,mlp", "--out", tmp_path) == 130


@pytest.mark.parametrize("before", [False, True])
def test_a_comparison_that_fails_leaves_no_folder(before, tmp_path, capsys, fraud):
    fraud.y[fraud.y == 1] = -1
    fraud.y[0] = 1
    folder = tmp_path / "deep" / "new"
    if before:
        folder.mkdir(parents=True)
    assert call("compare", "toy", "--method", "gcn", "--splits", "3", "--out", str(folder)) == 2
    assert "Class" in capsys.readouterr().err
    assert folder.exists() == folder.parent.exists() == before


def test_semisupervised_draws_ten_splits_and_compares_by_average_precision(fraud, tmp_path):
    words = ["--split", "semisupervised", "--method", "logistic", "--set", "max_epochs=2"]
    assert call("compare", "toy", *words, "--out", str(tmp_path / "out")) == 0
    content = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert content["metric"] == "positive_average_precision"
    assert content["seeds"] == list(range(10))
    assert content["protocol"] == {"name": "semisupervised", "positives": 20, "negatives": 80}


def test_a_long_fit_away_from_a_terminal_prints_lines(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("evengraph.training.loop.LINE_EVERY", 0)
    assert call("run", "toy", *QUICK, "--splits", "5-6", "--out", str(tmp_path)) == 0
    lines = capsys.readouterr().err.splitlines()
    for count, seed in enumerate((5, 6), start=1):
        *epochs, end = [line.partition(",")[0] for line in lines if line.startswith(f"seed {seed}")]
        assert epochs == [f"seed {seed} ({count} of 2): epoch {epoch}" for epoch in range(4)]
        assert end.startswith(f"seed {seed}: bAcc")


def test_the_split_of_a_graph_is_counted():
    y, part = torch.tensor([0, 1, 0, -1]), torch.tensor([True, True, False, True])
    graph = Data(num_nodes=4, y=y, train_mask=part, test_mask=~part)
    assert given_split(graph, 0.2) == (
        "the split of the graph (2 train, 1 test, 20% of train drawn for val)"
    )
    graph.val_mask = ~part
    assert given_split(graph, 0.2) == "the split of the graph (2 train, 1 val, 1 test)"


SHORT = ["--set", "max_epochs=2", "--splits", "5-5"]


def test_what_follows_a_comparison_has_its_split(tmp_path):
    """By default `run` makes a step imbalance of a data set, and `compare` does not."""
    words = ["toy", "--method", "gcn,reweight", "--set", "max_epochs=2", "--splits", "1"]
    assert call("compare", *words, "--train", "0.2", "--out", tmp_path / "c") == 0
    (line,) = json.loads((tmp_path / "c" / "comparison.json").read_text())["commands"]
    assert "--split natural --train 0.2 --val 0.1" in line
    assert call("run", "toy", "--method", "gcn,reweight", *SHORT, "--out", tmp_path / "r") == 0
    (line,) = json.loads((tmp_path / "r" / "comparison.json").read_text())["commands"]
    assert "--split step --minority 3 --ratio 0.1" in line


@pytest.mark.parametrize(("folds", "expected"), [(5, ["--split folds --val 0.1"]), (3, [])])
def test_run_follows_a_cross_validation_that_it_can_repeat(folds, expected, tmp_path, capsys):
    words = ["toy", "--method", "gcn,reweight", "--set", "max_epochs=2", "--folds", folds]
    assert call("compare", *words, "--out", tmp_path) == 0
    assert f"{folds}-fold cross-validation" in capsys.readouterr().out
    kept = json.loads((tmp_path / "comparison.json").read_text())
    assert kept["protocol"] == {"name": "folds", "folds": folds, "val": 0.1}
    assert kept["overlap"] == pytest.approx(1 / (folds - 1), rel=0.01)
    commands = kept["commands"]
    assert len(commands) == len(expected)
    assert all(part in line for part, line in zip(expected, commands, strict=True))
    for words in commands:
        assert call(*words.split()[1:-1], tmp_path / "m", *SHORT) == 0


def test_what_to_do_after_a_run_of_own_tables(shop, capsys):
    words = ["shop", *COLUMNS, "--method", "gcn", *SHORT, "--out", "r"]
    assert call("run", *words) == 0
    result = json.loads((shop / "r" / "result.json").read_text())
    first, compare = result["commands"]
    assert first == f"{result['command']} --save model"
    assert compare == "evengraph compare shop --label kind --id account"
    assert call("run", *words, "--save", "model") == 0
    result = json.loads((shop / "r" / "result.json").read_text())
    predict, explain, *_ = result["commands"]
    assert predict.startswith("evengraph predict model shop --out")
    capsys.readouterr()
    for words in (predict, explain):
        assert call(*words.split()[1:]) == 0
    page = (shop / "r" / "report.html").read_text()
    assert 'href="predictions.csv"' in page
    assert 'href="result.json"' in page


def test_run_with_several_methods_is_a_comparison(tmp_path, monkeypatch, capsys):
    """One that fails is left out and named; results of the others are those of `compare`."""
    words = ["--method", "gcn,reweight,unignn", "--splits", "5,6", "--set", "scale=2"]
    words += ["--set", "clusters_per_class=900", *TINY, "--out"]
    assert call("run", "toy", *words, tmp_path / "r") == 2
    shown = capsys.readouterr()
    assert "Error: Uni-GNN did not run: clusters_per_class=900 makes 4500 clusters" in shown.err
    assert "split 6: Re-weight" in shown.err
    paths = tmp_path.glob("r/*/result.json")
    results = {path.parent.name: json.loads(path.read_text()) for path in paths}
    assert set(results) == {"gcn", "reweight"}
    assert results["reweight"]["method"]["fields"]["scale"] == 2
    content = json.loads((tmp_path / "r" / "comparison.json").read_text())
    assert " ".join(content["verdict"]["sentences"]) in " ".join(shown.out.split())
    assert content["methods"][0]["changed"] == ["max_epochs"]
    own = (tmp_path / "r" / "gcn" / "report.html").read_text()
    assert 'href="../reweight/report.html"' in own
    assert "unignn/report.html" not in own  # it has none
    rows = list(csv.DictReader((tmp_path / "r" / "comparison.csv").read_text().splitlines()))
    for row in rows:
        mean, std = (results[row["method"]][name] for name in ("mean", "std"))
        assert float(row["g_mean"]) == pytest.approx(mean["g_mean"], abs=1e-4)
        assert float(row["g_mean_std"]) == pytest.approx(std["g_mean"], abs=1e-4)


@pytest.mark.parametrize("splits", [1, 3])
def test_what_ended_before_ctrl_c_or_a_kill_is_written(splits, tmp_path, monkeypatch, capsys):
    kept = []

    def stop(self, task):
        kept.extend(json.loads(path.read_text()) for path in tmp_path.glob("gcn/result.json"))
        raise KeyboardInterrupt

    monkeypatch.setattr(METHODS["reweight"], "_fit", stop)
    words = ["--method", "gcn,reweight", *TINY, "--splits", splits, "--out", tmp_path]
    assert call("run", "toy", *words) == 130
    shown = capsys.readouterr()
    assert "Re-weight did not run: it had finished no split when the run was stop" in shown.err
    assert f"Stopped: 1 of {splits} splits are counted." in shown.err
    now = json.loads((tmp_path / "gcn" / "result.json").read_text())
    assert kept == ([now] if splits == 1 else [])  # of three splits GCN had run on one
    assert now["complete"] == (splits == 1)
