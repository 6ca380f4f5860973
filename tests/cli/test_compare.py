"""evengraph compare, from words to verdict."""

import csv
import json
import re

import pytest

from evengraph.cli import main
from evengraph.datasets import toy
from evengraph.methods import METHODS
from evengraph.metrics.registry import METRICS

QUICK = ["--set", "max_epochs=6", "--set", "clusters_per_class=3"]


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["compare", *arguments])
    assert isinstance(stop.value.code, int)
    return stop.value.code


@pytest.fixture
def fraud(monkeypatch):
    """A graph of two classes under the name of toy."""
    graph = toy(400, 1600, 60, 2, size_ratio=0.2)
    graph.class_names = ["honest", "fraud [new]"]
    monkeypatch.setattr("evengraph.pipeline.sources.load", lambda name, root: graph)
    return graph


def test_compare_from_start_to_end(tmp_path, capsys):
    words = ["--methods", "gcn,reweight,unignn", "--splits", "3", "--out", str(tmp_path)]
    assert call("toy", *QUICK, *words) == 0
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
    assert "100 epochs without a better validation score" in said
    assert "means over 3 splits, too few for an interval;" in said
    assert f"{means[0]:.1f} (" not in said
    assert " ".join(kept["verdict"]["sentences"]) in said
    assert "split 2: Uni-GNN" in shown.err


def test_the_table_and_the_sentence_have_one_interval(tmp_path, capsys):
    words = ["--methods", "gcn,reweight,smote", "--splits", "5", "--set", "max_epochs=12"]
    assert call("toy", *words, "--out", str(tmp_path)) == 0
    kept = json.loads((tmp_path / "comparison.json").read_text())
    lines = capsys.readouterr().out.splitlines()
    assert "corrected for 3 comparisons (Holm)" in " ".join(" ".join(lines).split())
    best = kept["methods"][0]["label"]
    for pair in kept["pairs"]:
        if best not in (pair["ahead"], pair["behind"]):
            continue
        other = pair["behind"] if pair["ahead"] == best else pair["ahead"]
        title = next(one["title"] for one in kept["methods"] if one["label"] == other)
        line = next(line for line in lines if line.startswith(f"{title}  "))
        ends = ("low", "high") if pair["strength"] == "here" else ("wide_low", "wide_high")
        low, high = (pair[end] for end in ends)
        assert f"{pair['difference']:.1f} ({low:.1f} to {high:.1f})" in line
        assert (low > 0) == (pair["strength"] != "noise")


def test_two_classes(tmp_path, capsys, fraud):
    words = ["--methods", "gcn,reweight", "--splits", "3", "--train", "0.3", "--val", "0.2"]
    assert call("toy", *QUICK[:2], *words, "--at", "10", "--out", str(tmp_path)) == 0
    said = " ".join(capsys.readouterr().out.split())
    size = int((fraud.y == 1).sum())
    assert f"The positive class is fraud [new], {size} of 400 labelled nodes" in said
    for title in ("AP", "P@k", "R@1%", "threshold", "F1 at thr.", "calibrated"):
        assert title in said
    kept = json.loads((tmp_path / "comparison.json").read_text())
    assert kept["positive"] == "fraud [new]"
    found = kept["methods"][0]["figures"]["precision_at_k"]["mean"]
    assert 3 * found / 10 == pytest.approx(round(3 * found / 10), abs=1e-4)
    assert call("toy", *QUICK[:2], "--methods", "gcn", "--splits", "1", "--positive", "honest") == 0
    assert "The positive class is honest" in " ".join(capsys.readouterr().out.split())


def test_a_setting_says_which_methods_take_it(tmp_path, capsys):
    words = ["--methods", "gcn,balancedsoftmax,reweight", "--splits", "1", "--set", "max_epochs=2"]
    assert call("toy", *words, "--set", "margin=tam", "--set", "reweight.hidden=8") == 0
    titles = [METHODS[name].title for name in ("gcn", "balancedsoftmax", "reweight")]
    others = f"({titles[0]}, {titles[2]} have no such parameter)"
    line = f"margin=tam applied to {titles[1]} only {others}."
    said = capsys.readouterr().out
    assert line in said.splitlines()
    assert "max_epochs=2 applied" not in said
    assert f"hidden=8 applied to {titles[2]} only." in said.splitlines()  # the others have it, too
    for command in ("compare", "run"):
        names = ["--methods" if command == "compare" else "--method", "gcn,reweight"]
        with pytest.raises(SystemExit) as stop:
            main([command, "toy", *names, "--set", "margin=tam"])
        assert stop.value.code == 2
        (error,) = capsys.readouterr().err.strip().splitlines()
        assert error.startswith("Error: Unknown parameter 'margin'")


