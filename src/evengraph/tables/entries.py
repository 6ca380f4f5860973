"""Entries: features that are mostly 0, as the places and values of the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Entries(NamedTuple):
    """Features of one column of a table, (N, F), as its entries other than 0.

    Shapes:
        rows, columns: int64, (E,), no pair twice; values: (E,), or one number for all
    """

    shape: tuple[int, int]
    rows: NDArray[Any]
    columns: NDArray[Any]
    values: NDArray[Any] | float = 1.0

    def dense(self) -> NDArray[np.float32]:
        """The features as an array, (N, F)."""
        features = np.zeros(self.shape, dtype=np.float32)
        fill(features, [self])
        return features


def fill(features: NDArray[np.float32], parts: Iterable[Entries | NDArray[Any]]) -> None:
    """Write parts, (N, .) each, side by side into an array of zeros, (N, F).

    Narrow parts are joined first: a row of features at a time is read into the cache.
    """
    start, narrow = 0, list[NDArray[Any]]()
    for part in parts:
        if not isinstance(part, Entries):
            narrow.append(part)
            continue
        start = _fill_dense(features, start, narrow)
        narrow.clear()
        features[part.rows, start + part.columns] = part.values
        start += part.shape[1]
    _fill_dense(features, start, narrow)


def _fill_dense(features: NDArray[np.float32], start: int, parts: list[NDArray[Any]]) -> int:
    """Write dense parts side by side; returns the column after them."""
    if not parts:
        return start
    joined: NDArray[np.float32] = np.concatenate(parts, axis=1, dtype=np.float32)
    stop: int = start + joined.shape[1]
    features[:, start:stop] = joined
    return stop
