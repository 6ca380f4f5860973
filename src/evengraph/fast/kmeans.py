"""K-means of several sets of rows at once, with the same launches as for one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.core.rng import generator
from evengraph.ops.semantic import fill_empty, start_seeds

CHUNK = 2**26  # distances in memory at a time
SCALE = 2.0**40  # shares of a total as integers, whose sums do not depend on the order


def batched_kmeans(
    x: Tensor,
    ks: Sequence[int],
    *,
    seeds: Sequence[int] | None = None,
    start: Tensor | None = None,
    starts: int = 1,
    max_iterations: int = 100,
    tolerance: float = 1e-4,
) -> Tensor:
    """Cluster R sets of rows, (R, N, d), like `kmeans`, each into its own number of clusters."""
    x = x - x.mean(1, keepdim=True)
    norms = x.square().sum(2)  # (R, N)
    if start is not None:
        means = _means(x, start, _sizes(start, max(ks)))
        return _lloyd(_sets(x, norms, means, ks, tolerance), max_iterations)[0]
    assert seeds is not None
    results, totals = [], []
    for numbers in zip(*(start_seeds(seed, starts) for seed in seeds), strict=True):
        means = _plus_plus(x, norms, ks, numbers)
        result, distance = _lloyd(_sets(x, norms, means, ks, tolerance), max_iterations)
        results.append(result)
        totals.append(distance.double().sum(1))
    best = torch.stack(totals).argmin(0)  # (R,)
    return torch.stack(results)[best, torch.arange(x.shape[0], device=x.device)]


def _lloyd(sets: _Sets, max_iterations: int) -> tuple[Tensor, Tensor]:
    """Lloyd's iterations from given means: clusters and squared distances of all sets, (R, N)."""
    unused = sets.unused
    assignment, distance = _nearest(sets)
    result, result_distance = assignment.clone(), distance.clone()
    done = torch.zeros_like(sets.number, dtype=torch.bool)
    for iteration in range(max_iterations):
        sizes = _fill(assignment, distance, sets.unused)
        moved = _means(sets.x, assignment, sizes)
        move = (moved - sets.means).square().sum((1, 2))
        sets = sets._replace(means=moved)
        after, distance = _nearest(sets)
        settled = (move <= sets.smallest_move) | (after == assignment).all(1)
        if iteration == max_iterations - 1:
            settled.fill_(True)
        assignment = after
        new = (settled & ~done).nonzero().squeeze(1)
        if new.numel():
            result[sets.number[new]], result_distance[sets.number[new]] = after[new], distance[new]
            done[new] = True
            left = (~done).nonzero().squeeze(1)
            if not left.numel():
                break
            if left.numel() <= 0.75 * done.numel():  # continue with those only
                sets = _Sets(*(part[left] for part in sets))
                assignment, distance, done = assignment[left], distance[left], done[left]
    _fill(result, result_distance, unused)
    return result, result_distance


class _Sets(NamedTuple):
    """The sets that have not converged."""

    x: Tensor  # (R, N, d), around its mean
    norms: Tensor  # (R, N)
    means: Tensor  # (R, K, d)
    unused: Tensor  # bool, (R, K), clusters that a set does not have
    smallest_move: Tensor  # (R,)
    number: Tensor  # index of each set, (R,)


def _sets(x: Tensor, norms: Tensor, means: Tensor, ks: Sequence[int], tolerance: float) -> _Sets:
    unused = torch.arange(max(ks), device=x.device) >= torch.tensor(ks, device=x.device)[:, None]
    return _Sets(
        x,
        norms,
        means.masked_fill(unused.unsqueeze(2), 0.0),
        unused,
        smallest_move=tolerance * norms.mean(1) / x.shape[2],
        number=torch.arange(x.shape[0], device=x.device),
    )


