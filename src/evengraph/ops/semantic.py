"""Semantic connectivity: propagation over clusters without building them as edges (Eq. 5, 6)."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import normalize

from evengraph.fast.row_chunks import RowChunks, chunk_rows_fixed
from evengraph.ops.sparse import Sparse, csr, has_kernels, linear_map, product, row_entries


class Clusters(NamedTuple):
    """Cluster of each node, prepared for propagation over the clusters.

    Shapes:
        assignment: int64, (N,)
        members: sparse CSR, (K, N), one where a node belongs to a cluster
        share: (K, 1), one over the degree n + 1 of a node in a cluster of n
    """

    assignment: Tensor
    members: Tensor
    share: Tensor
    chunks: RowChunks | None = None  # of members, on a GPU

    def take(self, other: Clusters) -> None:
        """Become other clusters of the same nodes, in the same memory."""
        pairs = [(self.assignment, other.assignment), (self.share, other.share)]
        pairs.append((self.members.crow_indices(), other.members.crow_indices()))
        pairs.append((self.members.col_indices(), other.members.col_indices()))
        if self.chunks is not None and other.chunks is not None:
            pairs += zip(self.chunks[:-1], other.chunks[:-1], strict=True)
        for mine, theirs in pairs:
            mine.copy_(theirs)


def prepare_clusters(assignment: Tensor, num_clusters: int, dtype: torch.dtype) -> Clusters:
    """Sort the nodes by cluster once, so that each propagation is two linear passes."""
    sizes = torch.bincount(assignment, minlength=num_clusters)
    ones = torch.ones(assignment.numel(), dtype=dtype, device=assignment.device)
    if assignment.is_cpu:
        # Converting to CSC is a counting sort, which is linear; torch's sort is not.
        shape = (assignment.numel(), num_clusters)
        rows = np.arange(assignment.numel() + 1)
        by_cluster = sp.csr_matrix((ones.numpy(), assignment.numpy(), rows), shape).tocsc()
        pointers, nodes = torch.from_numpy(by_cluster.indptr), torch.from_numpy(by_cluster.indices)
    else:
        pointers = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        nodes = torch.argsort(assignment, stable=True)
    members = csr(pointers, nodes, ones, (num_clusters, assignment.numel()))
    kernels = has_kernels(assignment.device)
    chunks = chunk_rows_fixed(pointers, assignment.numel()) if kernels else None
    return Clusters(assignment, members, (1 / (sizes + 1).to(dtype)).unsqueeze(1), chunks)


def semantic_propagate(
    x: Tensor, clusters: Tensor | Clusters, nodes: Tensor | None = None
) -> Tensor:
    """Propagate over D^-1/2 (A_sem + I) D^-1/2, where A_sem joins the nodes of a cluster.

    A_sem has ones on its diagonal, as a node shares its own cluster, and the identity is added to
    that. A node in a cluster of n therefore has degree n + 1, and its propagated value is
    (sum of its cluster + its own) / (n + 1). That takes time and memory linear in N x d, where
    the product with A_sem itself takes N^2 / K x d.

    Args:
        x: Values to propagate.
        clusters: Cluster id of each node, or the result of `prepare_clusters`.
        nodes: Return the values of these nodes only; no repeats.

    Shapes:
        x: (N, d), or (R, N, d) with clusters of all R * N nodes
        clusters: (N,)
        nodes: int64, (M,)
        returns: (N, d), or (M, d) with nodes
    """
    if x.dim() == 3:
        return semantic_propagate(x.flatten(0, 1), clusters).view_as(x)
    if isinstance(clusters, Tensor):
        if clusters.shape != x.shape[:1]:
            raise ValueError(
                f"clusters must hold one id for each of the {x.shape[0]} rows of x, "
                f"got shape {tuple(clusters.shape)}."
            )
        num_clusters = int(clusters.max()) + 1 if clusters.numel() else 0
        clusters = prepare_clusters(clusters, num_clusters, x.dtype)
    if not x.numel():
        return x.clone()
    if nodes is None:
        propagate = partial(propagate_clusters, clusters=clusters)
        return linear_map(x, propagate, propagate)  # the matrix is symmetric
    return _propagate_to(x, clusters, nodes)


def propagate_clusters(x: Tensor, clusters: Clusters) -> Tensor:
    """`semantic_propagate` of all nodes, without gradients."""
    assignment, members, share, chunks = clusters
    x = x.contiguous()
    means = product(members, x, chunks).mul_(share)  # (K, d)
    return means.index_select(0, assignment).addcmul_(x, share.index_select(0, assignment))


def _propagate_to(x: Tensor, clusters: Clusters, nodes: Tensor) -> Tensor:
    """Selected rows of the same matrix."""
    assignment, members, share, chunks = clusters
    cluster = assignment.index_select(0, nodes)
    node_share = share.index_select(0, cluster)

    def rows(x: Tensor) -> Tensor:
        sums = product(members, x, chunks).index_select(0, cluster)
        return sums.add_(x.index_select(0, nodes)).mul_(node_share)

    def columns(gradient: Tensor) -> Tensor:
        scaled = gradient * node_share  # (M, d)
        sums = scaled.new_zeros(share.shape[0], scaled.shape[1]).index_add_(0, cluster, scaled)
        return sums.index_select(0, assignment).index_add_(0, nodes, scaled)

    return linear_map(x, rows, columns)


CHUNK = 2**24  # distances in memory at a time


def kmeans(
    x: Tensor | Sparse,
    k: int,
    seed: int,
    *,
    start: Tensor | None = None,
    starts: int = 1,
    max_iterations: int = 100,
    tolerance: float = 1e-4,
) -> Tensor:
    """Assign every row to one of k clusters, minimising squared distances to the means.

    Greedy k-means++ (the best of a few draws each time, as in scikit-learn), then Lloyd's
    iterations until the means hardly move. An empty cluster takes the row farthest from its mean.
    Random numbers depend on the seed only, not on the device.

    Args:
        start: Clusters of an earlier call to start from, instead of k-means++.
        starts: How often to run k-means++ and what follows; the result with the smallest squared
            distances is returned. One start may put most rows into a single cluster where rows are
            sparse and short.
        tolerance: Stop when the squared movement of the means is below this share of the variance.

    Shapes:
        x: (N, d)
        start: int64, (N,)
        returns: int64, (N,), every number from 0 to k - 1 at least once
    """
    num_rows = x.shape[0]
    if not 1 <= k <= num_rows:
        raise ValueError(f"k must lie between 1 and the number of rows, {num_rows}, got {k}.")
    if isinstance(x, Tensor):
        # Distances do not change, and far from the origin rounding errors would dominate.
        x = x - x.mean(0)
    norms = _square_norms(x)
    centre = cluster_means(x, torch.zeros_like(norms, dtype=torch.long), 1)
    variance = float((norms.mean() - centre.square().sum()).clamp(min=0) / x.shape[1])
    smallest_move = tolerance * variance
    if start is not None:
        return _lloyd(x, norms, cluster_means(x, start, k), max_iterations, smallest_move)[0]
    results = (
        _lloyd(x, norms, _plus_plus(x, norms, k, one), max_iterations, smallest_move)
        for one in start_seeds(seed, starts)
    )
    return min(results, key=lambda result: float(result[1]))[0]


def _lloyd(
    x: Tensor | Sparse, norms: Tensor, means: Tensor, max_iterations: int, smallest_move: float
) -> tuple[Tensor, Tensor]:
    """Lloyd's iterations from given means; returns the clusters and the sum of distances."""
    k = means.shape[0]
    assignment, distance = _nearest(x, norms, means)
    for _ in range(max_iterations):
        fill_empty(assignment, distance, k)
        moved = cluster_means(x, assignment, k)
        move = (moved - means).square().sum()
        means, before = moved, assignment
        assignment, distance = _nearest(x, norms, means)
        if move <= smallest_move or torch.equal(before, assignment):
            break
    fill_empty(assignment, distance, k)
    return assignment, distance.double().sum()


