"""run and predict of a packed graph, from disk."""

import json

import numpy as np
import pandas
import pytest
import torch
from command_line import call, read

from evengraph.datasets import toy
from evengraph.disk import pack_graph

FAST = ["--method", "unison", "--set", "max_epochs=5", "--set", "members=1", "--splits", "5-5"]


@pytest.fixture
def packed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = toy(200, 600, 8, 2)
    graph.class_names = ["no", "yes"]
    return pack_graph(graph, tmp_path / "graph", ids=np.arange(200) + 1000)


def test_run_and_predict_from_disk(packed, capsys):
    arguments = ["--memory", "50MB", "--out", "out", "--save", "model"]
    assert call("run", "graph", *FAST, *arguments) == 0
    shown = capsys.readouterr()
    assert "natural split (train=0.6, val=0.2)" in shown.out
    assert "structural view: done in" in shown.err
    result = json.loads((packed.path.parent / "out" / "result.json").read_text())
    assert result["dataset"]["num_edges"] == packed.num_edges // 2
    assert call("predict", "model", "graph", "--memory", "50MB", "--out", "p.csv") == 0
    shown = capsys.readouterr()
    rows = read(packed.path.parent / "p.csv")
    assert [row["id"] for row in rows[:2]] == ["1000", "1001"]
    counts = {name: sum(row["class"] == name for row in rows) for name in ("no", "yes")}
    for name, count in counts.items():
        assert f"{count:>10,}  {name}" in shown.out
    for suffix in ("parquet", "npy"):
        assert call("predict", "model", "graph", "--memory", "50MB", "--out", f"p.{suffix}") == 0
    frame, array = pandas.read_parquet("p.parquet"), np.load("p.npy")
    np.testing.assert_allclose(frame[["p_no", "p_yes"]].to_numpy(), array)
    np.testing.assert_allclose([float(row["p_yes"]) for row in rows], array[:, 1], atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--memory", "50MB", "--method", "gcn"], "GCN needs the whole graph in memory"),
        (["--memory", "lots"], "memory must be a size such as 4GB"),
        (["--memory", "1KB"], "memory must be at least 32.0 MiB, got 1KB"),
        (["--memory", "50MB", "--refit"], "--refit needs the whole graph in memory"),
        (["--memory", "50MB", "--split", "longtail"], "--split longtail needs the whole"),
        (
            ["--memory", "50MB", "--label", "kind"],
            "has chosen its columns; leave out --label.",
        ),
    ],
)
def test_what_needs_memory_is_refused(packed, capsys, arguments, words):
    assert call("run", "graph", *arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "method",
    [["gcn", "--set", "backbone=gat"], ["unignn", "--set", "alpha=1"], ["lte4g"], ["auto"]],
    ids=" ".join,
)
def test_a_model_of_layers_predicts_from_disk(packed, capsys, method):
    quick = ["--set", "max_epochs=3", "--splits", "1-1", "--save", "model"]
    if method == ["auto"]:
        quick += ["--set", "candidates=graphens"]
    assert call("run", "graph", "--method", *method, *quick) == 0
    assert call("predict", "model", "graph", "--out", "whole.csv") == 0
    assert call("predict", "model", "graph", "--memory", "50MB", "--out", "blocks.npy") == 0
    assert "layer 1: done in" in capsys.readouterr().err
    whole = pandas.read_csv("whole.csv")[["p_no", "p_yes"]].to_numpy()
    np.testing.assert_allclose(np.load("blocks.npy"), whole, atol=2e-6)


def test_memory_is_for_packed_graphs_that_exist(packed, capsys):
    assert call("run", "nowhere", "--memory", "50MB") == 2
    assert "Error: nowhere does not exist." in capsys.readouterr().err
    (packed.path.parent / "plain").mkdir()
    assert call("run", "plain", "--memory", "50MB", "--label", "kind") == 2
    assert "evengraph pack plain --out graph makes one" in capsys.readouterr().err


def test_a_model_of_longer_paths_is_refused(packed, capsys):
    options = ["--set", "alpha=2", "--set", "max_epochs=1", "--splits", "1-1", "--save", "model"]
    assert call("run", "graph", "--method", "unignn", *options) == 0
    assert call("predict", "model", "graph", "--memory", "50MB", "--out", "p.csv") == 2
    assert "alpha=2 needs the whole graph in memory to predict it" in capsys.readouterr().err


def test_a_graph_that_does_not_fit_stays_on_disk(packed, capsys, monkeypatch):
    limits = "evengraph.pipeline.sources.available_memory"
    monkeypatch.setattr(limits, lambda: 40_000)
    assert call("run", "graph", *FAST, "--set", "views=structural", "--save", "model") == 0
    assert "structural view: done in" in capsys.readouterr().err
    assert call("predict", "model", "graph", "--top", "3") == 2
    assert "--top needs the whole graph in memory." in capsys.readouterr().err
    monkeypatch.setattr(limits, lambda: 10**9)
    assert call("predict", "model", "graph", "--out", "whole.csv") == 0  # features as packed
    assert call("predict", "model", "graph", "--memory", "50MB", "--out", "blocks.csv") == 0
    whole, blocks = (read(packed.path.parent / name) for name in ("whole.csv", "blocks.csv"))
    assert [row["class"] for row in whole] == [row["class"] for row in blocks]
    other = pack_graph(toy(50, 80, 8, 2), "other", encoder=None)
    assert call("predict", "model", str(other.path), "--memory", "50MB") == 0
    wider = pack_graph(toy(50, 80, 9, 2), "wider")
    assert call("predict", "model", str(wider.path), "--memory", "50MB") == 2
    assert "must hold the features that the model was trained on" in capsys.readouterr().err


def test_memory_is_for_packed_graphs(packed, capsys):
    assert call("run", "cora", "--memory", "1GB") == 2
    assert (
        "memory is for packed graphs: evengraph pack cora --out graph makes one"
        in capsys.readouterr().err
    )
    assert call("predict", "model", "graph", "--memory", "1GB", "--top", "3") == 2
    assert "--top needs the whole graph in memory." in capsys.readouterr().err
    assert call("predict", "model", "graph", "--memory", "1GB", "--out", "p.txt") == 2
    assert "ends in .csv, .parquet, .npy" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--memory", "50MB"]])
def test_a_graph_packed_without_labels_says_so(tmp_path, capsys, options):
    graph = toy(20, 40, 4, 2)
    graph.y = torch.full((20,), -1)
    packed = pack_graph(graph, tmp_path / "bare")
    assert call("run", str(packed.path), *options) == 2
    error = capsys.readouterr().err
    assert "was packed without labels; pack it again with a label column" in " ".join(error.split())
    assert "--label" not in error
