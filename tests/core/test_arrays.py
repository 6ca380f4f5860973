"""Functions on NumPy arrays, against NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.arrays import sorted_unique


@given(st.lists(st.integers(-5, 5)))
def test_sorted_unique_equals_numpy(values):
    codes = np.array(values, dtype=np.int64)
    found = sorted_unique(codes)
    assert found.dtype == np.int64
    assert found.tolist() == np.unique(codes).tolist()
    assert codes.tolist() == values
