"""Structural connectivity: shortest paths up to alpha as a weighted adjacency (Eq. 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
    check_alpha(alpha)
    paths = path_weights(adjacency(edge_index, num_nodes), alpha, memory_limit)
    return from_scipy(paths, edge_index.device, torch.float32)


def check_alpha(alpha: int) -> None:
    """Raise ValueError for a distance below 1."""
    if alpha < 1:
        raise ValueError(f"alpha must be at least 1, got {alpha}.")


def path_weights(matrix: sp.csr_matrix, alpha: int, memory_limit: float) -> sp.csr_matrix:
    """The structural adjacency of an adjacency matrix; raises if it is larger."""
    return bounded_path_weights(matrix, alpha, memory_limit, thin=False)[0]


def bounded_path_weights(
    matrix: sp.csr_matrix, alpha: int, memory_limit: float, *, thin: bool = True
) -> tuple[sp.csr_matrix, Thinning | None]:
    """`path_weights`, thinned where it would be larger, and how: None where it is not."""
    paths, most, thinning = Paths(matrix, alpha), memory_limit / BYTES_PER_ENTRY, None
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
    blocks = [paths.weights(block, thinning) for block in rows]
    return sp.vstack(blocks, format="csr") if blocks else matrix, thinning


class Paths:
    """Shortest paths of a graph, for some rows at a time."""

    # `walks` of at most alpha steps from each node: no fewer than the nodes that it reaches

    def __init__(self, matrix: sp.csr_matrix, alpha: int) -> None:
        self.alpha, self.direct = alpha, matrix.nnz
        self.looped = (matrix + sp.identity(matrix.shape[0], np.float32, format="csr")).tocsr()
        self.walks = np.ones(matrix.shape[0])
        for _ in range(alpha):
            self.walks = np.asarray(self.looped @ self.walks)

    def weights(self, rows: NDArray[np.int64], thinning: Thinning | None = None) -> sp.csr_matrix:
        """Rows of the matrix: 1 / SPD(i, j)."""
        nearness = self.nearness(rows)
        np.subtract(self.alpha + 1, nearness.data, out=nearness.data)  # the distance
        np.reciprocal(nearness.data, out=nearness.data)
        if thinning is not None:
            nodes = np.repeat(rows, np.diff(nearness.indptr))
            nearness.data = thinning(nodes, nearness.indices.astype(np.int64), nearness.data)
            nearness.eliminate_zeros()
        return nearness

    def nearness(self, rows: NDArray[np.int64]) -> sp.csr_matrix:
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


def _expected_entries(paths: Paths, most: float) -> float | None:
    """Count entries in bounded memory: None if there are at most so many, else about how many."""
    if paths.walks.sum() <= most:  # the cheap bound already fits
        return None
    # In random order, the rows counted so far predict the total.
    num_nodes = paths.walks.size
    rows = np.random.default_rng(0).permutation(num_nodes)
    entries = seen = 0
    for block in _blocks(paths.walks, rows):
        entries += paths.nearness(block).nnz
        seen += block.size
        if entries > most:
            return float(entries * num_nodes / seen)
    return None


@dataclass(frozen=True, eq=False)
class Thinning:
    """Keep so many distant nodes per node, on average and at most, with larger weights.

    A pair is kept with the probability `limit` over the number of walks from its end with more of
    them, and its weight is divided by that probability: the expectation of every entry is its
    weight. Whether it is kept depends on its two nodes alone, so the matrix stays symmetric. Direct
    neighbours are all kept.
    """

    walks: NDArray[np.float64]  # from each node, at least the nodes that it reaches
    limit: int

    @classmethod
    def to_fit(cls, walks: NDArray[np.float64], direct: int, most: float) -> Thinning | None:
        """The thinning with the largest limit for `most` entries; None if none fits."""
        low, high = 0, max(int(most), 1)
        while low < high:
            limit = (low + high + 1) // 2
            if direct + np.minimum(walks, limit).sum() <= most:
                low = limit
            else:
                high = limit - 1
        return cls(walks, low) if low else None

    def __call__(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64], weights: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """The weights of entries, (E,), zero of those to drop; of direct neighbours they are 1."""
        share = self.limit / np.maximum(self.walks[rows], self.walks[columns])
        share = np.where(weights < 1, np.minimum(share, 1.0), 1.0)
        first, second = np.minimum(rows, columns), np.maximum(rows, columns)
        keep = uniform(first * self.walks.size + second) < share
        return np.where(keep, weights / share, 0.0).astype(np.float32)


def uniform(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """A number in [0, 1) for each integer (splitmix64)."""
    mixed = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed = (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)
    return mixed.astype(np.float64) * 2.0**-53
