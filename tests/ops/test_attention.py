"""Links of every kind of graph against its dense matrix, and attention against a loop."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops.attention import EdgeList, attend, list_edges
from evengraph.ops.sparse import Sparse
from evengraph.ops.synthesis import AttachedGraph, GraphWithCopies
from small_graphs import dense_adjacency, dense_row, edge_lists, normal, random_edges


def dense(edges):
    """How often each node hears each other, by weight."""
    matrix = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.float64)
    weights = torch.ones(edges.sources.shape) if edges.weights is None else edges.weights
    for target, source, weight in zip(edges.targets, edges.sources, weights, strict=True):
        matrix[target, source] += weight
    return matrix


def closed_graph(edge_index, num_nodes):
    matrix = dense_adjacency(edge_index, num_nodes, undirected=True)
    return matrix + torch.eye(num_nodes, dtype=torch.float64)


@given(edge_lists())
def test_links_of_a_matrix_are_its_entries(drawn):
    matrix = closed_graph(*drawn)
    row = Sparse.from_dense(dense_row(matrix - torch.eye(drawn[1], dtype=torch.float64)))
    assert torch.equal(dense(list_edges(row)), matrix)


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("loop", [0.0, 1.0])
def test_links_of_attached_nodes(both_ways, loop):
    matrix = closed_graph(random_edges(6, 9), 6)
    nodes, new = torch.tensor([0, 4, 4]), torch.tensor([0, 0, 1])
    weights = torch.tensor([1.0, 0.0, 0.5])
    attached = AttachedGraph(
        Sparse.from_dense(matrix), matrix.sum(1), nodes, new, weights, 3, both_ways, loop
    )
    expected = torch.zeros(9, 9, dtype=torch.float64)
    expected[:6, :6] = matrix
    expected[6, 0], expected[7, 4] = 1, 0.5
    if both_ways:
        expected[0, 6], expected[4, 7] = 1, 0.5
    for place in range(6, 9):
        expected[place, place] = loop
    assert torch.equal(dense(list_edges(attached)), expected)


def test_links_of_nodes_attached_to_attached_ones():
    matrix = closed_graph(random_edges(6, 9), 6)
    node, new, weight = torch.tensor([4]), torch.tensor([0]), torch.tensor([0.5])
    inner = AttachedGraph(Sparse.from_dense(matrix), matrix.sum(1), node, new, weight, 1, loop=1.0)
    ends, ones = torch.tensor([6, 2]), torch.ones(2)
    outer = AttachedGraph(
        inner, torch.ones(7), ends, torch.tensor([0, 0]), ones, 1, both_ways=False
    )
    expected = torch.zeros(8, 8, dtype=torch.float64)
    expected[:7, :7] = dense(list_edges(inner))
    expected[7, 6] = expected[7, 2] = 1
    assert expected[4, 6] == expected[6, 4] == 0.5
    assert torch.equal(dense(list_edges(outer)), expected)


@given(edge_lists(), st.data())
def test_links_of_repeated_nodes(drawn, data):
    matrix = closed_graph(*drawn)
    seeds = data.draw(st.lists(st.integers(0, drawn[1] - 1), max_size=5))
    originals = [*range(drawn[1]), *seeds]
    repeated = GraphWithCopies(Sparse.from_dense(matrix), torch.tensor(seeds, dtype=torch.long))
    assert torch.equal(dense(list_edges(repeated)), matrix[originals][:, originals])


@pytest.mark.parametrize("weighted", [False, True])
def test_attention_is_a_softmax_over_sources(weighted):
    targets, sources = random_edges(5, 12, seed=3)
    targets = targets % 4  # node 4 has no sources
    weights = torch.rand(12, generator=torch.Generator().manual_seed(1)) if weighted else None
    edges = EdgeList(targets, sources, weights, 5)
    scores, values = 3 * normal(12, 2, seed=1), normal(5, 2, 3, seed=2)
    found = attend(edges, scores, values)
    for node in range(5):
        mine = (targets == node).nonzero().flatten().tolist()
        for head in range(2):
            parts = [math.exp(scores[k, head]) for k in mine]
            if weights is not None:
                parts = [p * float(weights[k]) for p, k in zip(parts, mine, strict=True)]
            expected = sum(
                (
                    p / sum(parts) * values[sources[k], head]
                    for p, k in zip(parts, mine, strict=True)
                ),
                start=torch.zeros(3, dtype=torch.float64),
            )
            torch.testing.assert_close(found[node, head], expected)
    assert (found[4] == 0).all()


def test_attention_has_gradients():
    targets, sources = random_edges(5, 12, seed=3)
    edges = EdgeList(targets, sources, torch.rand(12, dtype=torch.float64), 5)
    scores = normal(12, 2, seed=1).requires_grad_()
    values = normal(5, 2, 3, seed=2).requires_grad_()
    torch.autograd.gradcheck(lambda s, v: attend(edges, s, v), (scores, values))


def test_a_value_without_edges_is_refused():
    with pytest.raises(TypeError, match="int cannot list its edges"):
        list_edges(3)
