"""Adjacency and normalisation against dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_dense_adj, to_undirected

from evengraph.ops.sparse import (
    adjacency,
    diffuse,
    neighbour_means,
    normalise,
    propagation_matrix,
    undirected_adjacency,
    weighted_adjacency,
)
from small_graphs import (
    assert_same_product,
    dense_adjacency,
    dense_row,
    dense_symmetric,
    edge_lists,
    edges,
    normal,
)

CPU = torch.device("cpu")


@given(edge_lists())
def test_adjacency_is_binary_without_loops(graph):
    edge_index, num_nodes = graph
    matrix = adjacency(edge_index, num_nodes)
    expected = dense_adjacency(edge_index, num_nodes)
    assert np.array_equal(matrix.toarray(), expected.numpy())
    assert matrix.nnz == int(expected.sum())


@given(edge_lists())
def test_undirected_adjacency_reads_edges_in_both_directions(graph):
    edge_index, num_nodes = graph
    matrix = undirected_adjacency(edge_index, num_nodes)
    expected = dense_adjacency(edge_index, num_nodes, undirected=True)
    assert matrix.format == "csr"
    assert np.array_equal(matrix.toarray(), expected.numpy())
    assert matrix.nnz == int(expected.sum())


def test_normalising_refuses_one_way_edges():
    matrix = adjacency(edges([(0, 1), (1, 2)]), 3)
    for how in ("row", "symmetric"):
        with pytest.raises(ValueError, match="symmetric"):
            normalise(matrix, how)
    with pytest.raises(ValueError, match="symmetric"):
        propagation_matrix(matrix, torch.device("cpu"))


@pytest.mark.parametrize("bad", [[(0, 3)], [(-1, 0)]])
def test_adjacency_refuses_ids_outside_the_graph(bad):
    with pytest.raises(ValueError, match="edge_index must hold node ids from 0 to 2"):
        adjacency(edges(bad), 3)


@given(edge_lists(), st.sampled_from(["symmetric", "row"]), st.integers(0, 99))
def test_normalise_equals_the_formula_with_weights_too(graph, how, seed):
    edge_index, num_nodes = graph
    weights = normal(num_nodes, num_nodes, seed=seed).abs()
    weighted = dense_adjacency(edge_index, num_nodes, undirected=True) * (weights + weights.t())
    matrix = sp.csr_matrix(weighted.numpy())
    before = matrix.copy()
    formula = {"symmetric": dense_symmetric, "row": dense_row}[how]
    value = torch.from_numpy(normalise(matrix, how).toarray())
    torch.testing.assert_close(value, formula(weighted))
    assert (matrix != before).nnz == 0


@given(edge_lists(), st.sampled_from(["symmetric", "row"]))
def test_normalised_products_equal_the_formula(graph, how):
    edge_index, num_nodes = graph
    binary = adjacency(to_undirected(edge_index, num_nodes=num_nodes), num_nodes)
    formula = {"symmetric": dense_symmetric, "row": dense_row}[how]
    dense = formula(dense_adjacency(edge_index, num_nodes, undirected=True))
    matrix = propagation_matrix(binary, CPU, how=how, dtype=torch.float64)
    assert_same_product(matrix, dense, normal(num_nodes, 3))


def test_isolated_node_keeps_its_own_row():
    matrix = propagation_matrix(adjacency(edges([(0, 1), (1, 0)]), 3), CPU)
    assert (matrix @ torch.tensor([[1.0], [2.0], [7.0]])).flatten().tolist() == [1.5, 1.5, 7.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_means_of_neighbours_leave_the_node_out(dtype):
    matrix = undirected_adjacency(edges([(0, 1), (0, 2)]), 4)
    means = neighbour_means(matrix, torch.device("cpu"), dtype)
    x = torch.tensor([[1.0], [2.0], [6.0], [9.0]], dtype=dtype)
    assert torch.equal(means @ x, torch.tensor([[4.0], [1.0], [1.0], [0.0]], dtype=dtype))


def test_diffusion_adds_the_start_again():
    matrix = propagation_matrix(undirected_adjacency(edges([(0, 1)]), 2), torch.device("cpu"))
    x = torch.tensor([[1.0], [0.0]])
    torch.testing.assert_close(diffuse(matrix, x, 1, 0.2), torch.tensor([[0.6], [0.4]]))
    torch.testing.assert_close(diffuse(matrix, x, 2, 0.2), torch.tensor([[0.6], [0.4]]))
    assert torch.equal(diffuse(matrix, x, 0, 0.2), x)


def weighted(edge_index, weight, num_nodes=5):
    return Data(x=torch.eye(num_nodes), edge_index=edge_index, edge_weight=weight)


def test_weights_of_repeated_edges_are_summed_and_the_larger_direction_counts():
    edge_index = torch.tensor([[0, 0, 1, 2, 3], [1, 1, 0, 3, 3]])
    matrix = undirected_adjacency(edge_index, 5, torch.tensor([1.0, 2.0, 2.5, 4.0, 9.0]))
    expected = np.zeros((5, 5))
    expected[0, 1] = expected[1, 0] = 3.0
    expected[2, 3] = expected[3, 2] = 4.0
    assert np.array_equal(matrix.toarray(), expected)


def test_the_unit_of_weights_does_not_matter():
    edge_index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    weight = torch.tensor([1.0, 1.0, 3.0, 3.0, 0.0, 0.0])
    euros, cents = (weighted_adjacency(weighted(edge_index, w)) for w in (weight, 100 * weight))
    np.testing.assert_allclose(euros.toarray(), cents.toarray(), rtol=1e-6)
    assert euros.data.mean() == 1
    assert euros.nnz == 4
    plain = Data(x=torch.eye(5), edge_index=edge_index)
    equal = weighted_adjacency(weighted(edge_index, torch.full((6,), 0.1)))
    assert (equal != weighted_adjacency(plain)).nnz == 0
    assert equal.dtype == np.float32


def test_weights_normalise_as_in_pyg():
    edge_index = to_undirected(torch.tensor([[0, 0, 1, 3], [1, 2, 2, 4]]))
    weight = (edge_index.sum(0) % 3 + 1).double()
    weight = weight / weight.mean()
    ours = normalise(weighted_adjacency(weighted(edge_index, weight)), "symmetric").toarray()
    index, values = gcn_norm(edge_index, weight, num_nodes=5, dtype=torch.float64)
    theirs = to_dense_adj(index, edge_attr=values, max_num_nodes=5)[0].numpy()
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_means_over_neighbours_count_weights():
    edge_index = torch.tensor([[0, 0, 1, 2], [1, 2, 0, 0]])
    matrix = undirected_adjacency(edge_index, 4, torch.tensor([1.0, 3.0, 1.0, 3.0]))
    rows = neighbour_means(matrix, CPU, torch.float64) @ torch.eye(4, dtype=torch.float64)
    assert rows.tolist() == [[0, 0.25, 0.75, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
