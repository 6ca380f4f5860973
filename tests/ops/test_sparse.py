"""Sparse products, rows and sums against dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops import sparse
from evengraph.ops.sparse import (
    Sparse,
    from_scipy,
    row_entries,
    scatter_sum,
    sparsify,
    take,
    to_scipy,
)
from small_graphs import (
    assert_same_product,
    dense_adjacency,
    normal,
    random_edges,
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
    some = Sparse.from_dense(dense).rows(index)
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


def test_rows_then_columns_give_the_same_product():
    dense = dense_adjacency(random_edges(40, 80), 40)
    nodes = torch.tensor([7, 3, 30])
    x = normal(40, 2)
    occupied, narrow = Sparse.from_dense(dense).rows(nodes).without_empty_columns()
    assert 0 < occupied.numel() < 40
    torch.testing.assert_close(narrow @ x[occupied], dense[nodes] @ x)


@given(matrices(), st.data())
def test_entries_of_rows_in_the_order_asked_for(dense, data):
    rows = data.draw(st.lists(st.integers(0, dense.shape[0] - 1)))
    matrix = Sparse.from_dense(dense).matrix
    owner, positions = row_entries(matrix, torch.tensor(rows, dtype=torch.long))
    assert owner.dtype == positions.dtype == torch.int64
    columns, values = matrix.col_indices()[positions], matrix.values()[positions]
    found = list(zip(owner.tolist(), columns.tolist(), values.tolist(), strict=True))
    assert found == [
        (place, column, value)
        for place, row in enumerate(rows)
        for column, value in enumerate(dense[row].tolist())
        if value
    ]


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


def test_there_and_back():
    matrix = sp.random(6, 4, density=0.4, format="csr", random_state=0)
    tensor = from_scipy(matrix, CPU, torch.float64)
    assert np.array_equal(to_scipy(tensor).toarray(), matrix.toarray())
    assert tensor.crow_indices().dtype == torch.int32


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


@given(matrices(), st.data())
def test_rows_on_a_gpu_are_the_same(dense, data):
    index = torch.tensor(data.draw(st.lists(st.integers(0, dense.shape[0] - 1))), dtype=torch.long)
    matrix = Sparse.from_dense(dense)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "is_cpu", False)
        some = matrix.rows(index)
    assert some.matrix.crow_indices().numel() == index.numel() + 1
    assert torch.equal(some.matrix.to_dense(), dense[index])
    assert torch.equal(some.transpose.to_dense(), dense[index].t())


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