def start_seeds(seed: int, starts: int) -> list[int]:
    """A seed for each of several starts, the first of them `seed` itself."""
    stream = torch.Generator().manual_seed(seed)
    others: list[int] = torch.randint(2**31, (starts - 1,), generator=stream).tolist()
    return [seed, *others]


def fill_empty(assignment: Tensor, distance: Tensor, k: int) -> None:
    """Move the row farthest from its mean, of a cluster of several, into each empty cluster."""
    sizes = torch.bincount(assignment, minlength=k)
    for empty in (sizes == 0).nonzero().flatten().tolist():
        far = torch.where(sizes[assignment] > 1, distance, -1).argmax()
        sizes[assignment[far]] -= 1
        sizes[empty] = 1
        assignment[far] = empty
        distance[far] = 0


def cluster_means(x: Tensor | Sparse, assignment: Tensor, k: int) -> Tensor:
    """Mean row of each cluster; zero for an empty one.

    Shapes:
        x: (N, d)
        assignment: int64, (N,)
        returns: (k, d)
    """
    if isinstance(x, Sparse):
        member = torch.zeros((x.shape[0], k), dtype=x.matrix.dtype, device=assignment.device)
        member.scatter_(1, assignment.unsqueeze(1), 1)
        sums = x.transposed_product(member).t().contiguous()
    else:
        clusters = prepare_clusters(assignment, k, x.dtype)
        sums = product(clusters.members, x, clusters.chunks)
    sizes = torch.bincount(assignment, minlength=k).clamp(min=1)
    return sums / sizes.unsqueeze(1)


