"""Features from the edges alone: degree, PageRank, clustering coefficient; nothing dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]

STRUCTURAL = ("log_degree", "log_pagerank", "clustering")
DAMPING = 0.85
BLOCK_SIZE = 20_000_000
"""Number of products held in memory at a time while triangles are counted."""


def structural_features(edge_index: Tensor, num_nodes: int) -> Floats:
    """Log degree, log PageRank and clustering coefficient of every node.

    PageRank is multiplied by N, so that graphs of different sizes are comparable.

    Shapes:
        edge_index: (2, E), both directions of every edge, no repeats, no self-loops
        returns: (N, 3)
    """
    source, target = edge_index.cpu().numpy()
    ones = np.ones(len(source))
    adjacency = sp.csr_array((ones, (source, target)), shape=(num_nodes, num_nodes))
    degree = np.bincount(source, minlength=num_nodes).astype(np.float64)
    possible = degree * (degree - 1) / 2
    clustering = triangles(adjacency) / np.maximum(possible, 1)
    rank = num_nodes * pagerank(adjacency)
    return np.stack([np.log1p(degree), np.log(rank), clustering], axis=1)


def pagerank(adjacency: Any, tolerance: float = 1e-12, max_steps: int = 200) -> Floats:
    """PageRank of every node, summing to 1, (N,)."""
    num_nodes = adjacency.shape[0]
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    isolated = degree == 0  # the random walk continues at any node
    share = 1 / np.where(isolated, 1, degree)
    rank = np.full(num_nodes, 1 / num_nodes)
    for _ in range(max_steps):
        moved = adjacency.T @ (rank * share) + rank[isolated].sum() / num_nodes
        previous, rank = rank, DAMPING * moved + (1 - DAMPING) / num_nodes
        if np.abs(rank - previous).sum() < tolerance:
            break
    return rank


def triangles(adjacency: Any) -> Floats:
    """Number of triangles that contain each node, (N,).

    Every edge is directed at its end of higher degree, so that even a hub has few outgoing edges.
    """
    num_nodes = adjacency.shape[0]
    degree = np.diff(adjacency.indptr)
    rank = np.empty(num_nodes, dtype=np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(num_nodes)
    edges = adjacency.tocoo()
    upward = rank[edges.row] < rank[edges.col]
    shape = (num_nodes, num_nodes)
    up = sp.csr_array((edges.data[upward], (edges.row[upward], edges.col[upward])), shape=shape)
    count = np.zeros(num_nodes)
    # a triangle u -> v -> w, u -> w: the first product counts it at u and w, the second at v
    for rows, closed in _closed_paths(up, up):
        count[rows] += np.asarray(closed.sum(axis=1)).ravel()
        count += np.asarray(closed.sum(axis=0)).ravel()
    for rows, closed in _closed_paths(up.T.tocsr(), up):
        count[rows] += np.asarray(closed.sum(axis=1)).ravel()
    return count


def _closed_paths(left: Any, up: Any) -> Any:
    """Yield blocks of rows of (left @ up), restricted to the edges of `up`."""
    work = np.cumsum(left @ np.diff(up.indptr).astype(np.float64))
    start = 0
    while start < up.shape[0]:
        done = work[start - 1] if start else 0.0
        stop = max(int(np.searchsorted(work, done + BLOCK_SIZE, side="right")), start + 1)
        rows = slice(start, stop)
        yield rows, (left[rows] @ up).multiply(up[rows]).tocsr()
        start = stop
