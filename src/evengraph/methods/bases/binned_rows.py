"""Rows on disk in bins: one byte per value in a file, for trees that compare bins alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.disk.propagation import RowBlocks
from evengraph.ops.trees import coarsen

COLUMNS = 16  # that are sorted at a time


class BinnedRows(NamedTuple):
    """Bins of rows, and the thresholds between them.

    Shapes:
        codes: uint8, (n, F), in the order of Fortran, mapped from a file
        thresholds: float64, one array per column, ascending; a value up to the first is in bin 0
    """

    codes: NDArray[np.uint8]
    thresholds: list[NDArray[np.float64]]


def bin_rows(rows: RowBlocks, most: int, sample: int, path: Path) -> BinnedRows:
    """Write the bins of rows to a file, in one pass.

    Args:
        rows: The rows.
        most: The largest number of bins of a column, at most 256.
        sample: Rows that thresholds are computed from; all of them if there are no more.
        path: The file.
    """
    thresholds = bin_thresholds(rows.sample(sample), most)
    padded = torch.full((len(thresholds), most - 1), torch.inf, dtype=torch.float64)
    for column, some in enumerate(thresholds):
        padded[column, : len(some)] = torch.from_numpy(some)
    count, width = rows.shape
    codes: NDArray[Any] = np.memmap(path, np.uint8, "w+", shape=(width, count))
    for index, block in rows:
        values = block.t().double().contiguous()
        codes[:, index] = torch.searchsorted(padded, values).to(torch.uint8).numpy()
    return BinnedRows(codes.T, thresholds)


def bin_thresholds(x: Tensor, most: int) -> list[NDArray[np.float64]]:
    """Thresholds halfway between the values of each column after `coarsen`."""
    thresholds = []
    for some in x.split(COLUMNS, dim=1):
        for column in coarsen(some, most).double().unbind(dim=1):
            values = column.unique().numpy()
            thresholds.append((values[:-1] + values[1:]) / 2)
    return thresholds
