"""Tables of nodes: log degree, means over neighbours, and their sizes."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from evengraph.ops.features import LARGEST_FACTOR, hop_table, join_parts, with_log_degree

PATH = sp.csr_matrix(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
MEAN = sp.csr_matrix(np.array([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]], dtype=np.float32))


def test_the_degree_is_the_last_column():
    found = with_log_degree(torch.zeros(3, 2), PATH)
    torch.testing.assert_close(found[:, 2], torch.tensor([1.0, 2, 1]).log1p())
    assert found.shape == (3, 3)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_rows_are_own_values_then_means_times_their_factors(kind):
    x = np.array([[4, 0], [2, 0], [0, 8]], dtype=np.float32)
    nodes = np.array([0, 1])
    table, factors = hop_table(kind(x), MEAN, nodes, 2)
    dense = MEAN.toarray()
    means = np.concatenate([x, dense @ x, dense @ dense @ x], axis=1)[nodes]
    plain = table.toarray() if sp.issparse(table) else table
    np.testing.assert_allclose(plain, means * factors, rtol=1e-6)
    sizes = np.sqrt((plain**2).mean(0)).reshape(3, 2)
    np.testing.assert_allclose(sizes[1:, 0], sizes[0, 0], rtol=1e-6)
    assert factors[:2].tolist() == [1, 1]


def test_factors_are_bounded():
    x = np.array([[1000], [0.001], [1000]], dtype=np.float32)
    _, factors = hop_table(x, MEAN, np.array([0, 2]), 1)
    assert factors.tolist() == pytest.approx([1, LARGEST_FACTOR], rel=1e-3)
    _, factors = hop_table(np.zeros((3, 1), np.float32), MEAN, np.arange(3), 1)
    assert factors.tolist() == [1, 1]


def test_small_columns_get_the_size_of_the_own_column():
    own, mean = np.array([[0.2], [0.4]]), np.array([[0.1], [0.1]])
    _, factors = join_parts([own, mean])
    assert factors == pytest.approx([1.0, np.sqrt(0.1) / 0.1], rel=1e-5)
