"""Nearest neighbours by cosine, on any device, in less than quadratic time.

Nodes are put into about sqrt(N) lists by k-means, and each is compared with the nodes of the lists
nearest to its own. Libraries made for this run on the CPU only or need a build for every CUDA
version; this needs products of matrices alone.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import normalize

from evengraph.ops.kmeans import cluster_means, kmeans, nearest_mean

EXACT = 4_096  # nodes up to which all are compared with all
PROBES = 8  # lists that are searched
PER_LIST = 64  # nodes per list that k-means sees
CROWDED = 4  # times the mean size of the searched lists: of more nodes, evenly spaced ones count
AT_ONCE = 2**26  # cosines in memory
SEED = 0


def nearest_neighbours(x: Tensor, count: int) -> Tensor:
    """The rows with the largest cosine to each row, itself excluded; fewer if there are fewer.

    Shapes:
        x: (N, d)
        returns: int64, (N, min(count, N - 1)); -1 where too few were found
    """
    x = normalize(x, dim=1)
    num_rows = x.shape[0]
    count = min(count, num_rows - 1)
    everything = torch.arange(num_rows, device=x.device)
    if num_rows <= EXACT:
        return _nearest_among(x, everything, everything, count)
    size = math.ceil(math.sqrt(num_rows))
    lists = _assign_lists(x, size)
    means = cluster_means(x, lists, int(lists.max()) + 1)
    near = (means @ normalize(means, dim=1).T).topk(min(PROBES, len(means))).indices
    order = lists.argsort(stable=True)
    members = order.split(torch.bincount(lists, minlength=means.shape[0]).tolist())
    limit = CROWDED * PROBES * size  # equal rows share a list
    result = torch.full((num_rows, count), -1, device=x.device)
    for near_lists, group in zip(near.tolist(), members, strict=True):
        if not group.numel():
            continue
        among = torch.cat([members[index] for index in near_lists])
        among = among[:: math.ceil(among.numel() / limit)]
        for rows in group.split(min(limit, AT_ONCE // limit)):
            nearest = _nearest_among(x, rows, among, count)
            result[rows, : nearest.shape[1]] = nearest
    return result


def neighbour_graph(x: Tensor, count: int) -> sp.csr_matrix:
    """The undirected graph that joins every row to its nearest neighbours."""
    nearest = nearest_neighbours(x, count).cpu().numpy()
    rows, columns = (nearest >= 0).nonzero()
    entries = np.ones(len(rows)), (rows, nearest[rows, columns])
    matrix = sp.csr_matrix(entries, shape=(len(nearest), len(nearest)))
    return matrix.maximum(matrix.T).tocsr()


def _assign_lists(x: Tensor, count: int) -> Tensor:
    """The list of each row, from k-means on evenly spaced rows."""
    sample = x[:: max(x.shape[0] // (PER_LIST * count), 1)]
    clusters = kmeans(sample, count, SEED, max_iterations=5)
    return nearest_mean(x, cluster_means(sample, clusters, count))


def _nearest_among(x: Tensor, rows: Tensor, among: Tensor, count: int) -> Tensor:
    """The nearest of some rows to each of others."""
    cosines = x[rows] @ x[among].T
    cosines[rows.unsqueeze(1) == among] = -torch.inf
    best, index = cosines.topk(min(count, among.numel()))
    return torch.where(best > -torch.inf, among[index], -1)
