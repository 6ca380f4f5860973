"""Predictions: intervals, corrected shares and abstention."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import evengraph as eg
from evengraph.pipeline.predictions import _doubt, corrected
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
    same = dict(zip(names, single.info.prior.shares, strict=True))
    calibrated = single.info.prior.calibrator(single.method_.predict_proba(GRAPH)).numpy()
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
    assert found["0"] > single.info.prior.shares[0]
    assert single.predictions(alone).shares is None


def test_the_least_certain_are_left_undecided(single):
    predictions = single.predictions(GRAPH, abstain=0.3)
    frame, level = predictions.frame, predictions.abstention
    assert level == single.info.risk.at_share(0.3)
    assert (frame["abstained"] == (frame["probability"] < level.confidence)).all()
    assert 0 < frame["abstained"].sum() < len(frame)
    strict = single.predictions(GRAPH, max_error=level.error).abstention
    assert strict.coverage >= level.coverage
    calibrated = single.predict(GRAPH, abstain=0.3, calibrated=True)
    assert (calibrated["abstained"] == frame["abstained"]).all()


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
    prior = single.info.prior._replace(shares=(0.0005, 0.9995))
    info = replace(single.info, prior=prior)
    assert _doubt(info, {"0": 0.0004, "1": 0.9996}, []) == ""
    assert "it leaves no 0." in _doubt(info, {"0": 0.000001, "1": 0.999999}, [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": "guess"}, "prior must be 'estimate' or shares of classes, got 'guess'"),
        ({"prior": {"0": 1}}, "prior must give a finite share of at least 0 to each of 0, 1"),
        ({"prior": {"0": math.nan, "1": 1}}, "prior must give a finite share"),
        ({"prior": {"0": math.inf, "1": 1}}, "prior must give a finite share"),
        ({"prior": "estimate", "abstain": 0.1}, "prior excludes abstain and max_error"),
        ({"max_error": 0.1, "abstain": 0.1}, "abstain and max_error exclude each other"),
    ],
)
def test_what_is_refused(single, options, message):
    with pytest.raises(ValueError, match=message):
        single.predict(GRAPH, **options)


def test_models_of_former_versions_say_what_they_lack(single):
    old = eg.TableModel(single.method_)
    old.method_ = single.method_
    old.info = replace(single.info, prior=None, risk=None, statistics=None)
    assert old.predictions(GRAPH).drift == []
    with pytest.raises(ValueError, match="holds no class shares to correct"):
        old.predict(GRAPH, prior="estimate")
    with pytest.raises(ValueError, match="holds no errors on validation"):
        old.predict(GRAPH, abstain=0.1)


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
