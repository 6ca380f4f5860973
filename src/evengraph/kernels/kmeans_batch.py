"""K-means of several sets of rows at once: what `kmeans` does for each, with one set of kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.core.rng import generator

CHUNK = 2**26  # distances held at a time
SCALE = 2.0**40  # shares of a total as whole numbers, whose sums do not depend on their order


def batched_kmeans(
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
        means = _means(x, start, _sizes(start, max(ks)))
    beyond = torch.arange(max(ks), device=x.device) >= k.unsqueeze(1)
    sets = _Sets(
        x,
        norms,
        means.masked_fill(beyond.unsqueeze(2), 0.0),
        beyond,
        smallest_move=tolerance * norms.mean(1) / x.shape[2],
        number=torch.arange(x.shape[0], device=x.device),
    )
    assignment, distance = _nearest(sets)
    found, found_distance = assignment.clone(), distance.clone()
    done = torch.zeros_like(k, dtype=torch.bool)
    for iteration in range(max_iterations):
        sizes = _fill(assignment, distance, sets.beyond)
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
            found[sets.number[new]], found_distance[sets.number[new]] = after[new], distance[new]
            done[new] = True
            left = (~done).nonzero().squeeze(1)
            if not left.numel():
                break
            if left.numel() <= 0.75 * done.numel():  # go on with those alone
                sets = _Sets(*(part[left] for part in sets))
                assignment, distance, done = assignment[left], distance[left], done[left]
    _fill(found, found_distance, beyond)
    return found


class _Sets(NamedTuple):
    """Those that have not settled.

    Shapes:
        x: (R, N, d), around its mean
        norms: (R, N)
        means: (R, K, d)
        beyond: bool, (R, K), clusters that a set does not have
        smallest_move: (R,)
        number: int64, (R,), of each set
    """

    x: Tensor
    norms: Tensor
    means: Tensor
    beyond: Tensor
    smallest_move: Tensor
    number: Tensor


def _means(x: Tensor, assignment: Tensor, sizes: Tensor) -> Tensor:
    """Mean row of each cluster, (R, K, d); zero for one without rows.

    As dense products: ten times the arithmetic of sorting rows by cluster, in few kernels.
    """
    sums = x.new_zeros(*sizes.shape, x.shape[2])
    rows = max(CHUNK // sizes.numel(), 1)
    for part, own in zip(x.split(rows, dim=1), assignment.split(rows, dim=1), strict=True):
        member = x.new_zeros(*own.shape, sizes.shape[1]).scatter_(2, own.unsqueeze(2), 1.0)
        sums.baddbmm_(member.transpose(1, 2), part)
    return sums / sizes.clamp(min=1).unsqueeze(2)


def _sizes(assignment: Tensor, most: int) -> Tensor:
    """Rows of each cluster, (R, K)."""
    sizes = assignment.new_zeros(assignment.shape[0], most)
    return sizes.scatter_add_(1, assignment, torch.ones_like(assignment))


def flatten_clusters(assignment: Tensor, most: int) -> Tensor:
    """Clusters of several sets as clusters of one large set, (R * N,)."""
    first = torch.arange(assignment.shape[0], device=assignment.device).unsqueeze(1) * most
    return (assignment + first).flatten()


def _nearest(sets: _Sets) -> tuple[Tensor, Tensor]:
    """Nearest mean of each row and the squared distance to it."""
    half = sets.means.square().sum(2) / 2
    half = half.masked_fill(sets.beyond, torch.inf).unsqueeze(1)  # (R, 1, K)
    rows = max(CHUNK // half.numel(), 1)
    indices, values = torch.empty_like(sets.norms, dtype=torch.long), torch.empty_like(sets.norms)
    for start in range(0, sets.x.shape[1], rows):
        some = slice(start, start + rows)
        gaps = torch.baddbmm(half, sets.x[:, some], sets.means.transpose(1, 2), alpha=-1)
        values[:, some], indices[:, some] = gaps.min(dim=2)
    return indices, (sets.norms + 2 * values).clamp_(min=0)


def _fill(assignment: Tensor, distance: Tensor, beyond: Tensor) -> Tensor:
    """No cluster stays empty; hardly ever is one, so each is filled by itself.

    Returns the sizes of the clusters, (R, K).
    """
    sizes = _sizes(assignment, beyond.shape[1])
    lacking = ((sizes == 0) & ~beyond).any(1).nonzero().flatten().tolist()
    for replica in lacking:
        fill_empty(assignment[replica], distance[replica], int((~beyond[replica]).sum()))
    return _sizes(assignment, beyond.shape[1]) if lacking else sizes


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


def fill_empty(assignment: Tensor, distance: Tensor, k: int) -> None:
    """Move the row farthest from its mean, of a cluster of several, into each empty cluster."""
    sizes = torch.bincount(assignment, minlength=k)
    for empty in (sizes == 0).nonzero().flatten().tolist():
        far = torch.where(sizes[assignment] > 1, distance, -1).argmax()
        sizes[assignment[far]] -= 1
        sizes[empty] = 1
        assignment[far] = empty
        distance[far] = 0
