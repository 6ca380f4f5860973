"""Sparse products, rows and sums against dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from evengraph.ops import sparse
from evengraph.ops.sparse import (
    Sparse,
    adjacency,
    diffuse,
    neighbour_averages,
    neighbour_means,
    normalise,
    pagerank_rows,
    propagation_matrix,
    scatter_sum,
    sparsify,
    take,
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
    value_and_gradient,
)

CPU = torch.device("cpu")


@st.composite
def matrices(draw):
    """Mostly zeros, empty rows and columns included."""
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    kept = draw(st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns))
    values = normal(rows, columns, seed=draw(st.integers(0, 1000)))
    return values * torch.tensor(kept).reshape(rows, columns)


@given(matrices(), st.integers(0, 3))
def test_product_and_gradient(dense, width):
    assert_same_product(Sparse.from_dense(dense), dense, normal(dense.shape[1], width))


@given(matrices(), st.integers(1, 4))
def test_gradient_in_blocks_of_columns(dense, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse, "BLOCK", block)
        patch.setattr(sparse, "LONG", 0)
        matrix = Sparse.from_dense(dense)
        assert (matrix._blocks is None) == (dense.shape[0] <= block)
        assert_same_product(matrix, dense, normal(dense.shape[1], 2))
        several = normal(3, dense.shape[0], 2)
        torch.testing.assert_close(matrix.transposed_product(several), dense.t() @ several)


def test_only_long_rows_are_cut_into_blocks():
    long, short = normal(2 * sparse.BLOCK, 3), torch.eye(2 * sparse.BLOCK)
    blocks = Sparse.from_dense(long)._blocks
    assert blocks is not None
    assert blocks.shape == (2 * 3, 2 * sparse.BLOCK)
    assert Sparse.from_dense(short)._blocks is None
    assert Sparse.from_dense(long.t())._blocks is None


@given(matrices(), st.data())
def test_rows_in_the_order_asked_for(dense, data):
    index = torch.tensor(data.draw(st.lists(st.integers(0, dense.shape[0] - 1))), dtype=torch.long)
    matrix = Sparse.from_dense(dense)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "is_cpu", False)
        on_gpu = matrix.rows(index)
    for some in (matrix.rows(index), on_gpu):
        assert some.shape == (index.numel(), dense.shape[1])
        assert torch.equal(some.matrix.to_dense(), dense[index])
        assert torch.equal(some.transpose.to_dense(), dense[index].t())
        assert_same_product(some, dense[index], normal(dense.shape[1], 2))


@given(matrices())
def test_columns_without_entries_are_left_out(dense):
    occupied, narrow = Sparse.from_dense(dense).without_empty_columns()
    assert occupied.tolist() == (dense != 0).any(0).nonzero().flatten().tolist()
    assert occupied.dtype == torch.int64
    assert torch.equal(narrow.matrix.to_dense(), dense[:, occupied])
    assert torch.equal(narrow.transpose.to_dense(), dense[:, occupied].t())
    assert_same_product(narrow, dense[:, occupied], normal(occupied.numel(), 2))


@given(st.integers(1, 6), st.integers(0, 3), st.data())
def test_take_and_its_gradient(size, width, data):
    rows = data.draw(st.lists(st.integers(0, size - 1)))
    x = normal(size, width).requires_grad_()
    value = take(x, torch.tensor(rows, dtype=torch.long))
    upstream = normal(len(rows), width, seed=1)
    expected = torch.zeros(size, width, dtype=torch.float64)
    for place, row in enumerate(rows):
        assert torch.equal(value[place], x[row])
        expected[row] += upstream[place]
    assert value.shape == (len(rows), width)
    torch.testing.assert_close(*torch.autograd.grad(value, x, upstream), expected)


@given(st.integers(1, 6), st.sampled_from([(), (1,), (3,), (2, 2)]), st.data())
def test_scatter_sum_and_its_gradient(size, shape, data):
    index = data.draw(st.lists(st.integers(0, size - 1)))
    values = normal(len(index), *shape).requires_grad_()
    total = scatter_sum(values, torch.tensor(index, dtype=torch.long), size)
    expected = torch.zeros(size, *shape, dtype=torch.float64)
    for place, row in enumerate(index):
        expected[row] += values[place].detach()
    torch.testing.assert_close(total.detach(), expected)
    upstream = normal(size, *shape, seed=1)
    (gradient,) = torch.autograd.grad(total, values, upstream)
    assert gradient.shape == values.shape
    for place, row in enumerate(index):
        assert torch.equal(gradient[place], upstream[row])


def test_features_are_sparse_when_few_are_set():
    words = torch.zeros(10, 10)
    words[:, :2] = 1
    assert isinstance(sparsify(words), Sparse)
    assert torch.equal(sparsify(words).matrix.to_dense(), words)
    words[:, :3] = 1
    assert sparsify(words) is words
    assert isinstance(sparsify(words, sparse_below=0.5), Sparse)
    nothing, learnt = torch.zeros(3, 0), torch.zeros(2, 9, requires_grad=True)
    assert sparsify(nothing) is nothing
    assert sparsify(learnt) is learnt


@given(matrices(), st.integers(1, 3))
def test_a_leading_axis_stands_for_several_products(dense, replicas):
    x = normal(replicas, dense.shape[1], 2)
    matrix = Sparse.from_dense(dense)
    value, gradient = value_and_gradient(matrix, x)
    torch.testing.assert_close(value, dense @ x)
    torch.testing.assert_close(gradient, dense.t() @ normal(*value.shape, seed=1))


@pytest.mark.parametrize(("columns", "kind"), [(2**31 - 1, torch.int32), (2**31, torch.int64)])
def test_indices_have_as_many_bits_as_they_need(columns, kind):
    parts = torch.tensor([0, 1]), torch.tensor([columns - 1]), torch.ones(1)
    matrix = sparse.csr(*parts, (1, columns))
    assert matrix.crow_indices().dtype == matrix.col_indices().dtype == kind
    assert matrix.col_indices().tolist() == [columns - 1]


def test_rows_are_cut_into_chunks_on_a_gpu_only(monkeypatch):
    dense = normal(5, 3)
    matrix, symmetric = Sparse.from_dense(dense), Sparse.symmetric(dense.to_sparse_csr())
    assert matrix.chunks is matrix.transposed_chunks is None
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    matrix = Sparse.from_dense(dense)
    assert int(matrix.chunks.stops.max()) == int(matrix.transposed_chunks.stops.max()) == 15
    assert matrix.chunks is not matrix.transposed_chunks
    assert symmetric.chunks is symmetric.transposed_chunks


def test_kernels_get_the_chunks_of_rows_that_a_matrix_lacks(monkeypatch):
    pytest.importorskip("triton")
    dense = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    x = normal(3, 8).float()
    matrix = Sparse.from_dense(dense).matrix
    monkeypatch.setattr(sparse, "has_kernels", lambda device: True)
    chunks = sparse.chunk_rows_fixed(matrix.crow_indices(), matrix.col_indices().numel())
    for given_chunks in (None, chunks):
        torch.testing.assert_close(sparse.product(matrix, x, given_chunks), dense @ x)


@given(edge_lists())
def test_adjacency_is_binary_without_loops(graph):
    for build, undirected in ((adjacency, False), (undirected_adjacency, True)):
        matrix = build(*graph)
        expected = dense_adjacency(*graph, undirected=undirected)
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
def test_normalised_products_equal_the_formula_with_weights_too(graph, how, seed):
    edge_index, num_nodes = graph
    weights = normal(num_nodes, num_nodes, seed=seed).abs()
    weighted = dense_adjacency(edge_index, num_nodes, undirected=True) * (weights + weights.t())
    binary = sp.csr_matrix(weighted.numpy())
    before = binary.copy()
    matrix = propagation_matrix(binary, CPU, how=how, dtype=torch.float64)
    formula = {"symmetric": dense_symmetric, "row": dense_row}[how]
    assert_same_product(matrix, formula(weighted), normal(num_nodes, 3))
    assert (binary != before).nnz == 0


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


@pytest.mark.parametrize("weight", [None, torch.tensor([1.0, 1.0, 3.0, 3.0])])
def test_a_graph_is_normalised_once_per_kind_until_it_changes(weight):
    graph = weighted(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), weight)

    def normalised(how="row"):
        return propagation_matrix(weighted_adjacency(graph), CPU, how=how)

    with torch.inference_mode():
        alone = normalised()
    first = normalised()
    assert first is not alone
    assert normalised() is first
    assert normalised("symmetric") is not first
    graph.edge_index[:, :2] = torch.tensor([[3, 4], [4, 3]])
    assert not torch.equal(normalised().matrix.to_dense(), first.matrix.to_dense())


def test_means_over_neighbours_count_weights():
    edge_index = torch.tensor([[0, 0, 1, 2], [1, 2, 0, 0]])
    matrix = undirected_adjacency(edge_index, 4, torch.tensor([1.0, 3.0, 1.0, 3.0]))
    rows = neighbour_means(matrix, CPU, torch.float64) @ torch.eye(4, dtype=torch.float64)
    assert rows.tolist() == [[0, 0.25, 0.75, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]


def related_graph(weighted):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        arcs = torch.stack([torch.randint(high, (40,)) for high in (3, 9, 9)])
        arcs = torch.unique(arcs[:, arcs[1] != arcs[2]], dim=1)
        weight = torch.rand(arcs.shape[1]) + 0.1
    both = torch.cat([arcs[1:], arcs[1:].flip(0)], 1)
    parts = {"relation_weight": weight, "edge_weight": weight.repeat(2)} if weighted else {}
    return Data(
        x=torch.rand(9, 4, dtype=torch.float64),
        edge_index=both,
        relation_index=arcs,
        num_relations=4,  # the last one has no edge
        **parts,
    )


def looped_mean(graph, relation):
    """The weighted mean over the neighbours of each node in one relation."""
    rows = torch.zeros_like(graph.x)
    for node in range(graph.num_nodes):
        total = 0.0
        for place, (kind, end, other) in enumerate(graph.relation_index.T.tolist()):
            if kind == relation and end == node:
                weight = float(graph.relation_weight[place]) if "relation_weight" in graph else 1.0
                rows[node] += weight * graph.x[other]
                total += weight
        if total:
            rows[node] /= total
    return rows


def test_relations_stay_apart():
    for graph in (related_graph(False), related_graph(True)):
        averages = neighbour_averages(graph, 2, torch.float64)
        assert [steps for _, steps in averages] == [1, 2, 1, 1, 1, 1]
        for relation, (matrix, _) in enumerate(averages[2:]):
            torch.testing.assert_close(matrix @ graph.x, looped_mean(graph, relation))
        assert averages[0].matrix is averages[1].matrix
        assert averages[5].matrix.matrix._nnz() == 0


def test_without_relations_only_hops():
    graph = related_graph(False)
    plain = Data(x=graph.x, edge_index=graph.edge_index)
    assert len(neighbour_averages(plain, 2)) == 2
    assert neighbour_averages(graph, 0) == []


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


def test_no_rows():
    assert rows(edges([(0, 1)]), 3, [], teleport=0.1, keep=2).to_dense().shape == (0, 3)


def test_blocks_change_nothing(monkeypatch):
    ring = edges([(node, (node + 1) % 9) for node in range(9)])
    whole = rows(ring, 9, list(range(9)), teleport=0.1, keep=5)
    monkeypatch.setattr("evengraph.ops.sparse.PAGERANK_ENTRIES", 18)
    parts = rows(ring, 9, list(range(9)), teleport=0.1, keep=5)
    torch.testing.assert_close(parts.to_dense(), whole.to_dense())
