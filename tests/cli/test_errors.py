"""Mistakes: one line on standard error, status 2, and nothing written."""

import json
import os

import pytest

from command_line import COLUMNS, FAST, NEW, UNIGNN, call, write

PACK = ["pack", "--out", "graph"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "coraa"], ["coraa", "cora", "toy"]),
        (["run", "toy", "--method", "unignnn"], ["unignnn", "gcn", "unignn"]),
        (["run", "toy", "--method", "gcn,nobody"], ["nobody", "lte4g"]),
        (["run", "toy", "--method", "gcn,reweight", "--set", "alpha=2"], ["alpha", "scale"]),
        (["run", "toy", "--method", "gcn,"], ["method ''"]),
        (["run", "toy", "--method", "reweight", "--set", "minority=5"], ["minority", "5 classes"]),
        (["run", "toy", "--split", "steps"], ["steps", "longtail"]),
        (["run", "toy", "--split", "natural", "--minority", "2"], ["--minority", "--train, --val"]),
        (["run", "toy", "--set", "alpha=2"], ["Unknown parameter of Auto 'alpha'"]),
        (["run", "toy", *UNIGNN, "--set", "alfa=2"], ["alfa", "Did you mean alpha"]),
        (["run", "toy", *UNIGNN, "--set", "alpha"], ["name=value"]),
        (["run", "toy", *UNIGNN, "--set", "alpha=0"], ["alpha", "at least 1"]),
        (
            ["run", "toy", *UNIGNN, "--set", "clusters_per_class=900"],
            ["4500 clusters", "2000 nodes"],
        ),
        (["run", "toy", "--minority", "9"], ["minority", "0 and 4", "9"]),
        (["run", "toy", "--minority", "many"], ["--minority"]),
        (["run", "toy", "--ratio", "0.01"], ["0.05"]),
        (["run", "toy", "--ratio", "2"], ["(0, 1]"]),
        (["run", "toy", "--splits", "5;6"], ["5,6,7", "5-24"]),
        (["run", "toy", "--splits", "9" * 24], ["between 1 and 1000"]),
        (["run", "toy", "--splits", f"5,{'9' * 24}"], ["seeds", "2^32"]),
        (["run", "toy", "--splits", "0-999999999"], ["at most 1000"]),
        (["run", "toy", "--device", "tpu"], ["auto, cpu, cuda"]),
        (["run", "toy", "--split", "publicstep"], ["public split"]),
        (["run", "toy", "--no-such-option"], ["--no-such-option"]),
        (["run"], ["DATA"]),
        (["rum"], ["rum"]),
        (["methods", "gnc"], ["gcn"]),
        (["data", "fetch", "corra"], ["cora"]),
        (["run", "toy", "--out", "shop/nodes.csv/below"], ["Cannot write"]),
        (
            ["run", "toy", "--method", "gcn", "--cost-miss", "5"],
            ["threshold is for two classes"],
        ),
        (["run", "toy", "--method", "gcn", "--cost-miss", "0"], ["cost_miss must be above 0"]),
        (["run", "shap"], ["shap", "cora"]),
        (["run", "shop/none.csv", "--edges", "shop/edges.csv"], ["none.csv"]),
        (["run", "shop", "--label", "sort", "--id", "account"], ["sort", "kind"]),
        (["run", "shop", "--label", "kind", "--id", "who"], ["who", "account"]),
        (["run", "shop", "--id", "account"], ["perhaps 'kind' or 'country'", "--label"]),
        (["run", "shop/nodes.csv", *COLUMNS], ["edges"]),
        (["run", "cora", "--label", "kind"], ["--label", "./cora"]),
        (["run", "shop", *COLUMNS, "--save", "shop", *FAST], ["shop", "other files"]),
        (["run", "shop", *COLUMNS, "--save", "m", "--method", "gcn,smote"], ["--save", "one"]),
        (["run", "shop", *COLUMNS, "--minority", "2"], ["--minority", "--train"]),
        (["run", "shop", *COLUMNS, "--split", "given"], ["--split-column"]),
        (["predict", "nowhere", "shop/nodes.csv", "shop/edges.csv"], ["nowhere"]),
        (["predict", "shop", "shop/nodes.csv", "shop/edges.csv"], ["shop", "not a model"]),
        (["explain", "nowhere", "a-001"], ["nowhere"]),
        (["compare"], ["DATA"]),
        (["compare", "shop", *COLUMNS, "--method", "gnc"], ["gnc", "gcn"]),
        (["compare", "toy", "--metric", "tuned_f1"], ["two classes", "5"]),
        (["compare", "toy", "--positive", "fraud"], ["Unknown class 'fraud'"]),
        (["compare", "toy", "--splits", "0"], ["--splits", "0"]),
        (["compare", "toy", "--folds", "1"], ["folds must be at least 2"]),
        (["compare", "toy", "--folds", "5", "--splits", "3"], ["leave --splits out"]),
        (["compare", "toy", "--folds", "5", "--train", "0.3"], ["leave --train out"]),
        (["compare", "toy", "--folds", "900"], ["Class", "900 folds"]),
        (["compare", "toy", "--train", "0.9", "--val", "0.2"], ["train + val"]),
        (["compare", "toy", "--split", "semisupervised", "--train", "0.3"], ["has no --train"]),
        (["compare", "toy", "--split", "step"], ["'step'"]),
        (["inspect", "coraa"], ["coraa"]),
        (["inspect", "toy", "--hops", "0"], ["hops must be at least 1"]),
        (["inspect", "shop", *COLUMNS, "--drop", "colour"], ["colour"]),
        ([*PACK, "a.csv", "b.csv", "c.csv"], ["give the edges by --edges"]),
        ([*PACK, "nothing.parquet", "shop/edges.csv"], ["nothing.parquet does not exist"]),
        ([*PACK, "shop", "--memory", "much"], ["memory must be a size such as 4GB"]),
        ([*PACK, "shop", "--label", "nothing"], ["has no column 'nothing'"]),
        (["pack", "shop", *COLUMNS, "--out", "shop"], ["shop exists; remove it"]),
        (["suggest", "shop", *COLUMNS, "--out", "next.txt"], ["ends in .csv"]),
        (["suggest", "shop", *COLUMNS, "--strategy", "nothing"], ["Unknown strategy"]),
        (["suggest", "shop", *COLUMNS, "--budget", "0"], ["budget must be at least 1"]),
    ],
)
def test_mistakes_get_one_line_and_status_two(arguments, words, shop, capsys):
    before = sorted(shop.rglob("*"))
    assert call(*arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert [line.startswith("Error: ") for line in lines].count(True) == 1
    assert lines[-1].startswith("Error: ")
    for word in words:
        assert word in lines[-1]
    assert sorted(shop.rglob("*")) == before


TABLES = ["shop/nodes.csv", "shop/edges.csv"]


def test_mistakes_with_a_model(model, shop, capsys):
    write(shop / "n.csv", NEW, ["new-1", "2", "DE"])
    write(shop / "bare.csv", ["account", "country"], ["new-1", "DE"])
    write(shop / "e.csv", ["from", "to"], ["new-1", "a-000"])
    known = ["--known", "shop"]
    capsys.readouterr()
    for arguments, words in (
        (["explain", "model", "nobody"], "like a-000, a-001, a-002. A new one? Name --new-nodes"),
        (["explain", "model", "a-003", "--out", "why.png"], ".svg"),
        (["explain", "model", "new-1", "--new-nodes", "n.csv"], "--new-edges must name"),
        (["explain", "model", "new-1", "--new-edges", "e.csv"], "goes with --new-nodes"),
        (["export", "model", "--out", "model.pt"], "ends in .onnx, got model.pt."),
        (["predict", "model", *TABLES, "--out", "p.txt"], "ends in .csv or .parquet"),
        (["predict", "model", "shop", "--top", "4"], "--top lists nodes of the rarer of two"),
        (
            ["predict", "model", "shop", "--cost-miss", "5"],
            "threshold needs a model of two",
        ),
        (["predict", "model", "n.csv", "e.csv"], "--known"),
        (["predict", "model", "bare.csv", "e.csv", *known], "bare.csv has no column 'amount'"),
        (["predict", "model", "n.csv", "e.csv", "--known", *TABLES[:1]], "--known-edges must"),
        (["predict", "model", "n.csv", "e.csv", "--known-edges", "e.csv"], "goes with --known"),
    ):
        assert call(*arguments) == 2
        (line,) = [one for one in capsys.readouterr().err.splitlines() if "Error: " in one]
        assert words in line
    assert call("run", "toy", *FAST, "--save", "toy-model", "--out", "out") == 0
    assert call("predict", "toy-model", *TABLES) == 2
    assert "trained on a graph" in capsys.readouterr().err


def test_former_names_of_options_are_accepted_with_a_hint(shop, capsys, monkeypatch):
    monkeypatch.setenv("EVENGRAPH_DATA", "elsewhere")
    former = ["--imbalance", "natural", "--seeds", "6", "--out", "a"]
    current = ["--split", "natural", "--splits", "6-6", "--out", "b"]
    words = ["run", "toy", "--method", "gcn", "--set", "max_epochs=1"]
    assert call(*words, *former) == 0
    hints = capsys.readouterr().err.splitlines()[:2]
    assert hints == ["Hint: --imbalance is now --split.", "Hint: --seeds is now --splits."]
    assert call(*words, *current) == 0
    assert "Hint" not in capsys.readouterr().err
    results = [json.loads((shop / name / "result.json").read_text()) for name in "ab"]
    assert results[0]["seeds"] == results[1]["seeds"] == [6]
    assert results[0]["mean"] == results[1]["mean"]
    assert "--splits 6-6" in results[0]["command"]
    assert call("data", "list", "--data-root", shop) == 0
    assert capsys.readouterr().err == "Hint: --data-root is now the variable EVENGRAPH_DATA.\n"
    assert os.environ["EVENGRAPH_DATA"] == str(shop)
    assert call("compare", "toy", "--methods=gnc") == 2
    assert "Hint: --methods is now --method.\nError: Unknown method 'gnc'" in (
        capsys.readouterr().err
    )
