"""K-means of several sets of rows at once: what `kmeans` does for each, with one set of kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from evengraph.ops.kmeans import _fill_empty
from evengraph.ops.propagate import product
from evengraph.ops.semantic import prepare_clusters
from evengraph.rng import generator

CHUNK = 2**26  # distances held at a time
SCALE = 2.0**40  # shares of a total as whole numbers, whose sums do not depend on their order


def kmeans_replicas(
    x: Tensor,
    ks: Sequence[int],
    *,
    seeds: Sequence[int] | None = None,
    start: Tensor | None = None,
    max_iterations: int = 100,
    tolerance: float = 1e-4,
) -> Tensor:
    """Cluster R sets of rows, each into a number of clusters of its own.

    Args:
        x: The rows of each set.
        ks: Clusters wanted of each.
        seeds: For k-means++; needed without `start`.
        start: Clusters to start from.
        max_iterations: Lloyd's iterations at most.
        tolerance: Stop a set when its means move, in square, less than this share of the variance.

    Shapes:
        x: (R, N, d)
        start, returns: int64, (R, N)
    """
    k = torch.tensor(list(ks), device=x.device)
    x = x - x.mean(1, keepdim=True)
    norms = x.square().sum(2)  # (R, N)
    if start is None:
        assert seeds is not None
        means = _plus_plus(x, norms, ks, seeds)
    else:
        means = _means(x, start, max(ks))
    beyond = torch.arange(max(ks), device=x.device) >= k.unsqueeze(1)  # (R, K), no such cluster
    means = means.masked_fill(beyond.unsqueeze(2), 0.0)
    smallest_move = tolerance * norms.mean(1) / x.shape[2]
    assignment, distance = _nearest(x, norms, means, beyond)
    active = torch.ones_like(k, dtype=torch.bool)
    for _ in range(max_iterations):
        _fill(assignment, distance, ks, beyond)
        moved = _means(x, assignment, max(ks))
        move = (moved - means).square().sum((1, 2))
        means = torch.where(active[:, None, None], moved, means)
        after, after_distance = _nearest(x, norms, means, beyond)
        settled = (move <= smallest_move) | (after == assignment).all(1)
        assignment = torch.where(active.unsqueeze(1), after, assignment)
        distance = torch.where(active.unsqueeze(1), after_distance, distance)
        active = active & ~settled
        if not active.any():
            break
    _fill(assignment, distance, ks, beyond)
    return assignment


def _means(x: Tensor, assignment: Tensor, most: int) -> Tensor:
    """Mean row of each cluster, (R, K, d); zero for one without rows."""
    replicas, _, width = x.shape
    flat = flatten_clusters(assignment, most)
    clusters = prepare_clusters(flat, replicas * most, x.dtype)
    sums = product(clusters.members, x.reshape(-1, width)).view(replicas, most, width)
    sizes = (1 / clusters.share - 1).round().clamp(min=1)
    return sums / sizes.view(replicas, most, 1)


def flatten_clusters(assignment: Tensor, most: int) -> Tensor:
    """Clusters of several sets as clusters of one large set, (R * N,)."""
    first = torch.arange(assignment.shape[0], device=assignment.device).unsqueeze(1) * most
    return (assignment + first).flatten()


def _nearest(x: Tensor, norms: Tensor, means: Tensor, beyond: Tensor) -> tuple[Tensor, Tensor]:
    """Nearest mean of each row and the squared distance to it."""
    half = means.square().sum(2) / 2
    half = half.masked_fill(beyond, torch.inf).unsqueeze(1)  # (R, 1, K)
    rows = max(CHUNK // half.numel(), 1)
    parts = [
        torch.baddbmm(half, part, means.transpose(1, 2), alpha=-1).min(dim=2)
        for part in x.split(rows, dim=1)
    ]
    indices = torch.cat([part.indices for part in parts], dim=1)
    values = torch.cat([part.values for part in parts], dim=1)
    return indices, (norms + 2 * values).clamp_(min=0)


def _fill(assignment: Tensor, distance: Tensor, ks: Sequence[int], beyond: Tensor) -> None:
    """No cluster stays empty; hardly ever is one, so each is filled by itself."""
    sizes = torch.zeros(beyond.shape, dtype=torch.long, device=beyond.device)
    sizes.scatter_add_(1, assignment, torch.ones_like(assignment))
    lacking = ((sizes == 0) & ~beyond).any(1)
    if lacking.any():
        for replica in lacking.nonzero().flatten().tolist():
            _fill_empty(assignment[replica], distance[replica], ks[replica])


def _plus_plus(x: Tensor, norms: Tensor, ks: Sequence[int], seeds: Sequence[int]) -> Tensor:
    """First means of each set, by greedy k-means++, (R, K, d)."""
    (replicas, num_rows, _), most = x.shape, max(ks)
    width = 2 + int(math.log(most))
    draws = torch.zeros(replicas, most, width, dtype=torch.float64)
    for replica, (k, seed) in enumerate(zip(ks, seeds, strict=True)):
        trials = 2 + int(math.log(k))
        own = torch.rand((k, trials), generator=generator(seed), dtype=torch.float64)
        draws[replica, :k, :trials] = own
        draws[replica, :k, trials:] = own[:, :1]  # a draw again: it cannot win against itself
    draws = draws.to(x.device)
    index = torch.arange(replicas, device=x.device)
    first = (draws[:, 0, 0] * num_rows).long()
    chosen = [first]
    closest = _distances(x, norms, first.unsqueeze(1)).squeeze(2)  # (R, N)
    for step in range(1, most):
        total = closest.sum(1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
        mass = (closest.double() / total * SCALE).long().cumsum(1)
        wanted = (draws[:, step] * mass[:, -1:]).long()
        tried = torch.searchsorted(mass, wanted, right=True).clamp_(max=num_rows - 1)
        candidates = torch.minimum(_distances(x, norms, tried), closest.unsqueeze(2))
        best = candidates.sum(1).argmin(1)
        closest = candidates[index, :, best]
        chosen.append(tried[index, best])
    rows = torch.stack(chosen, 1)  # (R, K)
    return x.gather(1, rows.unsqueeze(2).expand(-1, -1, x.shape[2]))


def _distances(x: Tensor, norms: Tensor, rows: Tensor) -> Tensor:
    """Squared distances of all rows of each set to a few of them, (R, N, number of rows)."""
    others = x.gather(1, rows.unsqueeze(2).expand(-1, -1, x.shape[2]))
    products = torch.bmm(x, others.transpose(1, 2))
    own = norms.gather(1, rows).unsqueeze(1)
    return (norms.unsqueeze(2) + own - 2 * products).clamp_(min=0)
