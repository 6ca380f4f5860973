import numpy as np
import pytest
import torch

from evengraph.datasets import toy
from evengraph.disk import pack_graph
from evengraph.disk.inspection import inspect_packed
from evengraph.inspection import inspect_graph


@pytest.fixture
def graph():
    graph = toy(600, 4000, 8, 3)
    graph.y[::3] = -1
    return graph


def test_measures_agree_with_those_in_memory(graph, tmp_path):
    found, exact = inspect_packed(pack_graph(graph, tmp_path / "graph")), inspect_graph(graph)
    assert (found.num_nodes, found.num_edges, found.num_features) == (600, 2000, 8)
    assert found.class_counts == exact.labels.labelled
    assert found.largest_degree == exact.degrees.largest
    assert found.isolated == exact.degrees.isolated
    assert found.homophily == pytest.approx(exact.homophily.edge)
    assert found.sampled_edges == 2 * exact.homophily.edges


def test_a_sample_of_rows_is_enough_for_the_share_of_alike_neighbours(graph, tmp_path, monkeypatch):
    monkeypatch.setattr("evengraph.disk.inspection.BLOCK_ROWS", 4)
    monkeypatch.setattr("evengraph.disk.inspection.PASS_ROWS", 7)
    found, exact = inspect_packed(pack_graph(graph, tmp_path / "graph")), inspect_graph(graph)
    assert found.sampled_edges < exact.homophily.edges
    assert found.homophily == pytest.approx(exact.homophily.edge, abs=0.1)
    assert found.largest_degree == exact.degrees.largest
    assert found.isolated == exact.degrees.isolated


def test_methods_fit_in_memory_on_disk_or_not_at_all(graph, tmp_path, monkeypatch):
    packed = pack_graph(graph, tmp_path / "graph")
    roomy = {item.method: item for item in inspect_packed(packed).methods}
    assert roomy["gcn"].fits
    assert not roomy["gcn"].on_disk
    monkeypatch.setattr("evengraph.disk.inspection.available_memory", lambda: 1000)
    tight = {item.method: item for item in inspect_packed(packed).methods}
    assert not tight["gcn"].fits
    for name in ("mlp", "iceberg", "unison", "boosting"):
        assert tight[name].on_disk
        assert tight[name].fits


def test_graphs_without_labels_or_edges_are_inspected(tmp_path):
    graph = toy(20, 0, 4, 2)
    graph.y = torch.full((20,), -1)
    found = inspect_packed(pack_graph(graph, tmp_path / "graph"))
    assert found.homophily is None
    assert found.isolated == 20
    assert np.isfinite(found.mean_degree)
    assert found.as_dict()["packed"]
