"""Personalised PageRank against the inverse matrix."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops import Sparse, personalised_pagerank
from small_graphs import dense_adjacency, dense_symmetric, edge_lists, normal


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
