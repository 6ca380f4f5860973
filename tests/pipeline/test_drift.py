"""Drift: silence where nothing has changed, a sentence with numbers where something has."""

import dataclasses
import json
import math

import torch
from torch_geometric.data import Data

from evengraph.pipeline.model_info import TrainingStatistics


def graph_of(nodes, *, shift=0.0, edges=3, seed=0):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, 2, generator=draw) + torch.tensor([shift, 0.0])
    ends = torch.randint(nodes, (2, edges * nodes), generator=draw)
    y = torch.where(torch.arange(nodes) % 2 == 0, 0, -1)
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=y)


def predictions(first, nodes):
    rows = torch.tensor([[0.9, 0.1]] * int(first * nodes))
    return torch.cat([rows, torch.tensor([[0.1, 0.9]] * (nodes - len(rows)))])


TRAIN = graph_of(1000)
STATISTICS = TrainingStatistics.of(
    TRAIN, torch.zeros(1000, dtype=torch.bool), predictions(0.45, 1000)
)


def lines(graph, first):
    rows = predictions(first, graph.num_nodes)
    return STATISTICS.compare(
        graph, slice(None), rows, features=["views", "age"], classes=["False", "True"]
    )


def test_nothing_has_changed():
    assert lines(graph_of(500, seed=1), 0.45) == []
    assert lines(graph_of(5, seed=1, shift=0.5), 0.6) == []  # too few to tell


def test_other_classes_are_predicted():
    (line,) = lines(graph_of(500, seed=1), 0.79)
    assert line.startswith("79% are predicted False; in the training graph 45% were")
    assert "100% of the labels" in line


def test_features_and_degrees_have_moved():
    (line,) = lines(graph_of(500, seed=1, shift=-1.5, edges=20), 0.45)
    assert "views is 1.5 standard deviations lower" in line
    assert "age" not in line
    assert "neighbours, " in line


def test_a_change_that_does_not_show_is_not_told():
    regular = dataclasses.replace(STATISTICS, log_degree=(math.log1p(4.0), 1e-6))
    rows = torch.arange(400)
    ring = torch.cat([torch.stack([rows, (rows + step) % 400]) for step in (1, 2)], dim=1)
    graph = graph_of(400, seed=1)
    graph.edge_index = torch.cat([ring, ring.flip(0)], dim=1)[:, 1:]  # one edge end is missing
    classes = {"features": ["views", "age"], "classes": ["False", "True"]}
    assert regular.compare(graph, slice(None), predictions(0.45, 400), **classes) == []


def test_statistics_survive_json():
    stored = json.loads(json.dumps(STATISTICS.as_dict()))
    assert TrainingStatistics.from_dict(stored) == STATISTICS
