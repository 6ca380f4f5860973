"""run, predict and inspect of packed graphs."""

import io
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from rich.console import Console

from command_line import call, read
from evengraph.datasets import toy
from evengraph.disk import models as on_disk
from evengraph.disk import pack_graph
from evengraph.disk.inspection import inspect_packed, packed_view
from evengraph.disk.models import open_on_disk, write_predictions
from evengraph.inspection import inspect_graph
from evengraph.methods import MLP
from evengraph.pipeline.executor import Job, LoadedGraph, score
from evengraph.pipeline.run import RunPlan, Selection
from evengraph.pipeline.table_model import TableModel
from evengraph.splits import Natural
from snapshots import check_snapshot

FAST = ["--method", "unison", "--set", "max_epochs=5", "--set", "members=1", "--splits", "5-5"]


@pytest.fixture
def packed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = toy(200, 600, 8, 2)
    graph.class_names = ["no", "yes"]
    return pack_graph(graph, tmp_path / "graph", ids=np.arange(200) + 1000)


def test_run_and_predict_from_disk(packed, capsys):
    arguments = ["--memory", "300MB", "--out", "out", "--save", "model"]
    assert call("run", "graph", *FAST, *arguments) == 0
    shown = capsys.readouterr()
    assert "natural split (train=0.6, val=0.2)" in shown.out
    assert "structural view: done in" in shown.err
    result = json.loads((packed.path.parent / "out" / "result.json").read_text())
    assert result["dataset"]["num_edges"] == packed.num_edges // 2
    assert call("predict", "model", "graph", "--memory", "300MB", "--out", "p.csv") == 0
    shown = capsys.readouterr()
    rows = read(packed.path.parent / "p.csv")
    assert [row["id"] for row in rows[:2]] == ["1000", "1001"]
    counts = {name: sum(row["class"] == name for row in rows) for name in ("no", "yes")}
    for name, count in counts.items():
        assert f"{count:>10,}  {name}" in shown.out
    assert call("predict", "model", "graph", "--memory", "300MB", "--out", "p.parquet") == 0
    frame = pandas.read_parquet("p.parquet")
    np.testing.assert_allclose([float(row["p_yes"]) for row in rows], frame["p_yes"], atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--memory", "300MB", "--method", "gcn"], "GCN needs the whole graph in memory"),
        (["--memory", "lots"], "memory must be a size such as 4GB"),
        (["--memory", "1KB"], "memory must be at least 300MB, got 1KB"),
        (["--memory", "300MB", "--refit"], "--refit needs the whole graph in memory"),
        (["--memory", "300MB", "--split", "longtail"], "--split longtail needs the whole"),
        (["--memory", "300MB", "--label", "kind"], "has chosen its columns; leave out --label."),
    ],
)
def test_what_needs_memory_is_refused(packed, capsys, arguments, words):
    assert call("run", "graph", *arguments) == 2
    assert words in capsys.readouterr().err


def test_a_changed_file_is_an_error_whatever_its_date(packed, capsys):
    path = packed.path / "x.npy"
    values = np.load(path)
    np.save(path, values + 1)
    os.utime(path, (0, 0))
    assert call("run", "graph", *FAST, "--memory", "300MB") == 2
    assert "x.npy was changed after packing: pack it again" in capsys.readouterr().err


def test_memory_is_for_packed_graphs_that_exist(packed, capsys):
    (packed.path.parent / "plain").mkdir()
    for arguments, words in (
        (["run", "nowhere"], "Error: nowhere does not exist."),
        (["run", "plain", "--label", "kind"], "evengraph pack plain --out graph makes one"),
        (["run", "cora"], "memory is for packed graphs: evengraph pack cora --out graph makes one"),
        (["predict", "model", "graph", "--top", "3"], "--top needs the whole graph in memory."),
        (["predict", "model", "graph", "--out", "p.txt"], "ends in .csv, .parquet"),
    ):
        assert call(*arguments, "--memory", "300MB") == 2
        assert words in capsys.readouterr().err


def test_what_cannot_learn_from_disk_does_not_predict_from_disk(packed, capsys):
    quick = ["--set", "max_epochs=1", "--splits", "1-1", "--save", "model"]
    assert call("run", "graph", "--method", "gcn", *quick) == 0
    assert call("predict", "model", "graph", "--memory", "300MB", "--out", "p.csv") == 2
    assert "GCN needs the whole graph in memory; for a graph on disk" in capsys.readouterr().err


