"""Structural connectivity: shortest paths up to alpha as a weighted adjacency (Eq. 1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from evengraph.ops.propagate import adjacency, from_scipy

BYTES_PER_ENTRY = 8  # a 32-bit column index and a 32-bit weight
BLOCK_ENTRIES = 20_000_000  # what one block of rows may reach before duplicates are merged


def structural_adjacency(
    edge_index: Tensor, num_nodes: int, alpha: int, *, memory_limit: float = 4 * 2**30
) -> Tensor:
    """Connect every two nodes at most alpha steps apart, with weight 1 / distance.

    The distance from i to j follows the direction of the edges; an undirected graph lists each
    edge both ways, and the matrix is then symmetric. Self-loops and repeated edges change nothing.

    Args:
        edge_index: Edges as (source, target) columns.
        num_nodes: Number of nodes, isolated ones included.
        alpha: Longest distance that still connects.
        memory_limit: Bytes that the matrix may take; a larger one is refused before it is built.

    Shapes:
        edge_index: (2, E)
        returns: sparse CSR, (N, N)
    """
    if alpha < 1:
        raise ValueError(f"alpha must be at least 1, got {alpha}.")
    graph = adjacency(edge_index, num_nodes)
    _refuse_if_large(graph, alpha, memory_limit)
    blocks = [_weights(graph, rows, alpha) for rows in _blocks(graph, np.arange(num_nodes), alpha)]
    matrix = sp.vstack(blocks, format="csr") if blocks else graph
    return from_scipy(matrix, edge_index.device, torch.float32)


def _weights(graph: sp.csr_matrix, rows: np.ndarray, alpha: int) -> sp.csr_matrix:
    """Rows of the matrix: 1 / SPD(i, j)."""
    nearness = _nearness(graph, rows, alpha)
    nearness.data = (1.0 / (alpha + 1 - nearness.data)).astype(np.float32)
    return nearness


def _nearness(graph: sp.csr_matrix, rows: np.ndarray, alpha: int) -> sp.csr_matrix:
    """For each node j within alpha steps of a row's node: alpha + 1 - distance.

    The nodes within k steps are nested in k, so adding up their indicators for k = 1..alpha
    counts, exactly and in whole numbers, how many of the rounds j was in.
    """
    own = sp.csr_matrix(
        (np.ones(rows.size, dtype=np.float32), (np.arange(rows.size), rows)),
        shape=(rows.size, graph.shape[0]),
    )
    reached, total = own, None
    for _ in range(alpha):
        reached = reached @ graph + reached
        reached.data[:] = 1
        total = reached if total is None else total + reached
    nearness = total - alpha * own  # a node is in every round of its own; drop it
    nearness.eliminate_zeros()
    return nearness


def _blocks(graph: sp.csr_matrix, rows: np.ndarray, alpha: int) -> Iterator[np.ndarray]:
    """Cut rows into runs whose walks of length alpha fit into one block."""
    walks = np.cumsum(_walks(graph, alpha)[rows])
    start = 0
    while start < rows.size:
        before = walks[start - 1] if start else 0.0
        stop = int(np.searchsorted(walks, before + BLOCK_ENTRIES, side="right"))
        stop = max(stop, start + 1)
        yield rows[start:stop]
        start = stop


def _walks(graph: sp.csr_matrix, alpha: int) -> np.ndarray:
    """How many walks of at most alpha steps leave each node: a bound on what it reaches."""
    count = np.ones(graph.shape[0])
    for _ in range(alpha):
        count = graph @ count + count
    return np.asarray(count)


def _refuse_if_large(graph: sp.csr_matrix, alpha: int, memory_limit: float) -> None:
    """Count entries, in bounded memory, and raise when there are too many."""
    most = memory_limit / BYTES_PER_ENTRY
    if _walks(graph, alpha).sum() <= most:  # the cheap bound already fits
        return
    # In random order, the rows seen so far tell the size of the rest.
    num_nodes = graph.shape[0]
    rows = np.random.default_rng(0).permutation(num_nodes)
    entries = seen = 0
    for block in _blocks(graph, rows, alpha):
        entries += _nearness(graph, block, alpha).nnz
        seen += block.size
        if entries > most:
            expected = entries * num_nodes / seen
            raise MemoryError(
                f"The structural adjacency at alpha={alpha} would hold about {expected:,.0f} "
                f"entries, {expected * BYTES_PER_ENTRY / 2**30:.1f} GiB, over the limit of "
                f"{memory_limit / 2**30:.1f} GiB. Use a smaller alpha or raise memory_limit."
            )
