"""Functions on NumPy arrays, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.arrays import csr_matrix, sorted_unique


@given(st.lists(st.integers(-5, 5)))
def test_sorted_unique_equals_numpy(values):
    codes = np.array(values, dtype=np.int64)
    found = sorted_unique(codes)
    assert found.dtype == np.int64
    assert found.tolist() == np.unique(codes).tolist()
    assert codes.tolist() == values


PARTS = {"data": [1.0, 2.0], "indices": [0, 2], "indptr": [0, 1, 2], "shape": [2, 3]}


def matrix(**changes):
    return csr_matrix([np.array(part) for part in (PARTS | changes).values()], "adj")


def test_csr_parts_make_a_matrix():
    assert matrix().toarray().tolist() == [[1, 0, 0], [0, 0, 2]]
    assert matrix(data=[1.0, 2.0, 9.0], indices=[0, 2, 99]).nnz == 2  # spare memory of SciPy


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": [0, 3]}, "adj_indices must lie between 0 and 2, got 0 to 3"),
        ({"indices": [0, 2**31]}, "adj_indices must lie between 0 and 2"),
        ({"indices": [-1, 2]}, "adj_indices must lie between 0 and 2, got -1 to 2"),
        ({"indices": np.array([0, 2**63], dtype=np.uint64)}, r"adj_indices must be below 2\^63"),
        ({"indices": [0.0, 2.0]}, "adj_indices must be one row of integers, got float64"),
        ({"indptr": [0, 2, 1]}, "adj_indptr must be 3 numbers from 0 on that never fall"),
        ({"indptr": [0, -5, 2]}, "adj_indptr must be 3 numbers"),
        ({"indptr": [1, 1, 2]}, "adj_indptr must be 3 numbers"),
        ({"indptr": [0, 2]}, "adj_indptr must be 3 numbers"),
        ({"indptr": []}, "adj_indptr must be one row of integers"),
        ({"indptr": [0, 1, 1000]}, "adj_indptr ends at 1000, beyond the 2 values"),
        ({"data": [1.0]}, "adj_indptr ends at 2, beyond the 1 values in adj_data"),
        ({"data": ["a", "b"]}, "adj_data must be one row of numbers"),
        ({"shape": [2]}, "adj_shape must be two numbers from 0 on"),
        ({"shape": [-2, 3]}, "adj_shape must be two numbers from 0 on"),
        ({"shape": 7}, "adj_shape must be one row of integers"),
    ],
)
def test_csr_parts_that_would_reach_beyond_their_memory(changes, message):
    with pytest.raises(ValueError, match=message):
        matrix(**changes)
