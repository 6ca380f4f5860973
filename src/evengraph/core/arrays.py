"""Functions on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def sorted_unique(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct values, ascending; for millions of integers several times faster than NumPy."""
    codes = np.sort(codes)
    first = np.ones(len(codes), dtype=np.bool_)
    first[1:] = codes[1:] != codes[:-1]
    return codes[first]


def csr_matrix(parts: Sequence[Any], name: str) -> Any:
    """A SciPy CSR matrix from data, indices, indptr and shape; ValueError if they do not fit.

    SciPy trusts its parts and writes beyond its memory if they are wrong.
    """
    from scipy.sparse import csr_array

    data, indices, indptr, shape = parts
    sides = _integers(shape, f"{name}_shape").tolist()
    indices, indptr = _integers(indices, f"{name}_indices"), _integers(indptr, f"{name}_indptr")
    data = np.asarray(data)
    if data.ndim != 1 or data.dtype.kind not in "biuf":
        raise ValueError(f"{name}_data must be one row of numbers, got {_describe(data)}")
    if len(sides) != 2 or min(sides) < 0:
        raise ValueError(f"{name}_shape must be two numbers from 0 on, got {sides[:9]}")
    rows, columns = sides
    ends = indptr[1:]
    if len(indptr) != rows + 1 or indptr[0] != 0 or (ends < indptr[:-1]).any():
        raise ValueError(f"{name}_indptr must be {rows + 1} numbers from 0 on that never fall")
    stored = int(indptr[-1])
    if not stored <= min(len(indices), len(data)):
        raise ValueError(
            f"{name}_indptr ends at {stored}, beyond the {len(data)} values in {name}_data and "
            f"{len(indices)} in {name}_indices"
        )
    indices, data = indices[:stored], data[:stored]
    if stored and not 0 <= int(indices.min()) <= int(indices.max()) < columns:
        raise ValueError(
            f"{name}_indices must lie between 0 and {columns - 1}, got {int(indices.min())} to "
            f"{int(indices.max())}"
        )
    return csr_array((data, indices, indptr), shape=(rows, columns))


def _integers(values: Any, name: str) -> NDArray[np.int64]:
    """One row of integers that fit 64 bits."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be one row of integers, got {_describe(array)}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must be below 2^63, got {array.max()}")
    return array.astype(np.int64)


def _describe(array: NDArray[Any]) -> str:
    return f"{array.dtype} of shape {array.shape}"
