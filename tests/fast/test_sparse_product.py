"""The GPU's sparse products against dense ones."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evengraph.core.rng import generator
from evengraph.fast import row_chunks
from evengraph.fast import triton_kernels as spmm
from evengraph.fast.row_chunks import chunk_rows, chunk_rows_fixed
from evengraph.fast.triton_kernels import deterministic_product, product_rows
from evengraph.ops.sparse import csr
from kernel_inputs import DEVICE, assert_same, is_untouched, on_device, poisoned, surrounded
from small_graphs import normal

pytest.importorskip("triton")


LENGTHS = [45, 0, 3, 19, 1]  # more than one step of a kernel, and more than one piece
COLUMNS = 48
KINDS = {
    "cut": lambda matrix: chunk_rows(matrix.crow_indices()),
    "evenly": lambda matrix: chunk_rows_fixed(matrix.crow_indices(), matrix.values().numel()),
}
kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    monkeypatch.setattr(row_chunks, "CHUNK_ENTRIES", 20)


def matrix_of(lengths=LENGTHS, num_columns=COLUMNS, dtype=torch.float32):
    """A matrix with so many entries in each row, none of them in the first column; and dense."""
    stream = generator(0)
    columns = [
        1 + torch.randperm(num_columns - 1, generator=stream)[:length].sort().values
        for length in lengths
    ]
    values = [normal(length, seed=row, dtype=dtype) for row, length in enumerate(lengths)]
    dense = torch.zeros(len(lengths), num_columns, dtype=dtype)
    for row, (where, what) in enumerate(zip(columns, values, strict=True)):
        dense[row, where] = what
    pointers = torch.tensor([0, *lengths]).cumsum(0)
    parts = (part.to(DEVICE) for part in (pointers, torch.cat(columns), torch.cat(values)))
    return csr(*parts, tuple(dense.shape)), dense


def factors(*shape, dtype=torch.float32):
    """A dense factor whose first row, which no entry asks for, is no number; and a sound one."""
    sound = normal(*shape, dtype=dtype)
    sound[..., 0, :] = 0
    x = sound.clone().to(DEVICE)
    x[..., 0, :] = torch.nan
    return x, sound


@kinds
@pytest.mark.parametrize("short_rows", [0, 32])  # two or four replicas at a time
@pytest.mark.parametrize(("replicas", "width"), [(1, 1), (3, 5), (4, 64), (3, 64), (2, 130)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.usefixtures("poisoned_memory")
def test_equals_the_dense_product(monkeypatch, dtype, replicas, width, short_rows, kind):
    monkeypatch.setattr(spmm, "SHORT_ROWS", short_rows)
    matrix, dense = matrix_of(dtype=dtype)
    x, sound = factors(replicas, COLUMNS, width, dtype=dtype)
    chunks = KINDS[kind](matrix)
    beyond = torch.full_like(x[:1], torch.inf).expand(4, -1, -1)
    x = torch.cat([x, beyond])[:replicas]  # adding up what is beyond would be a warning
    found = deterministic_product(matrix, x, chunks)
    assert found.dtype == dtype
    assert_same(found, dense @ sound)
    assert_same(deterministic_product(matrix, x[0], chunks), dense @ sound[0])
    assert torch.equal(deterministic_product(matrix, x, chunks), found)  # the same bits every time
    if dtype == torch.float32:  # columns of wider matrices
        output, whole = poisoned(replicas, len(LENGTHS), width)
        assert deterministic_product(matrix, surrounded(x)[0], chunks, output) is output
        assert_same(output, dense @ sound)
        assert is_untouched(whole)


@pytest.mark.parametrize("shape", [(6, COLUMNS), (3, 6, COLUMNS), (3, 1, COLUMNS)])
def test_a_last_axis_that_is_not_contiguous(shape):
    matrix, dense = matrix_of()
    x = on_device(*shape).transpose(-1, -2)
    before = x.clone()
    assert_same(deterministic_product(matrix, x, KINDS["cut"](matrix)), dense @ x.cpu())
    assert torch.equal(x, before)
    if x.dim() == 3:
        rows = torch.tensor([[0, 3]] * 3, device=DEVICE)
        assert_same(product_rows(matrix, x, rows, None), (dense @ x.cpu())[:, [0, 3]])


def test_one_factor_for_all_replicas():
    matrix, dense = matrix_of()
    x = on_device(COLUMNS, 4).expand(3, -1, -1)
    assert_same(deterministic_product(matrix, x, KINDS["cut"](matrix)), dense @ x.cpu())


def random_positions(num_chosen, replicas):
    """Some columns, others in each replica and in no order; where each stands."""
    stream = generator(1)
    orders = [torch.randperm(COLUMNS, generator=stream)[:num_chosen] for _ in range(replicas)]
    positions = torch.full((replicas, COLUMNS), -1, dtype=torch.int32)
    for replica, order in enumerate(orders):
        positions[replica, order] = torch.arange(num_chosen, dtype=torch.int32)
    return positions


def everywhere(x, positions):
    """The dense factor that x and its positions stand for."""
    rows = [one[where.clamp(min=0)] for one, where in zip(x, positions.long(), strict=True)]
    return torch.stack(rows) * (positions >= 0).unsqueeze(2)


@kinds
@pytest.mark.parametrize("width", [5, 64, 130])
@pytest.mark.usefixtures("poisoned_memory")
def test_fewer_rows_in_their_places(width, kind):
    matrix, dense = matrix_of()
    x, positions = normal(3, 30, width).float(), random_positions(30, 3)
    chunks = KINDS[kind](matrix)
    rows, places = surrounded(x.to(DEVICE))[0], positions.to(DEVICE)
    found = deterministic_product(matrix, rows, chunks, positions=places)
    assert_same(found, dense @ everywhere(x, positions))
    one = deterministic_product(matrix, rows[0], chunks, positions=places[0])
    assert_same(one, dense @ everywhere(x[:1], positions[:1])[0])


ROWS = torch.tensor([[3, -1, 0, 4], [0, 0, 1, -1], [-1, -1, -1, -1]])


def some_rows(whole, rows):
    """Of each replica's product; zeros for -1."""
    picked = [one[where.clamp(min=0)] for one, where in zip(whole, rows, strict=True)]
    return torch.stack(picked) * (rows >= 0).unsqueeze(2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 5, 130])
