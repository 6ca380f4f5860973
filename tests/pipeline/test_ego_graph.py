"""Distances and ways against NetworkX, and the small graph for a picture."""

import networkx as nx
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.pipeline.explanation import MAX_NODES, Distances, ego_graph
from small_graphs import edge_lists, edges, normal, random_edges


def as_networkx(edge_index, num_nodes):
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from(edge_index.t().tolist())
    return graph


@given(edge_lists(), st.data())
def test_distances_and_paths(drawn, data):
    edge_index, num_nodes = drawn
    node = data.draw(st.integers(0, num_nodes - 1))
    distances, graph = Distances(edge_index, num_nodes, node), as_networkx(*drawn)
    lengths = nx.single_source_shortest_path_length(graph, node)
    for other in range(num_nodes):
        assert distances.to(other) == lengths.get(other)
        if other in lengths:
            path = distances.path(other)
            assert (path[0], path[-1]) == (other, node)
            assert len(path) == lengths[other] + 1
            assert nx.is_path(graph, path)


@given(edge_lists(), st.data())
def test_the_picture(drawn, data):
    edge_index, num_nodes = drawn
    any_node = st.integers(0, num_nodes - 1)
    node, listed = data.draw(any_node), data.draw(st.lists(any_node, max_size=4))
    distances, weight = Distances(edge_index, num_nodes, node), normal(num_nodes)
    picture = ego_graph(distances, listed, weight, value=weight)
    nodes = picture.node_id.tolist()
    assert nodes[0] == node
    assert len(set(nodes)) == len(nodes) == picture.num_nodes
    assert set(listed) <= set(nodes)
    assert torch.equal(picture.value, weight[picture.node_id])
    graph = as_networkx(edge_index, num_nodes)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    found = {frozenset(pair) for pair in picture.node_id[picture.edge_index].t().tolist()}
    assert found == {frozenset(pair) for pair in graph.subgraph(nodes).edges}


def test_a_crowd_is_cut_to_the_weightiest():
    star = edges([(0, other) for other in range(1, 200)])
    weight = torch.arange(200.0)
    picture = ego_graph(Distances(star, 200, 0), [3], weight)
    assert sorted(picture.node_id.tolist()) == [0, 3, *range(200 - MAX_NODES + 2, 200)]


def test_a_node_far_away_is_there_without_the_way():
    line = edges([(node, node + 1) for node in range(9)])
    picture = ego_graph(Distances(line, 10, 0), [3, 9], torch.zeros(10))
    assert sorted(picture.node_id.tolist()) == [0, 1, 2, 3, 9]
    assert sorted(picture.distance.tolist()) == [0, 1, 2, 3, 9]


def test_a_large_graph_is_walked_at_once():
    distances = Distances(random_edges(100_000, 400_000), 100_000, 5)
    assert distances.steps.max() < 30
