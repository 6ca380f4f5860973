"""Personalised PageRank against the inverse matrix."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops.sparse import (
    Sparse,
    pagerank_rows,
    personalised_pagerank,
    propagation_matrix,
    undirected_adjacency,
)
from small_graphs import dense_adjacency, dense_symmetric, edge_lists, edges, normal

CPU = torch.device("cpu")


@given(edge_lists(), st.sampled_from([0.05, 0.15, 0.5, 0.9]))
def test_it_is_the_inverse(drawn, teleport):
    matrix = dense_symmetric(dense_adjacency(*drawn, undirected=True))
    x = normal(drawn[1], 3)
    eye = torch.eye(drawn[1], dtype=torch.float64)
    expected = teleport * torch.linalg.inv(eye - (1 - teleport) * matrix) @ x
    found = personalised_pagerank(Sparse.from_dense(matrix), x, teleport)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_a_walk_that_never_walks_stays():
    x = normal(4, 2)
    assert torch.equal(personalised_pagerank(Sparse.from_dense(torch.eye(4).double()), x, 1.0), x)


def test_alone_everything_stays():
    x = normal(4, 2)
    found = personalised_pagerank(Sparse.from_dense(torch.eye(4).double()), x, 0.15)
    assert found.flatten().tolist() == pytest.approx(x.flatten().tolist())


# Some rows, the largest entries of each.


def rows(edge_index, num_nodes, nodes, **settings):
    matrix = propagation_matrix(undirected_adjacency(edge_index, num_nodes), CPU)
    found = pagerank_rows(matrix, torch.tensor(nodes).long(), **settings)
    assert found.shape == (len(nodes), num_nodes)
    return found


def inverse(edge_index, num_nodes, teleport):
    matrix = dense_symmetric(dense_adjacency(edge_index, num_nodes, undirected=True))
    identity = torch.eye(num_nodes, dtype=torch.float64)
    return teleport * torch.linalg.inv(identity - (1 - teleport) * matrix)


@pytest.mark.parametrize("teleport", [0.05, 0.5])
@given(graph=edge_lists())
def test_all_rows_are_those_of_the_inverse(graph, teleport):
    edge_index, num_nodes = graph
    every = list(range(num_nodes))
    found = rows(edge_index, num_nodes, every, teleport=teleport, keep=num_nodes)
    expected = inverse(edge_index, num_nodes, teleport)
    torch.testing.assert_close(found.to_dense().double(), expected, atol=1e-5, rtol=1e-4)


def test_only_the_largest_entries_are_kept():
    path = edges([(0, 1), (1, 2), (2, 3), (3, 4), (5, 6)])
    found = rows(path, 7, [0, 4], teleport=0.3, keep=2)
    assert found.crow_indices().tolist() == [0, 2, 4]
    assert [sorted(part.tolist()) for part in found.col_indices().split(2)] == [[0, 1], [3, 4]]
    exact = inverse(path, 7, 0.3)[[0, 4]]
    kept = found.to_dense().double()
    torch.testing.assert_close(kept[kept > 0], exact[kept > 0], atol=1e-3, rtol=1e-3)


def test_what_cannot_be_reached_is_no_entry():
    found = rows(edges([(0, 1)]), 4, [0, 3], teleport=0.2, keep=4)
    assert found.crow_indices().tolist() == [0, 2, 3]


def test_a_walk_that_always_comes_home_stays_there():
    found = rows(edges([(0, 1)]), 3, [1], teleport=1.0, keep=3)
    assert found.to_dense().tolist() == [[0, 1, 0]]


def test_no_rows():
    assert rows(edges([(0, 1)]), 3, [], teleport=0.1, keep=2).to_dense().shape == (0, 3)


def test_blocks_change_nothing(monkeypatch):
    ring = edges([(node, (node + 1) % 9) for node in range(9)])
    whole = rows(ring, 9, list(range(9)), teleport=0.1, keep=5)
    monkeypatch.setattr("evengraph.ops.sparse.PAGERANK_ENTRIES", 18)
    parts = rows(ring, 9, list(range(9)), teleport=0.1, keep=5)
    torch.testing.assert_close(parts.to_dense(), whole.to_dense())
