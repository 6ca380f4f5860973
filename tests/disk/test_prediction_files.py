"""Predictions in files, written in blocks."""

import numpy as np
import pandas
import pytest

from evengraph.datasets import toy
from evengraph.disk import models as on_disk
from evengraph.disk import pack_graph
from evengraph.disk.models import open_on_disk, write_predictions
from evengraph.methods import Logistic
from evengraph.pipeline.table_model import TableModel
from evengraph.splits import Natural


@pytest.fixture
def source(tmp_path):
    pack_graph(toy(150, 300, 5, 2), tmp_path / "graph")
    return open_on_disk(tmp_path / "graph", 2**25)


@pytest.fixture
def model(source):
    task = Natural(train=0.4, val=0.3)(source.graph, seed=0)
    method = source.disk.fit(Logistic(max_epochs=3, hops=1), task, progress=False)
    return TableModel.from_fitted(method, task, source)


@pytest.mark.parametrize("calibrated", [False, True])
def test_blocks_make_the_table_of_memory(tmp_path, monkeypatch, source, model, calibrated):
    monkeypatch.setattr(on_disk, "PREDICTED", 40)
    counts = write_predictions(model, source.disk, tmp_path / "p.csv", calibrated=calibrated)
    found = pandas.read_csv(tmp_path / "p.csv")
    expected = model.predict(toy(150, 300, 5, 2), calibrated=calibrated)
    assert list(found) == list(expected)
    np.testing.assert_allclose(found["p_1"], expected["p_1"], atol=1e-5)
    assert (found["class"].astype(str) == expected["class"]).all()
    assert (found["flagged"] == expected["flagged"]).all()
    assert counts["flagged"] == expected["flagged"].sum()
    assert counts["1"] == (expected["class"] == "1").sum()


def test_a_model_of_a_graph_on_disk_is_assessed(model):
    assert 0 < model.evaluate()["balanced_accuracy"] <= 100
    assert model.info.threshold is not None
    assert model.info.calibrator is not None
    assert model.info.statistics is None


def test_a_failure_leaves_no_file(tmp_path, monkeypatch, source, model):
    def fail(*_):
        raise OSError("full")

    monkeypatch.setattr(on_disk, "_table", fail)
    before = set(tmp_path.iterdir())
    with pytest.raises(OSError, match="full"):
        write_predictions(model, source.disk, tmp_path / "p.csv")
    assert set(tmp_path.iterdir()) == before
    with pytest.raises(ValueError, match=r"must end in \.csv, \.parquet, \.npy"):
        write_predictions(model, source.disk, tmp_path / "p.xlsx")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_nodes_with_a_label_can_be_left_out(tmp_path, monkeypatch, model, suffix):
    monkeypatch.setattr(on_disk, "PREDICTED", 40)
    graph = toy(150, 300, 5, 2)
    graph.y[60:130] = -1
    pack_graph(graph, tmp_path / "some")
    disk = open_on_disk(tmp_path / "some", 2**25).disk
    path = tmp_path / f"p.{suffix}"
    write_predictions(model, disk, tmp_path / "all.npy")
    counts = write_predictions(model, disk, path, only_unlabelled=True)
    expected = np.load(tmp_path / "all.npy")[60:130]
    if suffix == "npy":
        np.testing.assert_array_equal(np.load(path), expected)
        return
    found = pandas.read_csv(path) if suffix == "csv" else pandas.read_parquet(path)
    assert list(found["id"]) == list(range(60, 130))
    np.testing.assert_allclose(found["p_1"], expected[:, 1], atol=1e-6)
    assert sum(counts[name] for name in ("0", "1")) == 70
