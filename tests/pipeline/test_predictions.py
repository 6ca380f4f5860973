"""Predictions: intervals, corrected shares and alignment."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

import evengraph as eg
from evengraph.methods import Logistic
from evengraph.methods.auto import Race
from evengraph.metrics.decisions import Costs, Rule
from evengraph.pipeline.model_info import NewNodes
from evengraph.pipeline.predictions import ENOUGH, ModelInput, _doubt, align, corrected
from evengraph.pipeline.table_model import TableModel
from small_graphs import small_task

GRAPH = small_task(num_classes=2).graph


@pytest.fixture(scope="module")
def committee():
    return eg.TableModel(eg.Unison(max_epochs=20, members=2)).fit(GRAPH, seed=1)


@pytest.fixture(scope="module")
def single():
    return eg.TableModel(eg.GCN(max_epochs=20)).fit(GRAPH, seed=1)


@pytest.mark.parametrize("calibrated", [False, True])
def test_most_votes_lie_in_the_interval(committee, single, calibrated):
    frame = committee.predict(GRAPH, calibrated=calibrated)
    assert (frame["low"] <= frame["probability"]).all()
    assert (frame["probability"] <= frame["high"]).all()
    assert (frame["low"] < frame["high"]).any()
    assert "low" not in single.predict(GRAPH)


def test_shares_that_are_given_move_probabilities(single):
    names = single.classes_
    rare = single.predict(GRAPH, prior={names[0]: 1, names[1]: 99})
    common = single.predict(GRAPH, prior={names[0]: 99, names[1]: 1})
    change = common[f"p_{names[0]}"] - rare[f"p_{names[0]}"]
    assert (change >= 0).all()
    assert (change > 0).mean() > 0.5
    assert (rare["flagged"] == common["flagged"]).all()
    same = dict(zip(names, single.info.calibrator.shares, strict=True))
    calibrated = single.info.calibrator(single.method_.predict_proba(GRAPH)).numpy()
    found = single.predict(GRAPH, prior=same)[[f"p_{name}" for name in names]].to_numpy()
    np.testing.assert_allclose(found, calibrated, atol=1e-6)


def test_shares_are_estimated(single):
    keep = GRAPH.y == 0
    nodes = keep.nonzero().squeeze(1)
    edges = torch.stack([torch.arange(len(nodes)), torch.arange(len(nodes)).roll(1)])
    alone = Data(x=GRAPH.x[keep], edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    raw = single.method_.predict_proba(alone)
    found = corrected(single.info, "estimate", raw, single.classes_)[1]
    assert sum(found.values()) == pytest.approx(1)
    assert found["0"] > single.info.calibrator.shares[0]
    assert single.predictions(alone).shares is None


def test_new_nodes_that_differ_are_told(single):
    assert single.predictions(GRAPH).drift == []
    moved = Data(x=GRAPH.x + 5, edge_index=GRAPH.edge_index)
    drift = single.predictions(moved).drift
    assert any("standard deviations higher" in line for line in drift)
    doubtful = single.predictions(moved, prior="estimate")
    assert (doubtful.drift, doubtful.shares) == (drift, None)
    assert doubtful.frame.equals(single.predict(moved))
    with pytest.warns(UserWarning, match="Not corrected for class shares: the estimate .0 "):
        single.predict(moved, prior="estimate")
    trusted = single.predictions(GRAPH, prior="estimate")
    assert (trusted.drift, trusted.doubt) == ([], "")


def test_an_estimate_that_leaves_no_node_of_a_class_is_doubtful(single, monkeypatch):
    monkeypatch.setattr(
        "evengraph.pipeline.predictions.estimate_shares", lambda *_: torch.tensor([0.0, 1.0])
    )
    found = single.predictions(GRAPH, prior="estimate", calibrated=True)
    assert "(0 0.0%, 1 100.0%) is doubtful, because it leaves no 0." in found.doubt
    assert found.frame.equals(single.predict(GRAPH, calibrated=True))
    given = single.predictions(GRAPH, prior={"0": 0, "1": 1})  # as asked
    assert (given.doubt, given.shares) == ("", {"0": 0.0, "1": 1.0})


def test_a_class_that_was_as_rare_in_training_has_not_vanished(single):
    calibrator = replace(single.info.calibrator, shares=(0.0005, 0.9995))
    info = replace(single.info, calibrator=calibrator)
    assert _doubt(info, {"0": 0.0004, "1": 0.9996}, []) == ""
    assert "it leaves no 0." in _doubt(info, {"0": 0.000001, "1": 0.999999}, [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": "guess"}, "prior must be 'estimate' or shares of classes, got 'guess'"),
        ({"prior": {"0": 1}}, "prior must give a finite share of at least 0 to each of 0, 1"),
        ({"prior": {"0": math.nan, "1": 1}}, "prior must give a finite share"),
        ({"prior": {"0": math.inf, "1": 1}}, "prior must give a finite share"),
    ],
)
def test_what_is_refused(single, options, message):
    with pytest.raises(ValueError, match=message):
        single.predict(GRAPH, **options)


def test_models_of_former_versions_say_what_they_lack(single):
    old = eg.TableModel(single.method_)
    old.method_ = single.method_
    old.info = replace(single.info, calibrator=None, statistics=None, sets=())
    assert old.predictions(GRAPH).drift == []
    with pytest.raises(ValueError, match="holds no class shares to correct"):
        old.predict(GRAPH, prior="estimate")
    with pytest.raises(ValueError, match="holds no prediction sets"):
        old.predict(GRAPH, coverage=0.9)


@pytest.mark.parametrize(
    "options", [{}, {"calibrated": True}, {"prior": {"0": 0.9, "1": 0.1}}, {"prior": "estimate"}]
)
def test_flags_are_those_from_the_threshold_on_the_probabilities_that_are_given(single, options):
    found = single.predictions(GRAPH, **options)
    positive, value = found.threshold
    above = found.frame[f"p_{single.classes_[positive]}"] - value
    clear = above.abs() > 1e-6
    assert (found.frame["flagged"] == (above > 0))[clear].all()
    assert 0 < found.frame["flagged"].mean() < 1


def tables(nodes, *, factor=1.0, seed=0, label=True):
    """Sellers whose class is decided by views, beyond a level that differs by a factor."""
    draw = np.random.default_rng(seed)
    views = draw.lognormal(5, 1, nodes)
    frame = pd.DataFrame(
        {
            "id": np.arange(nodes),
            "views": views * factor,
            "new": draw.random(nodes) < 0.5,
            "kind": np.where(views > np.exp(5.5), "big", "small"),
        }
    )
    ends = draw.integers(0, nodes, (2 * nodes, 2))
    edges = pd.DataFrame(ends[ends[:, 0] != ends[:, 1]], columns=["source", "target"])
    return (frame if label else frame.drop(columns="kind")), edges


MODEL = TableModel(Logistic(), refit=False).fit(*tables(600), label="kind")


def moved(nodes=600, **options):
    """Another graph, encoded as the model does, and what alignment makes of it."""
    frame, edges = tables(nodes, seed=1, **options)
    graph = MODEL.open(frame.drop(columns="kind"), edges).tables.graph
    return graph, *align(graph, MODEL.method_, MODEL.info)


def test_a_column_that_has_moved_as_a_whole_is_moved_back():
    graph, aligned, told = moved(factor=5.0)
    numbers = torch.from_numpy(MODEL.info.encoder.numbers)
    assert [n for n, one in zip(MODEL.info.encoder.names, numbers, strict=True) if one] == ["views"]
    before = MODEL.info.statistics.quartiles[1]
    assert float(aligned.x[:, numbers].quantile(0.5)) == pytest.approx(before, abs=0.01)
    assert torch.equal(aligned.x[:, ~numbers], graph.x[:, ~numbers])
    assert told.startswith("Moved as a whole since training, and moved back: views by +1.")


def test_a_tail_that_has_grown_stays():
    frame, edges = tables(600, seed=1)
    frame.loc[frame["views"] > frame["views"].median(), "views"] *= 20  # many more big ones
    graph = MODEL.open(frame.drop(columns="kind"), edges).tables.graph
    assert graph.x.mean(0).max() > 0.4
    assert align(graph, MODEL.method_, MODEL.info) == (graph, "")


@pytest.mark.parametrize("options", [{}, {"nodes": ENOUGH - 1, "factor": 5.0}])
def test_otherwise_the_graph_stays_as_it_is(options):
    graph, aligned, told = moved(**options)
    assert (aligned is graph, told) == (True, "")


def test_a_model_without_quartiles_leaves_the_graph_as_it_is():
    info = replace(MODEL.info, statistics=replace(MODEL.info.statistics, quartiles=()))
    graph, *_ = moved(factor=5.0)
    assert align(graph, MODEL.method_, info) == (graph, "")


def test_a_graph_that_holds_the_training_nodes_stays_as_it_is():
    old, edges = tables(600)
    new, _ = tables(12_000, seed=1, factor=20.0)
    frame = pd.concat([old, new.assign(id=new["id"] + 600)])
    graph = MODEL.open(frame.drop(columns="kind"), edges).tables.graph
    assert align(graph, MODEL.method_, MODEL.info)[1] == ""
    graph.x = graph.x.flip(0)  # the same values, but other nodes
    assert align(graph, MODEL.method_, MODEL.info)[1] != ""


def test_a_model_predicts_another_graph_as_its_own():
    frame, edges = tables(500, factor=8.0, seed=2)
    unknown, truth = frame.drop(columns="kind"), frame["kind"].to_numpy()
    found = MODEL.predictions(unknown, edges)
    as_they_are = MODEL.predictions(unknown, edges, align=False)
    assert (found.frame["class"].to_numpy() == truth).mean() > 0.95
    assert (as_they_are.frame["class"].to_numpy() == truth).mean() < 0.7
    assert (found.aligned != "", as_they_are.aligned) == (True, "")
    assert not any("views is" in line for line in found.drift)  # it is where it was
    assert any("views is" in line for line in as_they_are.drift)
    given = MODEL.predictions(unknown, edges, prior={"big": 0.5, "small": 0.5})
    assert (given.aligned, given.doubt) == ("", "")
    estimated = MODEL.predictions(unknown, edges, prior="estimate")
    assert estimated.frame.equals(found.frame)  # a doubtful estimate is not applied
    assert "nodes differ from training" in estimated.doubt
    assert (estimated.shares, given.shares is None) == (None, False)
    more = unknown.assign(id=unknown["id"] + 600)
    assert MODEL.predictions(more, edges[:0], known=tables(600)).aligned == ""


def test_tables_alone_are_aligned_unless_they_attach_to_known_ones(monkeypatch):
    graph, other = eg.toy(), eg.toy(seed=1)
    monkeypatch.setattr("evengraph.pipeline.predictions.align", lambda *_: (other, "Moved."))
    columns = SimpleNamespace(id="account")
    tables = SimpleNamespace(graph=graph, ids=np.array(["a", "b", "c"]), columns=columns)
    for attached in (False, True):
        new = NewNodes(tables=tables, rows=np.array([0, 2]), attached=attached)
        given = ModelInput.of(new, None, None, True)
        assert (given.graph is graph, given.aligned == "") == (attached, attached)
        assert given.ids["account"].tolist() == ["a", "c"]


def rare_graph(seed):
    """400 nodes, a tenth of them of class 1, which are linked and a little different."""
    draw = np.random.default_rng(seed)
    y = (np.arange(400) < 40).astype(int)
    x = draw.normal(size=(400, 3)) + 0.8 * y[:, None] * [1, 1, 0]
    ends = draw.integers(0, 400, (2, 800)), draw.integers(0, 40, (2, 60))
    edges = torch.from_numpy(np.hstack(ends))
    y = torch.from_numpy(y)
    return Data(x=torch.from_numpy(x).float(), edge_index=torch.cat([edges, edges.flip(0)], 1), y=y)


def test_where_known_labels_do_not_vote_probabilities_hold_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr(Race, "weights", lambda self: {0: 0.7, 1: 0.3})
    method = eg.Auto(candidates="labelpropagation,logistic", max_epochs=50)
    model = eg.TableModel(method, costs=Costs(9)).fit(rare_graph(1), seed=1)
    model.save(tmp_path / "model")
    model, other = eg.TableModel.load(tmp_path / "model"), rare_graph(2)
    found, known = model.predictions(other), model.predictions(rare_graph(1))
    assert found.info.calibrator != known.info.calibrator == model.info.calibrator
    assert "labelled nodes of training" in found.drift[0]
    assert not any("labelled nodes of training" in line for line in known.drift)
    mean = float(found.probabilities[:, 1].mean())
    assert 0.07 < mean < 0.14  # the share is 0.1
    raw = model.method_.predict_proba(other)
    assert abs(mean - 0.1) < abs(float(model.info.calibrator(raw)[:, 1].mean()) - 0.1)
    assert found.threshold.value == known.threshold.value == 0.1  # by cost
    model.use_rule(Rule.of(recall=0.5))
    assert model.predictions(other).threshold != model.predictions(rare_graph(1)).threshold
    assert model.predict_proba(other) == pytest.approx(found.probabilities.numpy(), abs=1e-6)
