"""Alignment: columns that have moved as a whole are moved back; nothing else is."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from evengraph.methods import Logistic
from evengraph.pipeline.sources import ENOUGH, align
from evengraph.pipeline.table_model import TableModel


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
