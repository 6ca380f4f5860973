"""Tables of nodes for models that take rows: features, log degree and means over neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

LARGEST = 10.0  # factor of a column of means
TINY = 1e-30  # keeps zero from being divided by zero


def with_log_degree(x: Tensor, matrix: sp.spmatrix) -> Tensor:
    """Append a column, the logarithm of one plus the number of neighbours.

    Shapes:
        x: (N, F)
        returns: (N, F + 1)
    """
    degree = torch.from_numpy(matrix.getnnz(axis=1)).to(x)
    return torch.cat([x, degree.log1p().unsqueeze(1)], dim=1)


def hop_table(
    table: Any,
    mean: sp.csr_matrix,
    nodes: np.ndarray,
    hops: int,
    relations: Sequence[sp.csr_matrix] = (),
) -> tuple[Any, Any]:
    """Rows of some nodes: theirs, the means over neighbours, over their means and so on.

    Columns of means are scaled as in `join_parts`.

    Args:
        table: NumPy array or SciPy matrix, (N, F).
        mean: Averages over neighbours, (N, N).
        nodes: Whose rows to return, (n,).
        hops: How many means.
        relations: Averages over the neighbours in each relation, (N, N).

    Returns:
        The table, (n, (1 + hops + R) F), and the factors of its columns.
    """
    parts, rows = [table[nodes]], mean[nodes]
    apart = [relation[nodes] @ table for relation in relations]
    for hop in range(hops):
        table = mean @ table if hop else table
        parts.append(rows @ table)
    return join_parts([*parts, *apart])


def join_parts(parts: Sequence[Any]) -> tuple[Any, Any]:
    """A table of a node's own columns and of means of these columns, and the factors of all.

    Means vary less than what they are means of. Each column is multiplied with a factor that gives
    it the size (root mean square) of the column it comes from, up to LARGEST.

    Args:
        parts: NumPy arrays or SciPy matrices, (n, F) each, the own columns first.
    """
    sizes = np.stack([_column_sizes(part) for part in parts])
    factors = np.where(sizes > 0, sizes[0] / np.maximum(sizes, sizes[0] / LARGEST + TINY), 1.0)
    factors = factors.ravel().astype(np.float32)
    if sp.issparse(parts[0]):
        return (sp.hstack(parts) @ sp.diags(factors)).tocsr(), factors
    return np.concatenate(parts, axis=1) * factors, factors


def _column_sizes(table: Any) -> np.ndarray:
    """Root mean square of each column."""
    squares = table.power(2) if sp.issparse(table) else table**2
    return np.sqrt(np.asarray(squares.mean(axis=0), dtype=np.float64).ravel())
