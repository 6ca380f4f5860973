import csv
import json
import os
import random
import select
import signal
from collections import Counter
from importlib import import_module
from pathlib import Path
from time import monotonic

import pytest
import torch
from command_line import COLUMNS, FAST, UNIGNN, call, read, write

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
    assert result["imbalance"] == {
        "name": "step",
        "minority": 3,
        "ratio": 0.1,
        "train_per_class": 20,
        "val_per_class": 25,
        "test_per_class": 55,
    }
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
    assert call("run", "toy", *words, "--splits", "5,6") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for run in json.loads((tmp_path / "result.json").read_text())["runs"]:
        assert f"seed {run['seed']} {run['summary'][0]}" in shown
        assert run["summary"][1] in shown


def test_a_folder_that_cannot_be_written_is_found_out_before_training(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert call("run", "toy", "--out", str(tmp_path / "file" / "below")) == 2
    assert "Cannot write" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize("method", ["gcn", "auto"])
def test_ctrl_c_keeps_the_best_model_so_far(method, tmp_path: Path):
    import pty

    words = ["run", "toy", "--method", method, "--splits", "5,6", "--out", str(tmp_path)]
    words += ["--set", "max_epochs=100000", "--set", "patience=100000"]
    terminal, end = pty.openpty()
    drawn = b""
    give_up = monotonic() + 120
    with command(*words, stderr=os.ttyname(end)) as child:
        while b"best" not in drawn and monotonic() < give_up:  # drawn once training is under way
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


def test_several_methods_are_compared_on_the_same_splits(tmp_path, capsys):
    words = ["--method", "gcn,reweight,smote", "--splits", "5,6", "--set", "scale=2"]
    assert call("run", "toy", *TINY, *words, "--out", str(tmp_path)) == 0
    results = {
        path.parent.name: json.loads(path.read_text()) for path in tmp_path.glob("*/result.json")
    }
    assert set(results) == {"gcn", "reweight", "smote"}
    assert {path.parent.name for path in tmp_path.glob("*/report.html")} == set(results)
    assert all(result["seeds"] == [5, 6] for result in results.values())
    assert all(result["method"]["fields"]["max_epochs"] == 2 for result in results.values())
    assert results["reweight"]["method"]["fields"]["scale"] == 2
    table = capsys.readouterr().out.split("seconds")[1]
    for name, result in results.items():
        row = next(line for line in table.splitlines() if line.startswith(METHODS[name].title))
        assert f"{result['mean']['macro_f1']:.1f}±" in row
    rows = list(csv.DictReader((tmp_path / "comparison.csv").read_text().splitlines()))
    assert {row["method"] for row in rows} == {"gcn", "reweight", "smote"}
    for row in rows:
        mean, std = (results[row["method"]][name] for name in ("mean", "std"))
        assert float(row["g_mean"]) == pytest.approx(mean["g_mean"], abs=1e-4)
        assert float(row["g_mean_std"]) == pytest.approx(std["g_mean"], abs=1e-4)
        assert (row["splits"], row["complete"]) == ("2", "True")
    scores = [float(row["balanced_accuracy"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert float(rows[1]["behind_difference"]) == pytest.approx(scores[0] - scores[1], abs=1e-4)


def test_run_and_compare_write_the_same_columns(tmp_path):
    words = ["--set", "max_epochs=2", "--out"]
    assert call("run", "toy", "--method", "gcn,mlp", "--splits", "5,6", *words, tmp_path / "r") == 0
    assert call("compare", "toy", "--method", "gcn,mlp", *words, tmp_path / "c") == 0
    heads = [
        (tmp_path / folder / "comparison.csv").read_text().splitlines()[0] for folder in ("r", "c")
    ]
    assert heads[0] == heads[1]
    assert "balanced_accuracy_paper" in heads[0]
    rows = csv.DictReader((tmp_path / "r" / "comparison.csv").read_text().splitlines())
    assert all(0 <= float(row["calibrated_error"]) <= 100 for row in rows)


def test_a_run_looks_everything_up_once(tmp_path, monkeypatch):
    counts = Counter()

    def counted(where, name):
        real = getattr(where, name)

        def call(*arguments, **options):
            counts[where.__name__, name] += 1
            return real(*arguments, **options)

        monkeypatch.setattr(where, name, call)

    counted(SPLITS["step"], "__init__")
    counted(METHODS["gcn"], "__init__")
    for where in ("evengraph.datasets.loading", "evengraph.datasets.registry"):
        counted(import_module(where), "lookup")
    words = ["--method", "gcn", "--splits", "5,6,7", "--out", tmp_path]
    assert call("run", "toy", *TINY, *words) == 0
    assert counts["evengraph.datasets.loading", "lookup"] == 1
    assert counts["evengraph.datasets.registry", "lookup"] == 0
    assert counts["Step", "__init__"] == 1
    assert counts["GCN", "__init__"] <= 3 + 1


def test_a_method_that_cannot_run_does_not_stop_the_others(tmp_path, capsys):
    words = [
        "--method",
        "gcn,unignn,reweight",
        "--splits",
        "5-5",
        "--set",
        "clusters_per_class=900",
    ]
    assert call("run", "toy", *TINY, *words, "--out", str(tmp_path)) == 2
    shown = capsys.readouterr()
    assert "Error: Uni-GNN did not run: clusters_per_class=900 makes 4500 clusters" in shown.err
    assert {path.parent.name for path in tmp_path.glob("*/result.json")} == {"gcn", "reweight"}
    assert "Re-weight" in shown.out.split("seconds")[1]


def test_methods_see_the_same_splits(tmp_path, monkeypatch):
    seen = {}

    def spy(self, task):
        seen.setdefault(self.title, []).append(task)
        raise FloatingPointError("enough")

    for name in ("gcn", "reweight"):
        monkeypatch.setattr(METHODS[name], "_fit", spy)
    words = ["--method", "gcn,reweight", "--splits", "6-6", "--out", str(tmp_path)]
    assert call("run", "toy", *words) == 2
    (first,), (second,) = seen["GCN"], seen["Re-weight"]
    for mask in ("train", "val", "test"):
        assert torch.equal(getattr(first, mask), getattr(second, mask))


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError("can't allocate memory")]
)
def test_running_out_of_memory_is_no_traceback(error, tmp_path, monkeypatch, capsys):
    def fail(self, task):
        raise error

    monkeypatch.setattr(METHODS["reweight"], "_fit", fail)
    words = ["--method", "gcn,reweight,smote", "--splits", "5-5", "--out", str(tmp_path)]
    assert call("run", "toy", *TINY, *words) == 2
    shown = capsys.readouterr()
    assert "Re-weight ran out of memory" in shown.err
    assert {path.parent.name for path in tmp_path.glob("*/result.json")} == {"gcn", "smote"}


def test_an_interrupted_comparison_says_what_is_missing(tmp_path, monkeypatch, capsys):
    def stop(self, task):
        raise KeyboardInterrupt

    monkeypatch.setattr(METHODS["reweight"], "_fit", stop)
    words = ["--method", "gcn,reweight,smote", "--splits", "5-5", "--out", str(tmp_path)]
    assert call("run", "toy", *TINY, *words) == 130
    shown = capsys.readouterr()
    assert "GCN" in shown.out.split("seconds")[1]
    assert "Not run: Re-weight, SMOTE." in shown.err


def test_all_stands_for_every_method(tmp_path, monkeypatch, capsys):
    def fail(self, task):
        raise FloatingPointError(f"{type(self).__name__} was asked")

    for kind in METHODS.values():
        monkeypatch.setattr(kind, "_fit", fail)
    assert call("run", "toy", "--method", "all", "--splits", "5-5", "--out", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert all(f"{kind.__name__} was asked" in said for kind in METHODS.values())


def test_two_classes_are_shown_with_the_figures_of_the_rarer_one(tmp_path, capsys, monkeypatch):
    graph = toy(300, 1200, 40, 2, size_ratio=0.2)
    monkeypatch.setattr("evengraph.pipeline.sources.load", lambda name, root: graph)
    words = ["--split", "natural", "--method", "gcn", "--splits", "0,1", "--out", str(tmp_path)]
    assert call("run", "toy", *TINY, *words) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    mean = result["mean"]["positive_average_precision"]
    assert f"{mean:.1f}±" in capsys.readouterr().out.split("R@1%")[1]
    assert "Positive-class average precision" in (tmp_path / "report.html").read_text()


def test_a_run_that_fails_leaves_no_folder(tmp_path, capsys):
    folder = tmp_path / "deep" / "new"
    words = [*UNIGNN, "--set", "clusters_per_class=900", "--out", str(folder)]
    assert call("run", "toy", *words) == 2
    assert not folder.parent.exists()


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


def test_unlabelled_nodes_are_predicted_by_the_saved_model(shop, capsys):
    assert call("run", "shop", *COLUMNS, *FAST, "--out", "out", "--save", "model") == 0
    shown, progress = capsys.readouterr()
    assert "retrained on" in shown
    assert "training again with the test labels added" in progress  # no silence meanwhile
    rows, nodes = read(shop / "out" / "predictions.csv"), read(shop / "shop" / "nodes.csv")
    missing = [row["account"] for row in nodes if not row["kind"]]
    assert [row["account"] for row in rows] == missing
    assert f"predictions.csv: {len(missing)} unlabelled nodes" in shown
    assert call("predict", "model", "shop", "--only-unlabelled", "--out", "p.csv") == 0
    assert read(shop / "p.csv") == rows
    model = json.loads((shop / "out" / "result.json").read_text())["model"]
    assert model["refit"]["train"] > model["refit"]["train_before"]
    assert model["abstention"][0]["coverage"] == 1
    assert "trained again with the test labels" in (shop / "out" / "report.html").read_text()
    assert call("run", "shop", *COLUMNS, *FAST, "--out", "b", "--save", "m", "--no-refit") == 0
    assert "trained again" not in capsys.readouterr().out
    assert read(shop / "b" / "predictions.csv") != rows


def test_a_second_fit_that_fails_is_a_warning_of_one_line(shop, capsys, monkeypatch):
    def refitted(self, task, *, seed):
        raise ValueError("No memory.")

    monkeypatch.setattr(METHODS[FAST[1]], "refitted", refitted)
    assert call("run", "shop", *COLUMNS, *FAST, "--out", "out", "--save", "model") == 0
    shown = capsys.readouterr()
    assert "Warning: Not trained again on all labels: No memory.\n" in shown.err
    assert "then trained again" not in shown.out
    assert (shop / "model").is_dir()


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