def _means(x: Tensor, assignment: Tensor, sizes: Tensor) -> Tensor:
    """Mean row of each cluster, (R, K, d); zero for one without rows."""
    # dense products need ten times the arithmetic of sorting rows by cluster, but few launches
    sums = x.new_zeros(*sizes.shape, x.shape[2])
    rows = max(CHUNK // sizes.numel(), 1)
    for part, ids in zip(x.split(rows, dim=1), assignment.split(rows, dim=1), strict=True):
        member = x.new_zeros(*ids.shape, sizes.shape[1]).scatter_(2, ids.unsqueeze(2), 1.0)
        sums.baddbmm_(member.transpose(1, 2), part)
    return sums / sizes.clamp(min=1).unsqueeze(2)


def _sizes(assignment: Tensor, most: int) -> Tensor:
    """Rows of each cluster, (R, K)."""
    sizes = assignment.new_zeros(assignment.shape[0], most)
    return sizes.scatter_add_(1, assignment, torch.ones_like(assignment))


def flatten_clusters(assignment: Tensor, most: int) -> Tensor:
    """Cluster ids of several sets as ids of one large set, (R * N,)."""
    first = torch.arange(assignment.shape[0], device=assignment.device).unsqueeze(1) * most
    return (assignment + first).flatten()


def _nearest(sets: _Sets) -> tuple[Tensor, Tensor]:
    """Nearest mean of each row and the squared distance to it."""
    half = sets.means.square().sum(2) / 2
    half = half.masked_fill(sets.unused, torch.inf).unsqueeze(1)  # (R, 1, K)
    rows = max(CHUNK // half.numel(), 1)
    indices, values = torch.empty_like(sets.norms, dtype=torch.long), torch.empty_like(sets.norms)
    for start in range(0, sets.x.shape[1], rows):
        chunk = slice(start, start + rows)
        gaps = torch.baddbmm(half, sets.x[:, chunk], sets.means.transpose(1, 2), alpha=-1)
        values[:, chunk], indices[:, chunk] = gaps.min(dim=2)
    return indices, (sets.norms + 2 * values).clamp_(min=0)


def _fill(assignment: Tensor, distance: Tensor, unused: Tensor) -> Tensor:
    """Fill empty clusters, which are rare, set by set; return the cluster sizes, (R, K)."""
    sizes = _sizes(assignment, unused.shape[1])
    lacking = ((sizes == 0) & ~unused).any(1).nonzero().flatten().tolist()
    for replica in lacking:
        fill_empty(assignment[replica], distance[replica], int((~unused[replica]).sum()))
    return _sizes(assignment, unused.shape[1]) if lacking else sizes


def _plus_plus(x: Tensor, norms: Tensor, ks: Sequence[int], seeds: Sequence[int]) -> Tensor:
    """Initial means of each set by greedy k-means++, (R, K, d)."""
    (replicas, num_rows, _), most = x.shape, max(ks)
    width = 2 + int(math.log(most))
    draws = torch.zeros(replicas, most, width, dtype=torch.float64)
    for replica, (k, seed) in enumerate(zip(ks, seeds, strict=True)):
        trials = 2 + int(math.log(k))
        numbers = torch.rand((k, trials), generator=generator(seed), dtype=torch.float64)
        draws[replica, :k, :trials] = numbers
        draws[replica, :k, trials:] = numbers[:, :1]  # a repeated draw cannot beat itself
    draws = draws.to(x.device)
    index = torch.arange(replicas, device=x.device)
    first = (draws[:, 0, 0] * num_rows).long()
    rows = [first]
    closest = _distances(x, norms, first.unsqueeze(1)).squeeze(2)  # (R, N)
    for step in range(1, most):
        total = closest.sum(1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
        mass = (closest.double() / total * SCALE).long().cumsum(1)
        targets = (draws[:, step] * mass[:, -1:]).long()
        tried = torch.searchsorted(mass, targets, right=True).clamp_(max=num_rows - 1)
        candidates = torch.minimum(_distances(x, norms, tried), closest.unsqueeze(2))
        best = candidates.sum(1).argmin(1)
        closest = candidates[index, :, best]
        rows.append(tried[index, best])
    selected = torch.stack(rows, 1)  # (R, K)
    return x.gather(1, selected.unsqueeze(2).expand(-1, -1, x.shape[2]))


def _distances(x: Tensor, norms: Tensor, rows: Tensor) -> Tensor:
    """Squared distances of all rows of each set to selected ones, (R, N, number of rows)."""
    others = x.gather(1, rows.unsqueeze(2).expand(-1, -1, x.shape[2]))
    products = torch.bmm(x, others.transpose(1, 2))
    selected = norms.gather(1, rows).unsqueeze(1)
    return (norms.unsqueeze(2) + selected - 2 * products).clamp_(min=0)
