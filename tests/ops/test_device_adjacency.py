"""CSR tensors against the matrices that SciPy builds, on tensors of the CPU."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from evengraph.fast.device_graphs import adjacency_tensor, means, normalised, scaled_by_mean
from evengraph.ops.sparse import (
    adjacency,
    from_scipy,
    neighbour_means,
    propagation_matrix,
    to_scipy,
    undirected_adjacency,
    weighted_adjacency,
)
from small_graphs import edge_lists, edges, normal, random_edges

CPU = torch.device("cpu")


def same(matrix, expected):
    """Equal bit by bit, entries in the same order."""
    for part in ("crow_indices", "col_indices", "values"):
        one, other = (getattr(each, part)() for each in (matrix, expected))
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
    assert matrix.shape == expected.shape


def close(sparse, expected):
    """Products with both the matrix and its transpose agree."""
    x = normal(sparse.shape[1], 3, dtype=torch.float32)
    torch.testing.assert_close(sparse @ x, expected @ x)
    torch.testing.assert_close(sparse.transposed_product(x), expected.transposed_product(x))


@given(edge_lists(), st.booleans())
def test_equals_scipy(graph, undirected):
    edge_index, num_nodes = graph
    build = undirected_adjacency if undirected else adjacency
    matrix = adjacency_tensor(edge_index, num_nodes, undirected=undirected)
    same(matrix, from_scipy(build(edge_index, num_nodes), CPU, torch.float32))
    assert matrix.col_indices().dtype == torch.int32


@given(edge_lists(), st.booleans())
def test_weights_equal_scipy(graph, undirected):
    edge_index, num_nodes = graph
    weight = torch.arange(edge_index.shape[1], dtype=torch.float32)
    build = undirected_adjacency if undirected else adjacency
    matrix = adjacency_tensor(edge_index, num_nodes, weight, undirected=undirected)
    expected = build(edge_index, num_nodes, weight)
    assert (to_scipy(matrix) != expected).nnz == 0


def test_weights_in_units_of_their_mean():
    edge_index, weight = random_edges(20, 60), torch.rand(60) * 7
    weight[:20] = 0
    graph = Data(edge_index=edge_index, edge_weight=weight, num_nodes=20)
    matrix = scaled_by_mean(adjacency_tensor(edge_index, 20, weight, undirected=True))
    expected = from_scipy(weighted_adjacency(graph), CPU, torch.float32)
    assert matrix.values().dtype == torch.float32
    torch.testing.assert_close(matrix.to_dense(), expected.to_dense())
    assert matrix.values().numel() == expected.values().numel()


@given(edge_lists(), st.sampled_from(["symmetric", "row"]))
def test_normalised_equals_scipy(graph, how):
    edge_index, num_nodes = graph
    ours = normalised(adjacency_tensor(edge_index, num_nodes, undirected=True), how)
    expected = propagation_matrix(undirected_adjacency(edge_index, num_nodes), CPU, how=how)
    same(ours.matrix, expected.matrix)
    same(ours.transpose, expected.transpose)


@given(edge_lists())
def test_means_equal_scipy(graph):
    edge_index, num_nodes = graph
    ours = means(adjacency_tensor(edge_index, num_nodes, undirected=True))
    expected = neighbour_means(undirected_adjacency(edge_index, num_nodes), CPU)
    same(ours.matrix, expected.matrix)
    same(ours.transpose, expected.transpose)


def test_weights_are_normalised_like_scipys():
    edge_index, weight = random_edges(30, 90), torch.rand(90)
    matrix = adjacency_tensor(edge_index, 30, weight, undirected=True)
    scipy = undirected_adjacency(edge_index, 30, weight)
    close(normalised(matrix, "symmetric"), propagation_matrix(scipy, CPU))
    close(normalised(matrix, "row"), propagation_matrix(scipy, CPU, how="row"))
    close(means(matrix), neighbour_means(scipy, CPU))


def test_no_nodes_and_32_bit_ids():
    assert adjacency_tensor(edges([]), 0, undirected=True).shape == (0, 0)
    many = edges([(99_999, 70_000)])
    assert adjacency_tensor(many.int(), 100_000).col_indices().tolist() == [70_000]


@pytest.mark.parametrize("bad", [[(0, 5)], [(-1, 0)]])
def test_edges_outside_the_graph_are_refused(bad):
    with pytest.raises(ValueError, match="edge_index must hold node ids from 0 to 4"):
        adjacency_tensor(edges(bad), 5)
