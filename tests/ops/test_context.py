"""Place and label columns against loops and networkx, and what is kept of a graph."""

import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from torch_geometric.data import Data

from evengraph.ops import context
from evengraph.ops.context import (
    LEAST,
    RESTART,
    SPREAD_STEPS,
    known_of_graph,
    label_columns,
    label_width,
    once_per_graph,
    place_columns,
    triangles,
)
from evengraph.ops.sparse import weighted_adjacency
from small_graphs import edge_lists, normal, random_edges


def graph_with(edge_index, num_nodes, **more):
    return Data(x=normal(num_nodes, 2).float(), edge_index=edge_index, **more)


def simple(graph):
    """The undirected graph without self-loops."""
    found = nx.Graph()
    found.add_nodes_from(range(graph.num_nodes))
    found.add_edges_from((a, b) for a, b in graph.edge_index.t().tolist() if a != b)
    return found


BUSY = graph_with(random_edges(40, 200), 42)  # two nodes are isolated


@given(edge_lists())
def test_triangles_and_clustering_are_those_of_networkx(case):
    graph = graph_with(*case)
    expected = nx.triangles(simple(graph))
    found = triangles((weighted_adjacency(graph) != 0).astype(np.float64).tocsr())
    assert found.tolist() == [expected[node] for node in range(graph.num_nodes)]
    clustering = nx.clustering(simple(graph))
    columns = place_columns(graph)
    assert columns.isfinite().all()
    assert columns[:, 1].tolist() == pytest.approx(
        [clustering[node] for node in range(graph.num_nodes)]
    )


def test_page_rank_is_that_of_networkx_and_spread_that_of_a_loop():
    neighbours = simple(BUSY)
    ranks = nx.pagerank(neighbours, alpha=0.85, max_iter=1000, tol=1e-12)
    found = place_columns(BUSY)
    for node in range(42):
        assert float(found[node, 0]) == pytest.approx(math.log(42 * ranks[node]), abs=1e-3)
        logs = [math.log1p(neighbours.degree(other)) for other in neighbours[node]]
        assert float(found[node, 2]) == pytest.approx(np.std(logs) if logs else 0, abs=1e-5)


def label_columns_by_loops(graph, known, num_classes):
    """Shares among neighbours and theirs, and personalised PageRank, node by node."""
    nodes, adjacent = range(graph.num_nodes), simple(graph)
    totals = Counter(known.values())
    prior = [totals[label] / max(len(known), 1) for label in range(num_classes)]

    def mean(values, node):
        rows = [values[other] for other in adjacent[node]] or [[0.0] * num_classes]
        return [sum(column) / len(rows) for column in zip(*rows, strict=True)]

    near = [
        [sum(known.get(other) == label for other in adjacent[node]) for label in range(num_classes)]
        for node in nodes
    ]
    further = [mean(near, node) for node in nodes]
    start = [
        [(known.get(node) == label) / max(totals[label], 1) for label in range(num_classes)]
        for node in nodes
    ]
    reach = start
    for _ in range(SPREAD_STEPS):
        spread = [mean(reach, node) for node in nodes]
        reach = [
            [(1 - RESTART) * a + RESTART * b for a, b in zip(spread[n], start[n], strict=True)]
            for n in nodes
        ]
    rows = []
    for node in nodes:
        shares = [
            (found[node][label] + prior[label]) / (sum(found[node]) + 1)
            for found in (near, further)
            for label in range(num_classes)
        ]
        logs = [math.log(value + LEAST) for value in reach[node]]
        rows.append([*shares, *(value - sum(logs) / num_classes for value in logs)])
    columns = torch.tensor(rows)
    return columns[:, 1::2] if num_classes == 2 else columns


@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("labelled", [0, 4, 25])
def test_label_columns_are_those_of_loops(num_classes, labelled):
    nodes = torch.randperm(42, generator=torch.Generator().manual_seed(1))[:labelled]
    labels = nodes % num_classes
    known = dict(zip(nodes.tolist(), labels.tolist(), strict=True))
    found = label_columns(BUSY, nodes, labels, num_classes)
    assert found.shape == (42, label_width(num_classes))
    expected = label_columns_by_loops(BUSY, known, num_classes)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_a_label_never_changes_the_held_out_columns_of_its_own_node(num_classes, monkeypatch):
    nodes = torch.arange(25)
    labels = nodes % num_classes
    found = label_columns(BUSY, nodes, labels, num_classes, held_out=True)
    part = context._parts(labels, num_classes)
    for label in range(num_classes):  # every class is divided evenly
        counts = torch.bincount(part[labels == label], minlength=context.PARTS)
        assert counts.max() - counts.min() <= 1
    monkeypatch.setattr(context, "_parts", lambda *call: part)
    changed = torch.zeros(42, dtype=torch.bool)
    for node in nodes.tolist():
        flipped = labels.clone()
        flipped[node] = (labels[node] + 1) % num_classes
        rows = label_columns(BUSY, nodes, flipped, num_classes, held_out=True)
        assert torch.equal(rows[node], found[node])
        changed |= (rows != found).any(1)
        others = part != part[node]
        expected = label_columns(BUSY, nodes[others], labels[others], num_classes)
        torch.testing.assert_close(found[node], expected[node])
    assert changed[:40].all()  # labels do change the columns of all others that have neighbours
    every = label_columns(BUSY, nodes, labels, num_classes)
    assert torch.equal(found[25:], every[25:])


def test_a_graph_is_computed_once_until_something_changes():
    graph = graph_with(random_edges(9, 20), 9, edge_weight=torch.ones(20))
    numbers = iter(range(99))

    def count(of=graph, key="key"):
        return once_per_graph(of, key, lambda: next(numbers))

    assert [count(), count(), count(key="other"), count()] == [0, 0, 1, 0]
    shared = Data(x=graph.x, edge_index=graph.edge_index, edge_weight=graph.edge_weight)
    assert count(shared) == 0  # as folds have it
    assert [count(graph.clone()), count()] == [2, 0]
    for name in ("x", "edge_index", "edge_weight"):
        before = count()
        graph[name][0] = 0
        assert known_of_graph(graph, "key") is None
        assert count() == count() > before
    for _ in range(5):  # memory of what is gone is given to the next
        before = count()
        graph.edge_weight = None
        graph.edge_weight = torch.rand(20)
        assert count() > before
    del graph.edge_weight
    assert count() == count() > before


def test_tensors_that_count_no_changes_are_not_kept():
    with torch.inference_mode():
        graph = graph_with(random_edges(9, 20).clone(), 9)
    numbers = iter(range(9))
    assert [once_per_graph(graph, "key", lambda: next(numbers)) for _ in range(2)] == [0, 1]
