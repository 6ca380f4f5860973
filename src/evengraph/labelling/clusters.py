"""Clusters: groups of nodes that are alike, each of which a few labels can stand for."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.core.rng import generator
from evengraph.ops import cluster_means, kmeans
from evengraph.ops.kmeans import nearest_mean

MOST = 100  # clusters
SMALLEST = 10  # nodes per cluster, on average
SAMPLE = 4_000  # nodes that the means are found from
ITERATIONS = 20
BLOCK = 100_000  # rows compared at a time
SEED = 0  # clusters of a graph are always the same


class Clusters(NamedTuple):
    """The cluster of every node, and how near it is to the middle.

    Shapes:
        of: int64, (N,); typical: (N,), between 0 and 1; means: (K, d)
    """

    of: Tensor
    typical: Tensor
    means: Tensor

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.means)

    def sizes(self, nodes: Tensor) -> Tensor:
        """How many of some nodes, a bool mask, each cluster holds, (K,)."""
        return torch.bincount(self.of[nodes], minlength=self.number)

    def turns(self, nodes: Tensor) -> Tensor:
        """How many of some nodes, a bool mask, are more typical of the cluster of a node, (N,)."""
        order = torch.where(nodes, self.typical, -1.0).argsort(descending=True, stable=True)
        order = order[self.of[order].argsort(stable=True)]
        sizes = torch.bincount(self.of, minlength=self.number)
        first = (sizes.cumsum(0) - sizes)[self.of[order]]
        result = torch.empty_like(order)
        result[order] = torch.arange(len(order)) - first
        return result


def find_clusters(rows: Tensor, count: int = MOST) -> Clusters:
    """Cluster rows by k-means; in a large graph the means are found from a sample.

    Args:
        count: Clusters, at most; fewer where nodes are few.
    """
    size = len(rows)
    count = max(1, min(count, min(size, SAMPLE) // SMALLEST))
    sample = torch.randperm(size, generator=generator(SEED))[:SAMPLE].sort().values
    part = rows[sample]
    groups = kmeans(part, count, SEED, max_iterations=ITERATIONS)
    means = cluster_means(part, groups, count)
    of = nearest_mean(rows, means)
    parts = zip(rows.split(BLOCK), of.split(BLOCK), strict=True)
    distance = torch.cat([(part - means[group]).square().sum(1) for part, group in parts])
    total = rows.new_zeros(count).index_add_(0, of, distance)
    usual = total / torch.bincount(of, minlength=count).clamp(min=1)
    return Clusters(of, torch.exp(-distance / usual[of].clamp(min=1e-12)), means)
