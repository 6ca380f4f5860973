"""Entries: sparse and dense parts side by side are one array."""

import numpy as np

from evengraph.tables.text import Entries, fill


def test_parts_are_written_side_by_side():
    narrow = [np.array([[1.0], [2.0]]), np.array([[3], [4]])]
    sparse = Entries((2, 3), np.array([1, 0]), np.array([2, 0]), np.array([5.0, 6.0]))
    flags = Entries((2, 2), np.array([1]), np.array([1]))
    features = np.zeros((2, 8), dtype=np.float32)
    fill(features, [*narrow, sparse, flags, np.array([[7], [8]])])
    assert features.tolist() == [[1, 3, 6, 0, 0, 0, 0, 7], [2, 4, 0, 0, 5, 0, 1, 8]]


def test_entries_as_an_array():
    part = Entries((2, 2), np.array([0]), np.array([1]))
    assert part.dense().tolist() == [[0, 1], [0, 0]]
    assert part.dense().dtype == np.float32
