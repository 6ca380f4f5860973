import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelled_graphs import as_networkx

from evengraph.inspection.measures import (
    component_ids,
    count_components,
    count_degrees,
    count_edges,
    read_edges,
)
from small_graphs import edge_lists


@given(edge_lists())
def test_edges_against_sets(found):
    edge_index, num_nodes = found[0].numpy(), found[1]
    neighbours, edges = read_edges(edge_index, num_nodes)
    arcs = list(zip(*edge_index.tolist(), strict=True))
    pairs = {tuple(sorted(arc)) for arc in arcs if arc[0] != arc[1]}
    assert {tuple(pair) for pair in neighbours.pairs.T.tolist()} == pairs
    assert edges.listed == len(arcs)
    assert (
        edges.pairs == len(pairs) == neighbours.pairs.shape[1] == count_edges(edge_index, num_nodes)
    )
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


def test_bins_double():
    star = np.stack([np.zeros(9, dtype=np.int64), np.arange(1, 10)])
    degrees = count_degrees(read_edges(star, 12)[0])
    assert degrees.bins == ((0, 0, 2), (1, 1, 9), (2, 3, 0), (4, 7, 0), (8, 15, 1))


@pytest.mark.parametrize("bad", [[[0], [3]], [[-1], [0]]])
def test_unknown_nodes_are_refused(bad):
    with pytest.raises(ValueError, match="ids from 0 to 2"):
        read_edges(np.array(bad), 3)


def test_edges_have_two_rows():
    with pytest.raises(ValueError, match="two rows"):
        read_edges(np.zeros((3, 4), dtype=np.int64), 3)
