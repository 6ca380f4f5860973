import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelled_graphs import as_networkx, labelled_graphs

from evengraph.inspection.measures import component_ids, measure_reach, read_edges


def reach_of(graph, known, hops):
    neighbours, _ = read_edges(graph.edge_index.numpy(), graph.num_nodes)
    number = len(graph.class_names)
    return measure_reach(
        neighbours, component_ids(neighbours), graph.y.numpy(), known, number, hops
    )


def distances(graph, sources):
    """From the nearest source, infinite where there is no path."""
    plain = as_networkx(graph.edge_index, graph.num_nodes)
    found = nx.multi_source_dijkstra_path_length(plain, sources) if sources else {}
    return [found.get(node, np.inf) for node in range(graph.num_nodes)]


@given(labelled_graphs(max_nodes=14), st.integers(1, 5))
def test_reach_against_shortest_paths(found, hops):
    graph, seen = found
    known = (seen & (graph.y >= 0)).numpy()
    reach = reach_of(graph, known, hops)
    others = np.flatnonzero(~known)
    assert reach.nodes == len(others)
    groups = [
        {int(node) for node in np.flatnonzero(known & (graph.y.numpy() == label))}
        for label in range(len(graph.class_names))
    ]
    for label, sources in enumerate(groups):
        away = np.array(distances(graph, sources))[others]
        assert reach.per_class[label] == tuple((away <= h).sum() for h in range(1, hops + 1))
        assert reach.never_per_class[label] == np.isinf(away).sum()
    away = np.array(distances(graph, set().union(*groups)))[others]
    assert reach.any_class == tuple((away <= h).sum() for h in range(1, hops + 1))
    assert reach.beyond == (away > hops).sum()
    assert reach.never == np.isinf(away).sum()


@pytest.mark.parametrize("number", [63, 64, 65, 130])
def test_more_classes_than_bits_of_a_word(number):
    """A path along which every second node is labelled, each with a class of its own."""
    nodes = 2 * number
    path = np.stack([np.arange(nodes - 1), np.arange(1, nodes)])
    labels = np.where(np.arange(nodes) % 2 == 0, np.arange(nodes) // 2, -1)
    neighbours, _ = read_edges(path, nodes)
    reach = measure_reach(neighbours, component_ids(neighbours), labels, labels >= 0, number, 3)
    assert reach.per_class[0] == (1, 1, 2)
    assert reach.per_class[-1] == (2, 2, 3)
    assert set(reach.per_class[2:-2]) == {(2, 2, 4)}
    assert reach.any_class == (number, number, number)
    assert len(reach.per_class) == number


def test_hops_are_checked():
    neighbours, _ = read_edges(np.zeros((2, 0), dtype=np.int64), 2)
    with pytest.raises(ValueError, match="hops must be at least 1, got 0"):
        measure_reach(neighbours, np.arange(2), np.array([0, -1]), np.array([True, False]), 1, 0)
