"""Structural connectivity: shortest paths up to alpha as a weighted adjacency (Eq. 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.fast.device_graphs import DevicePaths, adjacency_tensor
from evengraph.fast.thinning import Thinning
from evengraph.ops.sparse import Matrix, adjacency, from_scipy

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
    check_alpha(alpha)
    build = adjacency_tensor if edge_index.is_cuda else adjacency
    matrix = build(edge_index, num_nodes)
    result = path_weights(matrix, alpha, memory_limit)
    if isinstance(result, Tensor):
        return result
    return from_scipy(result, edge_index.device, torch.float32)


def check_alpha(alpha: int) -> None:
    """Raise ValueError for a distance below 1."""
    if alpha < 1:
        raise ValueError(f"alpha must be at least 1, got {alpha}.")


def path_weights(matrix: Matrix, alpha: int, memory_limit: float) -> Matrix:
    """The structural adjacency of an adjacency matrix, of the same type; raises if it is larger."""
    return bounded_path_weights(matrix, alpha, memory_limit, thin=False)[0]


def bounded_path_weights(
    matrix: Matrix, alpha: int, memory_limit: float, *, thin: bool = True
) -> tuple[Matrix, Thinning | None]:
    """`path_weights`, thinned where it would be larger, and how: None where it is not."""
    kind: Any = DevicePaths if isinstance(matrix, Tensor) else HostPaths
    paths, most, thinning = kind(matrix, alpha), memory_limit / BYTES_PER_ENTRY, None
    expected = _expected_entries(paths, most)
    if expected is not None:
        thinning = Thinning.to_fit(paths.walks, paths.direct, most) if thin else None
        if thinning is None:
            raise MemoryError(
                f"The structural adjacency at alpha={alpha} would hold about {expected:,.0f} "
                f"entries, {expected * BYTES_PER_ENTRY / 2**30:.1f} GiB, over the limit of "
                f"{memory_limit / 2**30:.1f} GiB. Use a smaller alpha or raise memory_limit."
            )
    rows = _blocks(paths.walks, np.arange(paths.walks.size))
    return paths.join([paths.weights(block, thinning) for block in rows]), thinning


class HostPaths:
    """Shortest paths of a graph by SciPy, for some rows at a time; `DevicePaths` on a GPU."""

    # `walks` of at most alpha steps from each node: no fewer than the nodes that it reaches

    def __init__(self, matrix: sp.csr_matrix, alpha: int) -> None:
        self.alpha, self.direct = alpha, matrix.nnz
        self.looped = (matrix + sp.identity(matrix.shape[0], np.float32, format="csr")).tocsr()
        self.walks = np.ones(matrix.shape[0])
        for _ in range(alpha):
            self.walks = np.asarray(self.looped @ self.walks)

    def weights(self, rows: NDArray[np.int64], thinning: Thinning | None = None) -> sp.csr_matrix:
        """Rows of the matrix: 1 / SPD(i, j)."""
        nearness = self._nearness(rows)
        np.subtract(self.alpha + 1, nearness.data, out=nearness.data)  # the distance
        np.reciprocal(nearness.data, out=nearness.data)
        if thinning is not None:
            nodes = torch.from_numpy(np.repeat(rows, np.diff(nearness.indptr)))
            columns = torch.from_numpy(nearness.indices).long()
            keep, values = thinning(nodes, columns, torch.from_numpy(nearness.data))
            nearness.data = torch.where(keep, values, 0.0).numpy()
            nearness.eliminate_zeros()
        return nearness

    def count(self, rows: NDArray[np.int64]) -> int:
        """Entries of these rows, which have to be found."""
        return int(self._nearness(rows).nnz)

    def join(self, blocks: Sequence[sp.csr_matrix]) -> sp.csr_matrix:
        """The matrix of consecutive blocks of rows."""
        return sp.vstack(blocks, format="csr") if blocks else self.looped

    def _nearness(self, rows: NDArray[np.int64]) -> sp.csr_matrix:
        """For each node j within alpha steps of a row's node: alpha + 1 - distance.

        The sets of nodes within k steps are nested, so the sum of their indicators for
        k = 1..alpha counts exactly how many of them contain j.
        """
        reached = self.looped[rows]
        diagonal = (np.arange(rows.size), rows)
        # A node is in all alpha sets of its own: start at -alpha to end at zero.
        own = np.full(rows.size, self.alpha, np.float32)
        total = reached - sp.csr_matrix((own, diagonal), reached.shape)
        for _ in range(self.alpha - 1):
            reached = (reached @ self.looped).tocsc().tocsr()  # sorts indices in linear time
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


def _expected_entries(paths: Any, most: float) -> float | None:
    """Count entries in bounded memory: None if there are at most so many, else about how many."""
    if paths.walks.sum() <= most:  # the cheap bound already fits
        return None
    # In random order, the rows counted so far predict the total.
    num_nodes = paths.walks.size
    rows = np.random.default_rng(0).permutation(num_nodes)
    entries = seen = 0
    for block in _blocks(paths.walks, rows):
        entries += paths.count(block)
        seen += block.size
        if entries > most:
            return float(entries * num_nodes / seen)
    return None
