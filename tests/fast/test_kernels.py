"""The GPU's sparse products against dense ones."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import pad

from evengraph.core.rng import generator
from evengraph.fast import row_chunks
from evengraph.fast.row_chunks import chunk_rows, chunk_rows_fixed
from evengraph.fast.triton_kernels import deterministic_product
from evengraph.ops.sparse import csr
from small_graphs import normal

pytest.importorskip("triton")

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")  # Triton's interpreter
MARGIN = 2


def surrounded(x):
    """A copy of a tensor in the midst of a larger one of NaN."""
    whole = pad(x, (MARGIN, MARGIN) * x.dim(), value=torch.nan)
    return whole[(slice(MARGIN, -MARGIN),) * x.dim()]


def on_device(*shape):
    return normal(*shape, dtype=torch.float32).to(DEVICE)


def assert_same(found, expected):
    """Equal up to rounding, found on the device and expected on the CPU."""
    expected = expected.to(found.dtype)
    exact = found.dtype == torch.float64
    atol = 1e-10 if exact else 1e-4
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-6 if exact else 1e-4, atol=atol)


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
@pytest.mark.parametrize("width", [1, 5, 64, 130])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.usefixtures("poisoned_memory")
def test_equals_the_dense_product(dtype, width, kind):
    matrix, dense = matrix_of(dtype=dtype)
    x, sound = factors(COLUMNS, width, dtype=dtype)
    chunks = KINDS[kind](matrix)
    found = deterministic_product(matrix, x, chunks)
    assert found.dtype == dtype
    assert_same(found, dense @ sound)
    assert torch.equal(deterministic_product(matrix, x, chunks), found)  # the same bits every time


def test_a_last_axis_that_is_not_contiguous():
    matrix, dense = matrix_of()
    x = on_device(6, COLUMNS).t()
    before = x.clone()
    assert_same(deterministic_product(matrix, x, KINDS["cut"](matrix)), dense @ x.cpu())
    assert torch.equal(x, before)


@settings(max_examples=12)
@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=4),
    st.sampled_from(sorted(KINDS)),
    st.integers(1, 3),
)
def test_any_rows_in_chunks_of_any_length(lengths, kind, longest):
    matrix, dense = matrix_of(lengths, num_columns=9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_chunks, "CHUNK_ENTRIES", longest)
        parts = KINDS[kind](matrix)
    x, sound = factors(9, 3)
    assert_same(deterministic_product(matrix, surrounded(x), parts), dense @ sound)


@kinds
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (4, 3), (0, 0)])
@pytest.mark.usefixtures("poisoned_memory")
def test_matrices_without_entries(shape, kind):
    nothing = torch.zeros(0, device=DEVICE)
    matrix = csr(torch.zeros(shape[0] + 1, device=DEVICE), nothing, nothing, shape)
    found = deterministic_product(matrix, on_device(shape[1], 3), KINDS[kind](matrix))
    assert found.shape == (shape[0], 3)
    assert not found.any()


def test_no_columns():
    matrix, _ = matrix_of()
    found = deterministic_product(matrix, on_device(COLUMNS, 0), KINDS["cut"](matrix))
    assert found.shape == (len(LENGTHS), 0)


def test_rows_that_are_far_apart():
    matrix, dense = matrix_of([1, 0, 1], num_columns=2)
    one = csr(matrix.crow_indices(), matrix.col_indices() - 1, matrix.values(), (3, 1))
    x = on_device(7).as_strided((1, 7), (2**31, 1))
    found = deterministic_product(one, x, KINDS["cut"](one))
    assert_same(found, dense[:, 1:] @ x.cpu().reshape(1, 7))