def test_a_graph_that_does_not_fit_stays_on_disk(packed, capsys, monkeypatch):
    limits = "evengraph.disk.models.available_memory"
    monkeypatch.setattr(limits, lambda: 40_000)
    assert call("run", "graph", *FAST, "--set", "views=structural", "--save", "model") == 0
    assert "structural view: done in" in capsys.readouterr().err
    assert call("predict", "model", "graph", "--top", "3") == 2
    assert "--top needs the whole graph in memory." in capsys.readouterr().err
    monkeypatch.setattr(limits, lambda: 10**9)
    assert call("predict", "model", "graph", "--out", "whole.csv") == 0  # features as packed
    assert call("predict", "model", "graph", "--memory", "300MB", "--out", "blocks.csv") == 0
    whole, blocks = (read(packed.path.parent / name) for name in ("whole.csv", "blocks.csv"))
    assert [row["class"] for row in whole] == [row["class"] for row in blocks]
    other = pack_graph(toy(50, 80, 8, 2), "other", encoder=None)
    assert call("predict", "model", str(other.path), "--memory", "300MB") == 0
    wider = pack_graph(toy(50, 80, 9, 2), "wider")
    assert call("predict", "model", str(wider.path), "--memory", "300MB") == 2
    assert "must hold the features that the model was trained on" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--memory", "300MB"]])
def test_a_graph_packed_without_labels_says_so(tmp_path, capsys, options):
    graph = toy(20, 40, 4, 2)
    graph.y = torch.full((20,), -1)
    packed = pack_graph(graph, tmp_path / "bare")
    assert call("run", str(packed.path), *options) == 2
    error = capsys.readouterr().err
    assert "was packed without labels; pack it again with a label column" in " ".join(error.split())
    assert "--label" not in error


@pytest.fixture
def source(tmp_path):
    pack_graph(toy(150, 300, 5, 2), tmp_path / "graph")
    return open_on_disk(tmp_path / "graph", "300MB")


@pytest.fixture
def model(source):
    task = Natural(train=0.4, val=0.3)(source.graph, seed=0)
    method = source.disk.fit(MLP(max_epochs=3), task, progress=False)
    plan = RunPlan(dataset="", graph=source.graph, protocol=Natural(), methods={}, seeds=[0])
    selection = Selection(replace(plan, disk=source.disk))
    about = {"label": "", "graph": LoadedGraph(source.graph), "protocol": Natural(), "seed": 0}
    job = Job(**about, method=method, disk=source.disk, calibrate=True)
    selection.add(score(job, task, method))
    return TableModel.from_fits(selection, source)


@pytest.mark.parametrize("calibrated", [False, True])
def test_blocks_make_the_table_of_memory(tmp_path, monkeypatch, source, model, calibrated):
    monkeypatch.setattr(on_disk, "PREDICTED", 40)
    path = tmp_path / "p.csv"
    counts, flagged = write_predictions(model, source.disk, path, calibrated=calibrated)
    found = pandas.read_csv(tmp_path / "p.csv")
    expected = model.predict(toy(150, 300, 5, 2), calibrated=calibrated)
    assert list(found) == list(expected)
    np.testing.assert_allclose(found["p_1"], expected["p_1"], atol=1e-5)
    assert (found["class"].astype(str) == expected["class"]).all()
    assert (found["flagged"] == expected["flagged"]).all()
    assert flagged == expected["flagged"].sum()
    assert counts["1"] == (expected["class"] == "1").sum()
    assert 0 < model.evaluate()["balanced_accuracy"] <= 100
    assert model.info.statistics is None


@pytest.mark.parametrize("name", ["p.csv", "folder"])
def test_a_class_called_flagged_is_counted_apart(tmp_path, source, model, name):
    model.method_.class_names_ = ("flagged", "clean")
    counts, flagged = write_predictions(model, source.disk, tmp_path / name)
    read = pandas.read_csv if name == "p.csv" else pandas.read_parquet
    found = read(tmp_path / name)
    assert counts == {kind: (found["class"] == kind).sum() for kind in model.classes_}
    assert flagged == found["flagged"].sum()


