import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from evengraph.datasets import toy
from evengraph.disk import PackedGraph, pack_graph, unpack_graph


def test_a_graph_comes_back_as_it_was(tmp_path):
    graph = toy(200, 800, 16, 3)
    graph.train_mask = torch.arange(200) < 50
    graph.class_names = ["a", "b", "c"]
    read = unpack_graph(pack_graph(graph, tmp_path / "graph"))
    for name in ("x", "edge_index", "y", "train_mask"):
        assert torch.equal(read[name], graph[name]), name
        assert read[name].dtype == graph[name].dtype, name
    assert read.class_names == ["a", "b", "c"]
    assert "val_mask" not in read


def test_edges_become_undirected_without_loops_and_repeats(tmp_path):
    edges = torch.tensor([[0, 0, 1, 2, 2], [1, 1, 0, 2, 1]])
    graph = Data(x=torch.ones(4, 1), edge_index=edges)
    packed = pack_graph(graph, tmp_path / "graph")
    assert unpack_graph(packed).edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert packed.y.tolist() == [-1] * 4
    assert packed.class_names == ()


def test_weights_are_packed(tmp_path):
    edges = torch.tensor([[0, 1, 1], [1, 0, 2]])
    weight = torch.tensor([0.5, 2.0, 3.0])
    graph = Data(x=torch.ones(3, 1), edge_index=edges, edge_weight=weight)
    read = unpack_graph(pack_graph(graph, tmp_path / "graph"))
    assert read.edge_weight.tolist() == [2.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize("ids", [["a", "ü", "10"], [5, 3, 2**40]])
def test_ids_are_numbers_or_text(ids, tmp_path):
    graph = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]]))
    pack_graph(graph, tmp_path / "graph", ids=np.array(ids, dtype=object if "a" in ids else None))
    assert PackedGraph.open(tmp_path / "graph").ids[:].tolist() == ids


def test_half_precision_halves_the_features(tmp_path):
    graph = toy(20, 40, 8, 2)
    packed = pack_graph(graph, tmp_path / "graph", dtype=np.float16)
    assert packed.x.dtype == np.float16
    assert torch.equal(unpack_graph(packed).x, graph.x)
