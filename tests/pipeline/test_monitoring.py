"""monitor(): counts against counting by hand, drift, periods, labels that came back, advice."""

import json
from types import SimpleNamespace as Stub
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import torch

import evengraph as eg
from command_line import call
from evengraph.methods import Method
from evengraph.metrics.significance import share_interval
from evengraph.pipeline.predictions import _advice, monitor, read_labels

RNG = np.random.default_rng(0)


def tables(size, *, first=0, shift=0.0, rate=0.3):
    """Accounts whose amount tells fraud; ids go on from the first."""
    fraud = RNG.random(size) < rate
    nodes = pd.DataFrame({"id": [f"a{first + n}" for n in range(size)]})
    nodes["amount"] = np.where(fraud, 3.0, 0.0) + RNG.normal(size=size) + shift
    nodes["age"] = RNG.normal(size=size)
    nodes["seen"] = pd.date_range("2024-01-15", periods=size, freq="D").astype(str)
    kind = np.where(fraud, "fraud", "ok")
    ends = RNG.integers(size, size=(2, 2 * size))
    edges = pd.DataFrame({"source": nodes["id"].to_numpy()[ends[0]]})
    edges["target"] = nodes["id"].to_numpy()[ends[1]]
    return nodes, edges[edges.source != edges.target], kind


@pytest.fixture(scope="module")
def model():
    nodes, edges, kind = tables(200)
    frame = nodes.assign(kind=kind)
    columns = {
        "label": "kind",
        "id": "id",
        "source": "source",
        "target": "target",
        "drop": ["seen"],
    }
    return eg.TableModel("logistic").fit(frame, edges, seed=0, **columns)


def test_alarms_and_labels_are_counted(model):
    nodes, edges, kind = tables(120, first=1000)
    new = model.open(nodes, edges)
    flags = model.predict(new)["flagged"].to_numpy()
    back = dict(zip(nodes["id"][:60], kind[:60], strict=True)) | {"gone": "fraud", "a1000": "?"}
    found = monitor(model, new, times=nodes["seen"], labels=back)
    assert found["alarms"]["alarms"] == flags.sum()
    assert sum(one["nodes"] for one in found["periods"]) == 120
    assert [one["period"] for one in found["periods"]][:2] == ["2024-01", "2024-02"]
    january = nodes["seen"].str.startswith("2024-01").to_numpy()
    assert found["periods"][0]["alarms"] == flags[january].sum()
    assert found["labels"]["ignored"] == [
        "Ignored 1 label. Unknown class '?'. Allowed: fraud, ok.",
        "Ignored 1 label of ids that are not among the new nodes; first: 'gone'.",
    ]
    with pytest.raises(ValueError, match=r"No label that came back.* 2 labels.*mean fraud"):
        monitor(model, new, labels={"a1000": "FRAUD", "a1001": "FRAUD", "a1002": "frod"})
    known = (np.arange(120) < 60) & (np.arange(120) > 0)
    counts, right = found["labels"], kind == "fraud"
    assert counts["positives"] == (known & right).sum()
    assert counts["flagged"] == (known & flags).sum()
    assert counts["found"] == (known & flags & right).sum()
    assert counts["unflagged"] == (known & ~flags).sum()
    assert counts["unknown"] == 2
    assert counts["precision"] == share_interval(counts["found"], counts["flagged"])
    json.dumps(found, allow_nan=False)


def test_nodes_like_those_of_training_need_nothing_and_others_a_refit(model):
    nodes, edges, kind = tables(150, first=2000)
    assert monitor(model, model.open(nodes, edges))["advice"] == ["No reason to refit yet."]
    nodes, edges, kind = tables(150, first=3000, shift=2.0)
    moved = monitor(
        model, model.open(nodes, edges), labels=dict(zip(nodes["id"], kind, strict=True))
    )
    (advice,) = moved["advice"]
    assert advice.startswith("Refit with the labels that came back: ")
    assert moved["features"][0]["feature"] == "amount"
    assert moved["drift"]


@pytest.mark.parametrize(
    ("back", "learnt", "worth"), [(19, 4, False), (20, 4, True), (20, 50, False)]
)
def test_a_refit_is_worth_twenty_labels_and_half_of_those_learnt_from(back, learnt, worth):
    labelled = Stub(labels=torch.ones(learnt, dtype=torch.long))
    model = Stub(info=Stub(decision=Stub(positive=1)), method_=Stub(labelled_=labelled))
    labels = {"positives": back, "precision": None, "precision_before": None}
    content = {"labels": labels, "alarms": {"class": "fraud", "interval": None}, "drift": []}
    (advice,) = _advice(model, content)
    assert (f"{back} labels of fraud came back" in advice) is worth


def test_numbers_as_times_make_periods(model):
    nodes, edges, _ = tables(100, first=4000)
    found = monitor(model, model.open(nodes, edges), times=pd.Series(np.arange(100.0)))
    assert len(found["periods"]) == 12
    assert sum(one["nodes"] for one in found["periods"]) == 100


def test_the_command_writes_a_page(model, tmp_path, capsys, monkeypatch):
    model.save(tmp_path / "model")
    nodes, edges, kind = tables(80, first=5000)
    (tmp_path / "new").mkdir()
    nodes.to_csv(tmp_path / "new" / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "new" / "edges.csv", index=False)
    nodes.assign(kind=kind)[["id", "kind"]].to_csv(tmp_path / "back.csv", index=False)
    words = ["monitor", tmp_path / "model", tmp_path / "new", "--labels", tmp_path / "back.csv"]
    assert call(*words, "--time", "seen", "--out", tmp_path / "look") == 0
    shown = capsys.readouterr().out
    for text in ("Labels that came back: finds ", "alarms of fraud", "2024-02"):
        assert text in shown
    page = (tmp_path / "look" / "monitor.html").read_text()
    assert "Labels that came back" in page
    ElementTree.fromstring(page[page.index("<main") : page.index("</main>") + 7])
    stored = json.loads((tmp_path / "look" / "monitor.json").read_text())
    predict = Method.predict_proba
    loud = lambda *arguments: print("a plugin") or predict(*arguments)  # noqa: E731
    monkeypatch.setattr(Method, "predict_proba", loud)
    assert call(*words, "--time", "seen", "--json") == 0
    assert json.loads(capsys.readouterr().out)["labels"]["words"] == stored["labels"]["words"]
    for wrong in (["--time", "when"], ["--label", "class"]):
        assert call(*words, *wrong) == 2
        assert "has no column" in capsys.readouterr().err
    assert read_labels(tmp_path / "back.csv", "id", "kind")["a5000"] == kind[0]
