"""Measurements of edges, classes, reach and features, against loops and NetworkX."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch_geometric.data import Data

from evengraph.inspection import measures as module
from evengraph.inspection.measures import (
    component_ids,
    count_components,
    count_degrees,
    count_edges,
    count_labels,
    measure_features,
    measure_homophily,
    measure_reach,
    read_edges,
)
from small_graphs import edge_lists


@st.composite
def labelled_graphs(draw, max_nodes=12, most_classes=3):
    """Edges as they come, labels with gaps, and which of the labels may be used."""
    edge_index, num_nodes = draw(edge_lists(max_nodes))
    num_classes = draw(st.integers(1, most_classes))
    label = st.integers(-1, num_classes - 1)
    labels = draw(st.lists(label, min_size=num_nodes, max_size=num_nodes))
    labels[0] = draw(st.integers(0, num_classes - 1))  # somebody is labelled
    seen = draw(st.lists(st.booleans(), min_size=num_nodes, max_size=num_nodes))
    seen[0] = True
    graph = Data(edge_index=edge_index, y=torch.tensor(labels), num_nodes=num_nodes)
    graph.class_names = [f"class {number}" for number in range(num_classes)]
    return graph, torch.tensor(seen)


def as_networkx(edge_index, num_nodes):
    """Without direction, repeats and self-loops."""
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from((a, b) for a, b in np.asarray(edge_index).T.tolist() if a != b)
    return graph


@given(edge_lists())
def test_edges_against_sets(found):
    edge_index, num_nodes = found[0].numpy(), found[1]
    neighbours, edges = read_edges(edge_index, num_nodes)
    arcs = list(zip(*edge_index.tolist(), strict=True))
    pairs = {tuple(sorted(arc)) for arc in arcs if arc[0] != arc[1]}
    assert {tuple(pair) for pair in neighbours.pairs.T.tolist()} == pairs
    assert edges.listed == len(arcs)
    assert edges.pairs == len(pairs) == count_edges(edge_index, num_nodes)
    assert edges.repeated == len(arcs) - len(set(arcs))
    assert edges.to_itself == sum(a == b for a, b in arcs)
    assert edges.one_way == sum(((a, b) in arcs) != ((b, a) in arcs) for a, b in pairs)
    assert edges.directed is (edges.one_way > 0)
    graph = as_networkx(edge_index, num_nodes)
    for node in range(num_nodes):
        row = neighbours.indices[neighbours.indptr[node] : neighbours.indptr[node + 1]]
        assert sorted(row.tolist()) == sorted(graph.neighbors(node))


@given(edge_lists(), st.data())
def test_degrees_and_components_against_networkx(found, data):
    edge_index, num_nodes = found[0].numpy(), found[1]
    neighbours, _ = read_edges(edge_index, num_nodes)
    graph = as_networkx(edge_index, num_nodes)
    degrees = [degree for _, degree in graph.degree]
    counted = count_degrees(neighbours)
    assert counted.median == np.median(degrees)
    assert counted.mean == pytest.approx(np.mean(degrees))
    assert counted.largest == max(degrees)
    assert counted.isolated == degrees.count(0)
    assert counted.isolated_share == degrees.count(0) / num_nodes
    for low, high, count in counted.bins:
        assert count == sum(low <= degree <= high for degree in degrees)
    assert sum(count for _, _, count in counted.bins) == num_nodes

    mask = data.draw(st.lists(st.booleans(), min_size=num_nodes, max_size=num_nodes))
    parts = list(nx.connected_components(graph))
    bare = [part for part in parts if not any(mask[node] for node in part)]
    counts = count_components(component_ids(neighbours), np.array(mask))
    assert counts.count == len(parts)
    assert counts.largest == max(map(len, parts))
    assert counts.unlabelled == len(bare)
    assert counts.unlabelled_nodes == sum(map(len, bare))


def test_bins_double_and_edges_have_two_rows():
    star = np.stack([np.zeros(9, dtype=np.int64), np.arange(1, 10)])
    degrees = count_degrees(read_edges(star, 12)[0])
    assert degrees.bins == ((0, 0, 2), (1, 1, 9), (2, 3, 0), (4, 7, 0), (8, 15, 1))
    with pytest.raises(ValueError, match="two rows"):
        read_edges(np.zeros((3, 4), dtype=np.int64), 3)


@pytest.mark.parametrize("bad", [[[0], [3]], [[-1], [0]]])
def test_unknown_nodes_are_refused(bad):
    with pytest.raises(ValueError, match="ids from 0 to 2"):
        read_edges(np.array(bad), 3)


@given(labelled_graphs())
def test_homophily_against_counting(found):
    graph, seen = found
    labels, known = graph.y.numpy(), (seen & (graph.y >= 0)).numpy()
    number = len(graph.class_names)
    neighbours, _ = read_edges(graph.edge_index.numpy(), graph.num_nodes)
    homophily = measure_homophily(neighbours.pairs, labels, known, number)
    edges = [
        (labels[a], labels[b])
        for a, b in as_networkx(graph.edge_index, graph.num_nodes).edges
        if known[a] and known[b]
    ]
    ends = [end for edge in edges for end in edge]
    assert homophily.edges == len(edges)
    if not edges:
        assert homophily.edge is homophily.by_chance is homophily.adjusted is None
    else:
        same = sum(a == b for a, b in edges) / len(edges)
        chance = sum((ends.count(c) / len(ends)) ** 2 for c in range(number))
        assert homophily.edge == pytest.approx(same)
        assert homophily.by_chance == pytest.approx(chance)
        if len(set(ends)) > 1:
            assert homophily.adjusted == pytest.approx((same - chance) / (1 - chance))
        else:
            assert homophily.adjusted is None
    for label in range(number):
        others = [b for a, b in edges if a == label] + [a for a, b in edges if b == label]
        assert homophily.neighbours[label] == len(others)
        share = homophily.per_class[label]
        assert share == (pytest.approx(others.count(label) / len(others)) if others else None)


@given(labelled_graphs())
def test_class_sizes_against_counting(found):
    graph, seen = found
    labels, known = graph.y.tolist(), (seen & (graph.y >= 0)).tolist()
    counted = count_labels(graph.y.numpy(), np.array(known), graph.class_names)
    for label in range(len(graph.class_names)):
        pairs = list(zip(labels, known, strict=True))
        assert counted.labelled[label] == pairs.count((label, True))
        assert counted.hidden[label] == pairs.count((label, False))
    sizes = [size for size in counted.labelled if size]
    assert counted.ratio == max(sizes) / min(sizes)
    assert counted.num_labelled + counted.num_unlabelled == graph.num_nodes
    assert counted.labelled_share == sum(known) / graph.num_nodes


def test_a_large_class_makes_agreement_by_chance():
    # 0 and 1 on a ring in which the single 1 sits between two 0s
    labels = np.array([0] * 9 + [1])
    ring = np.stack([np.arange(10), (np.arange(10) + 1) % 10])
    pairs = read_edges(ring, 10)[0].pairs
    homophily = measure_homophily(pairs, labels, np.ones(10, dtype=bool), 2)
    assert homophily.edge == 0.8
    assert homophily.by_chance == pytest.approx(0.82)
    assert homophily.adjusted < 0


def reach_of(graph, known, hops):
    neighbours, _ = read_edges(graph.edge_index.numpy(), graph.num_nodes)
    number = len(graph.class_names)
    component = component_ids(neighbours)
    return measure_reach(neighbours, component, graph.y.numpy(), known, number, hops)


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


VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.0, -3.5, np.nan, np.inf])


def measure(x, labels=None):
    labels = np.zeros(len(x), dtype=np.int64) if labels is None else np.array(labels)
    return measure_features(x, labels, labels >= 0, int(labels.max(initial=0)) + 1)


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 3)).flatmap(
        lambda shape: arrays(np.float32, shape, elements=VALUES)
    ),
    st.sampled_from([2, 5, 1000]),
)
def test_features_against_a_loop(x, chunk):
    before, module.CHUNK_ENTRIES = module.CHUNK_ENTRIES, chunk
    try:
        found, columns = measure(x)
    finally:
        module.CHUNK_ENTRIES = before
    rows = [tuple("nan" if v != v else v + 0.0 for v in row) for row in x.tolist()]
    full = [row for row in rows if any(value != 0 for value in row)]
    assert found.count == x.shape[1]
    assert found.density == pytest.approx(np.count_nonzero(x) / x.size)
    assert found.missing == (~np.isfinite(x)).sum()
    assert found.empty_nodes == len(rows) - len(full)
    assert found.duplicate_nodes == len(full) - len(set(full))
    constant = [np.isfinite(column).all() and len(set(column.tolist())) == 1 for column in x.T]
    assert found.constant == sum(constant)
    for place, column in enumerate(x.T):
        known = column[np.isfinite(column)]
        if len(known):
            assert (columns.low[place], columns.high[place]) == (known.min(), known.max())
            assert columns.mean[place] == pytest.approx(known.mean(), abs=1e-5)
            assert columns.variance[place] == pytest.approx(known.var(), abs=1e-5)


def test_features_by_hand():
    x = np.array([[0.0, 1, 0], [0, 2, 0]])
    labels = np.array([0, 1])
    hashed = np.array([False, True, True])
    found, _ = measure_features(x, labels, labels >= 0, 2, hashed)
    assert (found.count, found.hashed, found.constant) == (3, 2, 1)
    assert measure(x)[0].constant == 2
    x = np.array([[1.0, 2], [1, 2], [1, 2], [3, 4], [3, 4], [5, 6]])
    found, _ = measure(x, [0, 1, -1, 0, 0, 1])
    assert found.duplicate_nodes == 3
    assert found.conflicting_nodes == 2
    found, _ = measure(np.zeros((4, 0), dtype=np.float32))
    assert found.count == found.constant == found.empty_nodes == found.duplicate_nodes == 0
    assert found.density is None


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.bool_])
def test_other_kinds_of_numbers(kind):
    found, columns = measure(np.array([[0, 1], [1, 1], [1, 1]], dtype=kind))
    assert (found.constant, found.duplicate_nodes, found.missing) == (1, 1, 0)
    assert columns.high.tolist() == [1, 1]