@pytest.mark.parametrize("metric", ["balanced_accuracy", "recall_at_5", "tuned_f1"])
def test_nothing_is_cut_at_80_columns(metric, capsys, fraud, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    longest = sorted(METHODS, key=lambda name: -len(METHODS[name].title))
    cheap = [name for name in longest if name not in ("unreal", "iceberg", "graphens")][:2]
    words = ["--methods", ",".join(["gcn", "reweight", "balancedsoftmax", *cheap])]
    shares = ["--train", "0.3", "--val", "0.2", "--splits", "3", "--metric", metric]
    assert call("toy", *words, *shares, *QUICK[:2]) == 0
    said = capsys.readouterr().out
    assert "…" not in said
    tables = said.split("In percent")[0].partition("\nmethod ")[2]
    assert max(len(line) for line in tables.splitlines()) <= 80
    binary = {one.short for one in METRICS.values() if one.binary} - {METRICS[metric].short, "R@k"}
    for head in ("verdict", *binary, "ECE calibrated", "seconds"):
        assert head in said


def test_a_comparison_that_is_not_kept_says_how_to_keep_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["toy", "--methods", "gcn", "--splits", "1", "--set", "max_epochs=2"]
    line = "Nothing was written; --out DIR writes a page, CSV and JSON."
    assert call(*words) == 0
    assert line in capsys.readouterr().out.splitlines()
    assert not list(tmp_path.iterdir())
    assert call(*words, "--out", "kept") == 0
    assert line not in capsys.readouterr().out


def test_folds(tmp_path, capsys):
    words = ["--methods", "gcn", "--folds", "3", "--out", str(tmp_path), "--set", "max_epochs=2"]
    assert call("toy", *words) == 0
    assert "3-fold cross-validation" in capsys.readouterr().out
    kept = json.loads((tmp_path / "comparison.json").read_text())
    assert kept["protocol"] == {"name": "folds", "folds": 3, "val": 0.1}
    assert kept["overlap"] == pytest.approx(0.5, rel=0.01)


def test_a_method_that_fails_is_named_and_the_rest_is_shown(tmp_path, capsys):
    words = ["--methods", "gcn,unignn", "--splits", "2", "--set", "clusters_per_class=900"]
    assert call("toy", *words, "--set", "max_epochs=2", "--out", str(tmp_path)) == 2
    shown = capsys.readouterr()
    assert "Uni-GNN did not run: clusters_per_class=900 makes 4500 clusters" in shown.err
    assert "GCN" in shown.out
    assert (tmp_path / "comparison.json").exists()


def test_time_that_runs_out_is_said(capsys, monkeypatch):
    clock = iter(range(100_000))
    for module in ("comparison", "executor"):
        monkeypatch.setattr(f"evengraph.pipeline.{module}.time", lambda: next(clock))
    words = ["--methods", "gcn", "--splits", "5", "--time-limit", "20", *QUICK[:2]]
    assert call("toy", *words) == 0
    assert "Time ran out: 2 of 5 splits are counted." in capsys.readouterr().err


def test_an_interrupt_shows_in_the_status(capsys, monkeypatch):
    fits = iter(range(10))

    def seldom(self, task):
        if next(fits) == 2:
            raise KeyboardInterrupt
        return original(self, task)

    original = METHODS["gcn"]._fit
    monkeypatch.setattr(METHODS["gcn"], "_fit", seldom)
    assert call("toy", "--methods", "gcn", "--splits", "4", *QUICK[:2]) == 130
    shown = capsys.readouterr()
    assert "Stopped: 2 of 4 splits are counted." in shown.err
    assert "GCN" in shown.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["corra"], ["corra", "cora"]),
        (["toy", "--methods", "gnc"], ["gnc", "gcn"]),
        (["toy", "--metric", "f1"], ["Unknown metric 'f1'", "balanced_accuracy"]),
        (["toy", "--metric", "tuned_f1"], ["two classes", "5"]),
        (["toy", "--positive", "fraud"], ["Unknown class 'fraud'"]),
        (["toy", "--positive", "1"], ["positive is for two classes"]),
        (["toy", "--at", "5"], ["k is for two classes"]),
        (["toy", "--splits", "0"], ["--splits", "0"]),
        (["toy", "--folds", "1"], ["folds must be at least 2"]),
        (["toy", "--folds", "5", "--splits", "3"], ["leave --splits out"]),
        (["toy", "--folds", "5", "--train", "0.3"], ["leave --train out"]),
        (["toy", "--folds", "900"], ["Class", "900 folds"]),
        (["toy", "--train", "0.9", "--val", "0.2"], ["train + val"]),
        (["toy", "--budget", "0"], ["budget must be at least 1"]),
        (["toy", "--jobs", "0"], ["jobs must be at least 1"]),
        (["toy", "--time-limit", "soon"], ["90, 10m or 2h", "soon"]),
        (["toy", "--set", "alfa=1"], ["alfa"]),
        (["toy", "--device", "tpu"], ["device must be"]),
        ([], ["DATA"]),
    ],
)
def test_mistakes_get_one_line_and_status_two(arguments, words, tmp_path, capsys):
    folder = tmp_path / "new"
    assert call(*arguments, *(["--out", str(folder)] if arguments else [])) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("Error: ")
    for word in words:
        assert word in line
    assert not folder.exists()


@pytest.mark.parametrize("before", [False, True])
def test_a_comparison_that_fails_leaves_no_folder(before, tmp_path, capsys, fraud):
    fraud.y[fraud.y == 1] = -1
    fraud.y[0] = 1
    folder = tmp_path / "deep" / "new"
    if before:
        folder.mkdir(parents=True)
    assert call("toy", "--methods", "gcn", "--splits", "3", "--out", str(folder)) == 2
    assert "Class" in capsys.readouterr().err
    assert folder.exists() == folder.parent.exists() == before


def test_semisupervised_draws_ten_splits_and_compares_by_average_precision(fraud, tmp_path):
    words = ["--imbalance", "semisupervised", "--methods", "logistic", "--set", "max_epochs=2"]
    assert call("toy", *words, "--out", str(tmp_path / "out")) == 0
    content = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert content["metric"] == "positive_average_precision"
    assert content["seeds"] == list(range(10))
    assert content["protocol"] == {"name": "semisupervised", "positives": 20, "negatives": 80}


def test_semisupervised_goes_with_no_shares(capsys):
    assert call("toy", "--imbalance", "semisupervised", "--train", "0.3") == 2
    assert "semisupervised has no --train" in capsys.readouterr().err
    assert call("toy", "--imbalance", "step") == 2
    assert "'step'" in capsys.readouterr().err
