"""Rows of a matrix on disk are those of the matrix in memory."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evengraph.disk.propagation import ENTRY_BYTES, Operator, log_degrees
from evengraph.ops.propagate import neighbour_means, normalise
from evengraph.ops.sparse import to_scipy
from graphs_on_disk import Arrays, random_matrix

KINDS = ("symmetric", "row", "mean", "mean transposed")


def in_memory(matrix, kind):
    """The oracle: float32, dense."""
    if kind in ("symmetric", "row"):
        return normalise(matrix, kind).astype(np.float32).toarray()
    means = to_scipy(neighbour_means(matrix, torch.device("cpu")).matrix).toarray()
    return means if kind == "mean" else means.T


def on_disk(operator, memory):
    parts = [to_scipy(operator.block(rows)).toarray() for rows in operator.blocks(memory)]
    return np.concatenate(parts)


@pytest.mark.parametrize("kind", KINDS)
@given(nodes=st.integers(1, 30), seed=st.integers(0, 99), entries=st.integers(1, 200))
@settings(max_examples=20)
def test_blocks_hold_the_bits_of_the_matrix(kind, nodes, seed, entries):
    matrix = random_matrix(nodes, 4, seed)
    found = on_disk(Operator(Arrays(matrix), kind), entries * ENTRY_BYTES)
    assert np.array_equal(found, in_memory(matrix, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_divided_by_their_mean(kind):
    matrix = random_matrix(40, 5, seed=1, weighted=True)
    scaled = (matrix / matrix.data.mean(dtype=np.float64)).astype(np.float32).tocsr()
    found = on_disk(Operator(Arrays(matrix, weighted=True), kind), 20 * ENTRY_BYTES)
    np.testing.assert_allclose(found, in_memory(scaled, kind), rtol=1e-6)


def test_blocks_respect_the_limit_and_cover_all_rows():
    operator = Operator(Arrays(random_matrix(50, 6, seed=2)), "symmetric")
    blocks = list(operator.blocks(30 * ENTRY_BYTES))
    assert [block.start for block in blocks[1:]] == [block.stop for block in blocks[:-1]]
    assert (blocks[0].start, blocks[-1].stop) == (0, 50)
    sizes = [operator.block(rows)._nnz() for rows in blocks]
    assert max(sizes) <= 30
    assert sum(sizes) == operator.num_entries


def test_log_degrees():
    matrix = random_matrix(10, 3, seed=4)
    expected = np.log1p(matrix.getnnz(axis=1))
    np.testing.assert_allclose(log_degrees(Arrays(matrix)), expected, rtol=1e-6)
