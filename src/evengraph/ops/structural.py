"""Structural connectivity: shortest paths up to alpha as a weighted adjacency (Eq. 1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.ops.sparse import adjacency, from_scipy

BYTES_PER_ENTRY = 8  # a 32-bit column index and a 32-bit weight
BLOCK_ENTRIES = 20_000_000  # walks of one block of rows, before duplicates are merged


def structural_adjacency(
    edge_index: Tensor, num_nodes: int, alpha: int, *, memory_limit: float = 4 * 2**30
) -> Tensor:
    """Connect all nodes at most alpha steps apart, with weight 1 / distance.

    The distance from i to j follows the direction of the edges; an undirected graph lists each
    edge in both directions, and the matrix is then symmetric. Self-loops and repeated edges are
    ignored.

    Args:
        num_nodes: Number of nodes, isolated ones included.
        memory_limit: Largest size of the matrix in bytes; checked before it is built.

    Shapes:
        edge_index: (2, E)
        returns: sparse CSR, (N, N)
    """
    if alpha < 1:
        raise ValueError(f"alpha must be at least 1, got {alpha}.")
    paths = path_weights(adjacency(edge_index, num_nodes), alpha, memory_limit)
    return from_scipy(paths, edge_index.device, torch.float32)


def path_weights(matrix: sp.csr_matrix, alpha: int, memory_limit: float) -> sp.csr_matrix:
    """The structural adjacency of an adjacency matrix; raises MemoryError if it is larger."""
    looped = (matrix + sp.identity(matrix.shape[0], np.float32, format="csr")).tocsr()
    walks = np.ones(matrix.shape[0])  # of at most alpha steps: no fewer than the nodes reached
    for _ in range(alpha):
        walks = np.asarray(looped @ walks)
    expected = _expected_entries(looped, walks, alpha, memory_limit / BYTES_PER_ENTRY)
    if expected is not None:
        raise MemoryError(
            f"The structural adjacency at alpha={alpha} would hold about {expected:,.0f} "
            f"entries, {expected * BYTES_PER_ENTRY / 2**30:.1f} GiB, over the limit of "
            f"{memory_limit / 2**30:.1f} GiB. Use a smaller alpha or raise memory_limit."
        )
    blocks = [_weights(looped, rows, alpha) for rows in _blocks(walks, np.arange(walks.size))]
    return sp.vstack(blocks, format="csr") if blocks else matrix


def _weights(looped: sp.csr_matrix, rows: NDArray[np.int64], alpha: int) -> sp.csr_matrix:
    """Rows of the matrix: 1 / SPD(i, j)."""
    nearness = _nearness(looped, rows, alpha)
    np.subtract(alpha + 1, nearness.data, out=nearness.data)  # the distance
    np.reciprocal(nearness.data, out=nearness.data)
    return nearness


def _nearness(looped: sp.csr_matrix, rows: NDArray[np.int64], alpha: int) -> sp.csr_matrix:
    """For each node j within alpha steps of a row's node: alpha + 1 - distance.

    The sets of nodes within k steps are nested, so the sum of their indicators for
    k = 1..alpha counts exactly how many of them contain j.
    """
    reached = looped[rows]
    diagonal = (np.arange(rows.size), rows)
    # A node is in all alpha sets of its own: start at -alpha to end at zero.
    own = np.full(rows.size, alpha, np.float32)
    total = reached - sp.csr_matrix((own, diagonal), reached.shape)
    for _ in range(alpha - 1):
        reached = (reached @ looped).tocsc().tocsr()  # sorts indices in linear time
        reached.data.fill(1)
        total = total + reached
    total.eliminate_zeros()
    return total


def _blocks(walks: NDArray[np.float64], rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Split rows into runs whose walks fit into one block."""
    total = np.cumsum(walks[rows])
    start = 0
    while start < rows.size:
        before = total[start - 1] if start else 0.0
        stop = int(np.searchsorted(total, before + BLOCK_ENTRIES, side="right"))
        stop = max(stop, start + 1)
        yield rows[start:stop]
        start = stop


def _expected_entries(
    looped: sp.csr_matrix, walks: NDArray[np.float64], alpha: int, most: float
) -> float | None:
    """Count entries in bounded memory: None if there are at most so many, else about how many."""
    if walks.sum() <= most:  # the cheap bound already fits
        return None
    # In random order, the rows counted so far predict the total.
    num_nodes = walks.size
    rows = np.random.default_rng(0).permutation(num_nodes)
    entries = seen = 0
    for block in _blocks(walks, rows):
        entries += _nearness(looped, block, alpha).nnz
        seen += block.size
        if entries > most:
            return float(entries * num_nodes / seen)
    return None
