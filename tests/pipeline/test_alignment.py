"""Alignment: numbers that have moved get the mean and spread of training; nothing else does."""

import numpy as np
import pandas as pd
import pytest
import torch

from evengraph.methods import Logistic
from evengraph.pipeline.alignment import ENOUGH, align
from evengraph.pipeline.drift import TrainingStatistics
from evengraph.pipeline.table_model import TableModel
from evengraph.tables import open_graph


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


TABLES = open_graph(tables(600)[0], edges=tables(600)[1], label="kind")
ROWS = torch.full((600, 2), 0.5)
STATISTICS = TrainingStatistics.of(TABLES.graph, torch.zeros(600, dtype=torch.bool), ROWS)


def encoded(nodes=600, **options):
    frame, _ = tables(nodes, seed=1, **options)
    graph = TABLES.graph.clone()
    graph.x = TABLES.encoder.transform(frame)
    graph.num_nodes = nodes
    return graph


def test_numbers_that_have_moved_get_the_mean_and_spread_of_training():
    graph = encoded(factor=5.0)
    aligned, told = align(graph, STATISTICS, TABLES.encoder)
    numbers = torch.from_numpy(TABLES.encoder.numbers)
    assert [name for name, one in zip(TABLES.encoder.names, numbers, strict=True) if one] == [
        "views"
    ]
    means, spread = torch.tensor(STATISTICS.means), torch.tensor(STATISTICS.deviations)
    torch.testing.assert_close(aligned.x.mean(0)[numbers], means[numbers], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(aligned.x.std(0, correction=0)[numbers], spread[numbers])
    assert torch.equal(aligned.x[:, ~numbers], graph.x[:, ~numbers])
    assert told.startswith("views is 1.")
    assert "higher than in training" in told


@pytest.mark.parametrize(
    ("graph", "statistics"),
    [
        (encoded(), STATISTICS),  # nothing has moved
        (encoded(ENOUGH - 1, factor=5.0), STATISTICS),
        (encoded(factor=5.0), None),  # a model of a former version
    ],
)
def test_otherwise_the_graph_stays_as_it_is(graph, statistics):
    assert align(graph, statistics, TABLES.encoder) == (graph, "")


def test_a_column_that_does_not_vary_is_moved_only():
    graph = encoded(factor=5.0)
    graph.x = graph.x[:1].expand(600, -1).clone()
    aligned, _ = align(graph, STATISTICS, TABLES.encoder)
    assert torch.isfinite(aligned.x).all()


def test_a_model_predicts_another_graph_as_its_own():
    model = TableModel(Logistic(), refit=False).fit(*tables(600), label="kind")
    frame, edges = tables(500, factor=8.0, seed=2)
    found = model.predictions(frame.drop(columns="kind"), edges)
    as_they_are = model.predict(frame.drop(columns="kind"), edges, align=False)
    truth = frame["kind"].to_numpy()
    assert (found.frame["class"].to_numpy() == truth).mean() > 0.95
    assert (as_they_are["class"].to_numpy() == truth).mean() < 0.7
    assert "brought to the mean" in found.aligned
    more = frame.drop(columns="kind").assign(id=frame["id"] + 600)
    attached = model.predictions(more, edges[:0], known=tables(600))
    assert attached.aligned == ""