def unit_rows(x: Tensor | Sparse) -> Tensor | Sparse:
    """Rows scaled to length one, so that clusters group directions; zero rows stay zero."""
    if isinstance(x, Tensor):
        return normalize(x, dim=-1)
    lengths = _square_norms(x).sqrt().clamp(min=torch.finfo(x.matrix.dtype).tiny)
    matrix, transpose = x.matrix, x.transpose
    by_row = matrix.values() / lengths[x.entries[0]]
    by_column = transpose.values() / lengths[transpose.col_indices().long()]
    return Sparse(
        csr(matrix.crow_indices(), matrix.col_indices(), by_row, x.shape),
        csr(transpose.crow_indices(), transpose.col_indices(), by_column, x.shape[::-1]),
    )


def nearest_mean(x: Tensor | Sparse, means: Tensor) -> Tensor:
    """The cluster whose mean is nearest to each row, (N,)."""
    if isinstance(x, Tensor):
        centre = means.mean(0)
        x, means = x - centre, means - centre
    return _nearest(x, _square_norms(x), means)[0]


def _nearest(x: Tensor | Sparse, norms: Tensor, means: Tensor) -> tuple[Tensor, Tensor]:
    """Nearest mean of each row and the squared distance to it."""
    half = means.square().sum(1) / 2
    if isinstance(x, Sparse):
        best = (half - product(x.matrix, means.t().contiguous(), x.chunks)).min(dim=1)
        return best.indices, (norms + 2 * best.values).clamp_(min=0)
    rows = max(1, CHUNK // means.shape[0])
    parts = [
        torch.addmm(half, part, means.t(), alpha=-1).min(dim=1)  # |m|^2 / 2 - x.m, (rows, k)
        for part in x.split(rows)
    ]
    indices = torch.cat([part.indices for part in parts])
    values = torch.cat([part.values for part in parts])
    return indices, (norms + 2 * values).clamp_(min=0)


def _plus_plus(x: Tensor | Sparse, norms: Tensor, k: int, seed: int) -> Tensor:
    """Initial means: rows drawn in proportion to their squared distance from earlier ones."""
    num_rows, device = x.shape[0], norms.device
    trials = 2 + int(math.log(k))
    stream = torch.Generator().manual_seed(seed)  # on the CPU: the same numbers on every device
    draws = torch.rand((k, trials), generator=stream, dtype=torch.float64)
    first = (draws[0, :1] * num_rows).long().to(device)
    selected = [first]
    closest = _distances(x, norms, first).squeeze(1)
    for step in range(1, k):
        mass = closest.double().cpu().cumsum(0)  # not deterministic on a GPU
        tried = torch.searchsorted(mass, draws[step] * mass[-1]).clamp_(max=num_rows - 1)
        tried = tried.to(device)
        candidates = torch.minimum(_distances(x, norms, tried), closest.unsqueeze(1))
        best = candidates.sum(0).argmin().unsqueeze(0)
        closest = candidates.index_select(1, best).squeeze(1)
        selected.append(tried.index_select(0, best))
    return _rows(x, torch.cat(selected))


def _distances(x: Tensor | Sparse, norms: Tensor, rows: Tensor) -> Tensor:
    """Squared distances of all rows to selected ones, (N, number of rows)."""
    others = _rows(x, rows)
    transposed = others.t().contiguous()
    products = product(x.matrix, transposed, x.chunks) if isinstance(x, Sparse) else x @ transposed
    return (norms.unsqueeze(1) + norms[rows] - 2 * products).clamp_(min=0)


def _rows(x: Tensor | Sparse, rows: Tensor) -> Tensor:
    if isinstance(x, Tensor):
        return x.index_select(0, rows)
    owner, positions = row_entries(x.matrix, rows)
    dense = torch.zeros((rows.numel(), x.shape[1]), dtype=x.matrix.dtype, device=rows.device)
    dense[owner, x.matrix.col_indices()[positions].long()] = x.matrix.values()[positions]
    return dense


def _square_norms(x: Tensor | Sparse) -> Tensor:
    if isinstance(x, Tensor):
        return x.square().sum(1)
    matrix = x.matrix
    squares = matrix.values().square()
    squared = csr(matrix.crow_indices(), matrix.col_indices(), squares, x.shape)
    ones = torch.ones((x.shape[1], 1), dtype=matrix.dtype, device=matrix.device)
    return product(squared, ones, x.chunks).squeeze(1)
