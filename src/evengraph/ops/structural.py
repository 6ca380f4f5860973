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
        memory_limit: Largest size of the matrix in bytes; a larger one is not built to the end.

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
    blocks, entries = [], 0
    for rows in _blocks(walks):
        blocks.append(_weights(looped, rows, alpha))
        entries += blocks[-1].nnz
        if entries * BYTES_PER_ENTRY > memory_limit:
            expected = entries * walks.sum() / walks[: rows[-1] + 1].sum()
            raise MemoryError(
                f"The structural adjacency at alpha={alpha} would hold about {expected:,.0f} "
                f"entries, {expected * BYTES_PER_ENTRY / 2**30:.1f} GiB, over the limit of "
                f"{memory_limit / 2**30:.1f} GiB. Use a smaller alpha or raise memory_limit."
            )
    return sp.vstack(blocks, format="csr") if blocks else matrix


def _blocks(walks: NDArray[np.float64]) -> Iterator[NDArray[np.int64]]:
    """Split rows into runs whose walks fit into one block."""
    total, start = np.cumsum(walks), 0
    while start < walks.size:
        before = total[start - 1] if start else 0.0
        stop = int(np.searchsorted(total, before + BLOCK_ENTRIES, side="right"))
        stop = max(stop, start + 1)
        yield np.arange(start, stop)
        start = stop


def _weights(looped: sp.csr_matrix, rows: NDArray[np.int64], alpha: int) -> sp.csr_matrix:
    """Rows of the matrix: 1 / SPD(i, j).

    The sets of nodes within k steps are nested, so the sum of their indicators for k = 1..alpha
    counts how many of them contain j: alpha + 1 - distance.
    """
    reached = looped[rows]
    # A node is in all alpha sets of its own: start at -alpha to end at zero.
    own = np.full(rows.size, alpha, np.float32)
    total = reached - sp.csr_matrix((own, (np.arange(rows.size), rows)), reached.shape)
    for _ in range(alpha - 1):
        reached = (reached @ looped).tocsc().tocsr()  # sorts indices in linear time
        reached.data.fill(1)
        total = total + reached
    total.eliminate_zeros()
    np.subtract(alpha + 1, total.data, out=total.data)  # the distance
    np.reciprocal(total.data, out=total.data)
    return total
