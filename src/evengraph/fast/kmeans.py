"""K-means of several sets of rows at once, with the same launches as for one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from evengraph.core.rng import generator
from evengraph.ops.semantic import fill_empty, start_seeds

CHUNK = 2**26  # distances in memory at a time
SCALE = 2.0**40  # shares of a total as integers, whose sums do not depend on the order


def batched_kmeans(
    x: Tensor,
    k: int,
    *,
    seeds: Sequence[int],
    start: Tensor | None = None,
    starts: int = 1,
    max_iterations: int = 100,
    tolerance: float = 1e-4,
) -> Tensor:
    """Cluster R sets of rows, (R, N, d), like `kmeans`."""
    x = x - x.mean(1, keepdim=True)
    norms = x.square().sum(2)  # (R, N)
    limits = tolerance * norms.mean(1) / x.shape[2], max_iterations
    if start is not None:
        return _lloyd(x, norms, _means(x, start, k), *limits)[0]
    results, totals = [], []
    for numbers in zip(*(start_seeds(seed, starts) for seed in seeds), strict=True):
        result, distance = _lloyd(x, norms, _plus_plus(x, norms, k, numbers), *limits)
        results.append(result)
        totals.append(distance.double().sum(1))
    best = torch.stack(totals).argmin(0)  # (R,)
    return torch.stack(results)[best, torch.arange(x.shape[0], device=x.device)]


def _lloyd(
    x: Tensor, norms: Tensor, means: Tensor, smallest_move: Tensor, max_iterations: int
) -> tuple[Tensor, Tensor]:
    """Lloyd's iterations from given means: clusters and squared distances of all sets, (R, N)."""
    assignment, distance = _nearest(x, norms, means)
    moving = torch.ones_like(smallest_move, dtype=torch.bool)
    for _ in range(max_iterations):
        _fill(assignment, distance, means.shape[1])
        moved = _means(x, assignment, means.shape[1])
        move = (moved - means).square().sum((1, 2))
        after, further = _nearest(x, norms, moved)
        settled = (move <= smallest_move) | (after == assignment).all(1)
        which = moving.unsqueeze(1)  # sets that have settled before stay as they are
        assignment = torch.where(which, after, assignment)
        distance, means = torch.where(which, further, distance), moved
        moving &= ~settled
        if not moving.any():
            break
    _fill(assignment, distance, means.shape[1])
    return assignment, distance


def _means(x: Tensor, assignment: Tensor, k: int) -> Tensor:
    """Mean row of each cluster, (R, K, d); zero for one without rows."""
    # dense products need ten times the arithmetic of sorting rows by cluster, but few launches
    sums, sizes = x.new_zeros(len(x), k, x.shape[2]), _sizes(assignment, k)
    rows = max(CHUNK // sizes.numel(), 1)
    for part, ids in zip(x.split(rows, dim=1), assignment.split(rows, dim=1), strict=True):
        member = x.new_zeros(*ids.shape, k).scatter_(2, ids.unsqueeze(2), 1.0)
        sums.baddbmm_(member.transpose(1, 2), part)
    return sums / sizes.clamp(min=1).unsqueeze(2)


def _sizes(assignment: Tensor, k: int) -> Tensor:
    sizes = assignment.new_zeros(len(assignment), k)
    return sizes.scatter_add_(1, assignment, torch.ones_like(assignment))


def _nearest(x: Tensor, norms: Tensor, means: Tensor) -> tuple[Tensor, Tensor]:
    half = (means.square().sum(2) / 2).unsqueeze(1)  # (R, 1, K)
    rows = max(CHUNK // half.numel(), 1)
    parts = [
        torch.baddbmm(half, part, means.transpose(1, 2), alpha=-1).min(dim=2)
        for part in x.split(rows, dim=1)
    ]
    values, indices = (torch.cat(some, dim=1) for some in zip(*parts, strict=True))
    return indices, (norms + 2 * values).clamp_(min=0)


def _fill(assignment: Tensor, distance: Tensor, k: int) -> None:
    """Fill empty clusters, which are rare, set by set."""
    for one in (_sizes(assignment, k) == 0).any(1).nonzero().flatten().tolist():
        fill_empty(assignment[one], distance[one], k)


def _plus_plus(x: Tensor, norms: Tensor, k: int, seeds: Sequence[int]) -> Tensor:
    """Initial means of each set by greedy k-means++, (R, K, d)."""
    shape = k, 2 + int(math.log(k))
    streams = [torch.rand(shape, generator=generator(s), dtype=torch.float64) for s in seeds]
    draws, index = torch.stack(streams).to(x.device), torch.arange(len(x), device=x.device)
    first = (draws[:, 0, 0] * x.shape[1]).long()
    rows, closest = [first], _distances(x, norms, first.unsqueeze(1)).squeeze(2)  # (R, N)
    for step in range(1, k):
        total = closest.sum(1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
        mass = (closest.double() / total * SCALE).long().cumsum(1)
        targets = (draws[:, step] * mass[:, -1:]).long()
        tried = torch.searchsorted(mass, targets, right=True).clamp_(max=x.shape[1] - 1)
        candidates = torch.minimum(_distances(x, norms, tried), closest.unsqueeze(2))
        best = candidates.sum(1).argmin(1)
        closest = candidates[index, :, best]
        rows.append(tried[index, best])
    return _rows(x, torch.stack(rows, 1))


def _distances(x: Tensor, norms: Tensor, rows: Tensor) -> Tensor:
    """Squared distances of all rows of each set to selected ones, (R, N, number of rows)."""
    products = torch.bmm(x, _rows(x, rows).transpose(1, 2))
    selected = norms.gather(1, rows).unsqueeze(1)
    return (norms.unsqueeze(2) + selected - 2 * products).clamp_(min=0)


def _rows(x: Tensor, rows: Tensor) -> Tensor:
    return x.gather(1, rows.unsqueeze(2).expand(-1, -1, x.shape[2]))
