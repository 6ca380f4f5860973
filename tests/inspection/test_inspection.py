import json

import numpy as np
import pytest
import torch
from hypothesis import given
from test_measures import labelled_graphs
from torch_geometric.data import Data

import evengraph as eg
from evengraph.splits import Natural


def graph_of(labels, pairs=((0, 1),), **more):
    edge_index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()
    return Data(edge_index=edge_index, y=torch.tensor(labels), num_nodes=len(labels), **more)


def test_names_hashes_and_weights():
    graph = graph_of([0, 1], x=torch.zeros(2, 3))
    assert eg.inspect_graph(graph, hashed=[True, True, False]).features.constant == 1
    with pytest.raises(ValueError, match=r"hashed must be of shape \(3,\), got \(1,\)"):
        eg.inspect_graph(graph, hashed=[True])
    graph = graph_of([0, 1, -1], class_names=["x", "y"])
    assert eg.inspect_graph(graph).labels.names == ("x", "y")
    assert eg.inspect_graph(graph, class_names=["p", "q", "r"]).labels.labelled == (1, 1, 0)
    graph = graph_of([0, 0, 1, 1], [(0, 1), (2, 3)])
    seen = torch.tensor([True, True, True, False])
    assert eg.inspect_graph(graph).homophily.edges == 2
    assert eg.inspect_graph(graph, labelled=seen).homophily.edges == 1
    graph = eg.toy(60, 150, 10, 3)
    plain = eg.inspect_graph(graph).edges
    assert (plain.weighted, plain.relations) == (False, ())
    graph.edge_weight = torch.rand(graph.num_edges)
    graph.relation_names = ("card", "cash")
    edges = eg.inspect_graph(graph).edges
    assert (edges.weighted, edges.relations) == (True, ("card", "cash"))


@given(labelled_graphs())
def test_any_graph_becomes_plain_json(found):
    graph, seen = found
    inspection = eg.inspect_graph(graph, labelled=seen)
    plain = inspection.as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["num_nodes"] == graph.num_nodes
    assert plain["findings"]
    assert plain["recommendation"]


def test_a_toy_graph_with_few_labels():
    graph = eg.toy()
    task = Natural()(graph, seed=5)
    before = graph.y.clone(), graph.x.clone(), graph.edge_index.clone()
    found = eg.inspect_graph(graph, labelled=task.train, hops=3)
    for old, new in zip(before, (graph.y, graph.x, graph.edge_index), strict=True):
        assert torch.equal(old, new)
    assert found.name == "toy"
    assert found.labels.labelled == tuple(task.class_counts.tolist())
    assert found.labels.names[4] == "class 4"
    assert found.reach.hops == len(found.reach.any_class) == 3
    assert found.homophily.edge > 0.6
    assert found.edges.pairs == 4000
    assert found.leaks == ()


def test_a_leak_under_the_name_of_the_column():
    pd = pytest.importorskip("pandas")
    graph = eg.toy(400, 1600, 20, 2)
    graph.x[:, 7] = graph.y
    assert [leak.column for leak in eg.inspect_graph(graph).leaks] == ["feature 7"]
    graph.feature_names = [f"f{place}" for place in range(20)]
    assert [leak.column for leak in eg.inspect_graph(graph).leaks] == ["f7"]
    table = pd.DataFrame({"topic": graph.y.numpy(), "closed": graph.y.numpy() == 1})
    found = eg.inspect_graph(graph, table=table, label="topic")
    assert [leak.column for leak in found.leaks] == ["closed"]
    assert found.recommendation[0] == "First remove 'closed' from the features."
    harmless = table.assign(closed=np.arange(400) % 2)
    found = eg.inspect_graph(graph, table=harmless, label="topic")
    assert [leak.column for leak in found.leaks] == ["f7"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"graph": graph_of([-1, -1])}, "No node has a label"),
        ({"graph": graph_of([0, -2])}, "labels must be -1 .* got -2"),
        ({"graph": Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=2)}, "graph.y"),
        ({"graph": Data(y=torch.tensor([0]), num_nodes=1)}, "graph.edge_index must hold"),
        ({"graph": graph_of([0, 1], [(0, 5)])}, "ids from 0 to 1, got 5"),
        ({"graph": graph_of([0, 1], x=torch.zeros(3, 2))}, "graph.x must be a dense .* 2 rows"),
        ({"labelled": torch.tensor([1, 0])}, "labelled must be a bool mask"),
        ({"labelled": torch.zeros(2, dtype=torch.bool)}, "No node has a label"),
        ({"class_names": ["one"]}, "class_names must hold 2 names, got 1"),
        ({"hops": 0}, "hops must be at least 1"),
        ({"table": object()}, "label must name"),
    ],
)
def test_mistakes(change, words):
    arguments = {"graph": graph_of([0, 1])} | change
    with pytest.raises(ValueError, match=words):
        eg.inspect_graph(arguments.pop("graph"), **arguments)
