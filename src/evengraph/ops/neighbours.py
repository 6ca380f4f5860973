"""Nearest neighbours by cosine, on any device, in less than quadratic time.

Nodes are put into about sqrt(N) lists by k-means, and each is compared with the nodes of the lists
nearest to it. faiss (IVF, as many probes) takes a little more than half the time on a CPU for the
same recall, 0.93 on PubMed, but its wheels have no GPU. This needs products of matrices alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import normalize

from evengraph.ops.semantic import cluster_means, kmeans, nearest_mean
from evengraph.ops.sparse import row_entries

EXACT = 4_096  # nodes up to which all are compared with all
PROBES = 4  # lists that are searched
PER_LIST = 64  # nodes per list that k-means sees
CROWDED = 8  # times the usual size of a list: of more nodes, evenly spaced ones count
AT_ONCE = 2**24  # cosines in memory
SEED = 0


def nearest_neighbours(x: Tensor, count: int) -> Tensor:
    """The rows with the largest cosine to each row, (N, min(count, N - 1)), -1 where too few."""
    x = normalize(x, dim=1)
    num_rows = x.shape[0]
    count = min(count, num_rows - 1)
    everything = torch.arange(num_rows, device=x.device)
    if num_rows <= EXACT:
        return _nearest_among(x, everything, everything, count)[1]
    size = math.ceil(math.sqrt(num_rows))
    # k-means on evenly spaced rows gives the means of the lists
    sample = x[:: max(num_rows // (PER_LIST * size), 1)]
    means = cluster_means(sample, kmeans(sample, size, SEED, max_iterations=5), size)
    lists = nearest_mean(x, means)
    probes = _nearest_lists(x, lists, means)
    width, limit = probes.shape[1], CROWDED * size  # equal rows share a list
    cosines = x.new_full((num_rows * width, count), -torch.inf)
    nearest = torch.full((num_rows * width, count), -1, device=x.device)
    searches = _by_list(probes.flatten(), len(means))  # a search is a row and one of its lists
    for among, group in zip(_by_list(lists, len(means)), searches, strict=True):
        among = among[:: max(math.ceil(among.numel() / limit), 1)]
        for part in group.split(AT_ONCE // limit):
            values, indices = _nearest_among(x, part // width, among, count)
            cosines[part, : values.shape[1]] = values
            nearest[part, : values.shape[1]] = indices
    best = cosines.view(num_rows, -1).topk(count).indices
    return nearest.view(num_rows, -1).gather(1, best)


def neighbour_graph(x: Tensor, count: int) -> sp.csr_matrix:
    """The undirected graph that joins every row to its nearest neighbours."""
    nearest = nearest_neighbours(x, count).cpu().numpy()
    rows, columns = (nearest >= 0).nonzero()
    entries = np.ones(len(rows)), (rows, nearest[rows, columns])
    matrix = sp.csr_matrix(entries, shape=(len(nearest), len(nearest)))
    return matrix.maximum(matrix.T).tocsr()


def _nearest_lists(x: Tensor, lists: Tensor, means: Tensor) -> Tensor:
    """The lists to search for each row, its own first; none that is empty, if there are enough."""
    empty = torch.bincount(lists, minlength=len(means)) == 0
    directions, probes = normalize(means, dim=1).T, min(PROBES, len(means))
    rows = max(AT_ONCE // len(means), 1)
    parts = []
    for part, mine in zip(x.split(rows), lists.split(rows), strict=True):
        cosines = (part @ directions).masked_fill_(empty, -torch.inf)
        parts.append(cosines.scatter_(1, mine.unsqueeze(1), torch.inf).topk(probes).indices)
    return torch.cat(parts)


def _by_list(lists: Tensor, count: int) -> Any:
    """The positions of each list's number."""
    return lists.argsort(stable=True).split(torch.bincount(lists, minlength=count).tolist())


def _nearest_among(x: Tensor, rows: Tensor, among: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Cosine and index of the nearest of some rows to each of others; -1 for the row itself."""
    cosines = x[rows] @ x[among].T
    cosines[rows.unsqueeze(1) == among] = -torch.inf
    best, index = cosines.topk(min(count, among.numel()))
    return best, torch.where(best > -torch.inf, among[index], -1)


BLOCK_ENTRIES = 2**24  # similarities in memory at a time
SIMILAR = 10  # similar nodes per labelled node


def class_prototypes(
    embeddings: Tensor,
    probabilities: Tensor,
    x: Tensor,
    adjacency: Tensor,
    nodes: Tensor,
    labels: Tensor,
    target: int,
    *,
    sound: bool = False,
) -> Tensor:
    """The mean embedding of each class, (C, h), with unlabelled nodes added to small classes.

    A class with fewer labelled nodes than the target is filled up with unlabelled neighbours of
    its labelled nodes, the most probable first; if those are too few, with nodes whose features
    resemble a labelled one's.

    Args:
        sound: Fill up to the target with the most similar nodes, without nodes that are labelled
            and none twice. Otherwise as in LTE4G's public code: similar nodes are added only while
            the list, labelled nodes included, is shorter than what was missing, the most similar
            one of each node is left out, and those labelled for another class or already in the
            list are not.
    """
    means = []
    for label in range(probabilities.shape[1]):
        labelled = nodes[labels == label]
        members, missing = labelled, target - labelled.numel()
        if missing > 0:
            likely = probabilities[:, label]
            _, positions = row_entries(adjacency, labelled)
            near = adjacency.col_indices()[positions].long().unique()
            near = near[~torch.isin(near, nodes if sound else labelled)]
            members = torch.cat([labelled, _likeliest(near, likely, missing)])
            wanted = (target if sound else missing) - members.numel()
            if wanted > 0:
                alike = similar_nodes(x, adjacency, labelled, skip=0 if sound else 1)
                if sound:
                    alike = alike[~torch.isin(alike, torch.cat([nodes, members]))]
                members = torch.cat([members, _likeliest(alike, likely, wanted)])
        means.append(embeddings[members].mean(0))
    return torch.stack(means)


def _likeliest(nodes: Tensor, likely: Tensor, count: int) -> Tensor:
    """The most probable of given nodes."""
    order = torch.argsort(likely[nodes], descending=True, stable=True)
    return nodes[order[:count]]


def similar_nodes(x: Tensor, adjacency: Tensor, nodes: Tensor, skip: int) -> Tensor:
    """Nodes with features similar to those of given nodes, except themselves and neighbours."""
    # for each node the best ten by cosine similarity, after skipping the first `skip`; ascending
    length = x.norm(dim=1).clamp(min=torch.finfo(x.dtype).tiny)
    similar = []
    for block in nodes.split(max(BLOCK_ENTRIES // x.shape[0], 1)):
        likeness = (x[block] / length[block].unsqueeze(1)) @ x.t() / length  # (block, N)
        owner, positions = row_entries(adjacency, block)
        likeness[owner, adjacency.col_indices()[positions].long()] = -torch.inf
        likeness[torch.arange(block.numel(), device=x.device), block] = -torch.inf
        best, indices = likeness.topk(min(skip + SIMILAR, x.shape[0]), dim=1)
        similar.append(indices[:, skip:][best[:, skip:].isfinite()])
    return torch.cat(similar).unique() if similar else nodes
