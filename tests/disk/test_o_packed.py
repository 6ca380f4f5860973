"""A packed graph is propagated as the same graph in memory."""

import torch

from evengraph.datasets import toy
from evengraph.disk import pack_graph
from evengraph.disk.propagation import Walk, Workspace
from evengraph.disk.tables import PackedLinks, features
from evengraph.ops.propagate import diffuse, propagation_matrix, weighted_adjacency


def test_propagation_of_a_packed_graph(tmp_path):
    graph = toy(80, 200, 5, 2)
    graph.edge_weight = torch.rand(graph.num_edges) + 0.1
    packed = pack_graph(graph, tmp_path / "graph")
    space = Workspace(PackedLinks(packed), tmp_path / "space", 10_000)
    found = space.propagate(features(packed), Walk("symmetric", 3, 0.1)).read(slice(0, 80))
    propagation = propagation_matrix(weighted_adjacency(graph), torch.device("cpu"))
    torch.testing.assert_close(found, diffuse(propagation, graph.x, 3, 0.1))


def test_labels_do_not_change_the_hashes(tmp_path):
    graph = toy(80, 200, 5, 2)
    first = pack_graph(graph, tmp_path / "first")
    graph.y = 1 - graph.y
    second = pack_graph(graph, tmp_path / "second")
    graph.x = graph.x + 1
    third = pack_graph(graph, tmp_path / "third")
    hashes = [PackedLinks(packed).content_hash for packed in (first, second, third)]
    assert len(set(hashes)) == 1
    tables = [features(packed).content_hash for packed in (first, second, third)]
    assert tables[0] == tables[1] != tables[2]