def test_a_complete_folder_is_kept_if_it_was_made_from_the_same(tmp_path, source, model):
    path, made = tmp_path / "folder", {"made_from": "a model"}
    counts = write_predictions(model, source.disk, path, **made)
    file = path / "part-00000.parquet"
    before = file.stat().st_mtime_ns
    assert write_predictions(model, source.disk, path, **made) == counts
    assert file.stat().st_mtime_ns == before
    for other in ({"made_from": "another"}, {**made, "only_unlabelled": True}, {}):
        with pytest.raises(FileExistsError, match=r"folder exists; remove it or name another"):
            write_predictions(model, source.disk, path, **other)
    file.unlink()
    with pytest.raises(FileExistsError, match=r"folder exists; remove it or name another"):
        write_predictions(model, source.disk, path, **made)


def test_a_failure_leaves_no_file(tmp_path, monkeypatch, source, model):
    def fail(*_):
        raise OSError("full")

    monkeypatch.setattr(on_disk, "_table", fail)
    before = set(tmp_path.iterdir())
    with pytest.raises(OSError, match="full"):
        write_predictions(model, source.disk, tmp_path / "p.csv")
    assert set(tmp_path.iterdir()) == before
    with pytest.raises(ValueError, match=r"ends in \.csv, \.parquet"):
        write_predictions(model, source.disk, tmp_path / "p.xlsx")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_nodes_with_a_label_can_be_left_out(tmp_path, monkeypatch, model, suffix):
    monkeypatch.setattr(on_disk, "PREDICTED", 40)
    graph = toy(150, 300, 5, 2)
    graph.y[60:130] = -1
    pack_graph(graph, tmp_path / "some")
    disk = open_on_disk(tmp_path / "some", "300MB").disk
    path = tmp_path / f"p.{suffix}"
    write_predictions(model, disk, tmp_path / "all.parquet")
    counts, _ = write_predictions(model, disk, path, only_unlabelled=True)
    expected = pandas.read_parquet(tmp_path / "all.parquet")[60:130]
    found = pandas.read_csv(path) if suffix == "csv" else pandas.read_parquet(path)
    assert list(found["id"]) == list(range(60, 130))
    np.testing.assert_allclose(found["p_1"], expected["p_1"], atol=1e-6)
    assert sum(counts[name] for name in ("0", "1")) == 70


@pytest.fixture
def graph():
    graph = toy(600, 4000, 8, 3)
    graph.y[::3] = -1
    return graph


@pytest.mark.parametrize(("block", "rows"), [(4096, 2**22), (4, 7)])
def test_measures_agree_with_those_in_memory(graph, tmp_path, monkeypatch, block, rows):
    """All rows, or a sample for the share of alike neighbours."""
    monkeypatch.setattr("evengraph.disk.inspection.BLOCK_ROWS", block)
    monkeypatch.setattr("evengraph.disk.inspection.PASS_ROWS", rows)
    found, exact = inspect_packed(pack_graph(graph, tmp_path / "graph")), inspect_graph(graph)
    sizes = {"num_nodes": 600, "num_edges": 2000, "num_features": 8}
    degrees = {"largest_degree": exact.degrees.largest, "isolated": exact.degrees.isolated}
    assert found | sizes | degrees | {"class_counts": exact.labels.labelled} == found
    whole = block > 600
    assert found["homophily"] == pytest.approx(exact.homophily.edge, abs=1e-9 if whole else 0.1)
    assert (found["sampled_edges"] == 2 * exact.homophily.edges) == whole
    bare = toy(20, 0, 4, 2)
    bare.y = torch.full((20,), -1)
    found = inspect_packed(pack_graph(bare, tmp_path / "bare"))
    assert found | {"homophily": None, "isolated": 20, "mean_degree": 0, "packed": True} == found


def test_size_and_classes_are_shown(graph, tmp_path):
    found = inspect_packed(pack_graph(graph, tmp_path / "graph", name="big [bold]"))
    names = {"class_names": ["rare", "common"], "class_counts": [6, 300], "homophily": 0.81}
    machine = {"disk": 4 * 2**30, "free_memory": 8 * 2**30}
    fixed = {"largest_degree": 50, "sampled_edges": 1234, "mean_degree": 6.7}
    file = io.StringIO()
    Console(file=file, width=80).print(packed_view(found | names | machine | fixed))
    text = "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())
    check_snapshot(Path(__file__).with_name("packed-view.txt"), text)