@pytest.mark.usefixtures("poisoned_memory")
def test_some_rows(width, dtype):
    matrix, dense = matrix_of(dtype=dtype)
    x, sound = factors(3, COLUMNS, width, dtype=dtype)
    found = product_rows(matrix, surrounded(x)[0], ROWS.to(DEVICE), None)
    assert found.dtype == dtype
    assert_same(found, some_rows(dense @ sound, ROWS))
    x, positions = normal(3, 30, width, dtype=dtype), random_positions(30, 3)
    found = product_rows(matrix, surrounded(x.to(DEVICE))[0], ROWS.to(DEVICE), positions.to(DEVICE))
    assert_same(found, some_rows(dense @ everywhere(x, positions), ROWS))


@settings(max_examples=12)
@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=4),
    st.sampled_from(sorted(KINDS)),
    st.integers(1, 3),
    st.data(),
)
def test_any_rows_in_chunks_of_any_length(lengths, kind, longest, data):
    matrix, dense = matrix_of(lengths, num_columns=9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_chunks, "CHUNK_ENTRIES", longest)
        parts = KINDS[kind](matrix)
    replicas = data.draw(st.integers(1, 3))
    x, sound = factors(replicas, 9, 3)
    output, whole = poisoned(replicas, len(lengths), 3)
    deterministic_product(matrix, surrounded(x)[0], parts, output)
    assert_same(output, dense @ sound)
    assert is_untouched(whole)


@kinds
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (4, 3), (0, 0)])
@pytest.mark.usefixtures("poisoned_memory")
def test_matrices_without_entries(shape, kind):
    nothing = torch.zeros(0, device=DEVICE)
    matrix = csr(torch.zeros(shape[0] + 1, device=DEVICE), nothing, nothing, shape)
    for lead in ((), (2,)):
        x = on_device(*lead, shape[1], 3)
        found = deterministic_product(matrix, x, KINDS[kind](matrix))
        assert found.shape == (*lead, shape[0], 3)
        assert not found.any()


def test_no_columns_and_no_rows_wanted():
    matrix, _ = matrix_of()
    found = deterministic_product(matrix, on_device(COLUMNS, 0), KINDS["cut"](matrix))
    assert found.shape == (len(LENGTHS), 0)
    none = torch.zeros(2, 0, dtype=torch.long, device=DEVICE)
    assert product_rows(matrix, on_device(2, COLUMNS, 3), none, None).shape == (2, 0, 3)


def test_rows_that_are_far_apart():
    matrix, dense = matrix_of([1, 0, 1], num_columns=2)
    one = csr(matrix.crow_indices(), matrix.col_indices() - 1, matrix.values(), (3, 1))
    x = on_device(7).as_strided((1, 7), (2**31, 1))
    found = deterministic_product(one, x, KINDS["cut"](one))
    assert_same(found, dense[:, 1:] @ x.cpu().reshape(1, 7))
