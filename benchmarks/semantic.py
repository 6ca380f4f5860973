"""Propagation over clusters against the product with the materialised A_sem."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.timing import milliseconds, table
from evengraph.datasets import load, toy
from evengraph.ops.semantic import kmeans, prepare_clusters, semantic_propagate
from evengraph.ops.sparse import Sparse, propagation_matrix, sparsify

WIDTH = 64


def materialised(clusters: Tensor) -> Sparse:
    """The normalised A_sem + I as a sparse matrix."""
    nodes = np.arange(clusters.numel())
    member = sp.csr_matrix((np.ones(nodes.size, dtype=np.float32), (nodes, clusters.numpy())))
    return propagation_matrix(member @ member.T, torch.device("cpu"))


def allocated(clusters: Tensor, width: int = WIDTH) -> int:
    """Bytes that one call of semantic_propagate allocates, its result included."""
    x = torch.randn(clusters.numel(), width)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        semantic_propagate(x, clusters)
    return sum(max(event.self_cpu_memory_usage, 0) for event in seen.events())


def main() -> None:
    rows = []
    for name in ("cora", "citeseer", "pubmed"):
        graph = load(name)
        k = 10 * (int(graph.y.max()) + 1)
        clusters = kmeans(sparsify(graph.x), k, seed=0)
        x = torch.randn(graph.num_nodes, WIDTH)
        matrix = materialised(clusters)
        prepared = prepare_clusters(clusters, k, x.dtype)
        bare, ready, ours, torchs = milliseconds(
            lambda x=x, c=clusters: semantic_propagate(x, c),
            lambda x=x, c=prepared: semantic_propagate(x, c),
            lambda x=x, m=matrix: m @ x,
            lambda x=x, m=matrix: m.matrix @ x,
            rounds=15,
        )
        entries = matrix.matrix.values().numel()
        for what, full in (("torch", torchs), ("ours", ours)):
            times = full / bare, full / ready
            rows.append([name, k, f"{entries:,}", what, full, bare, ready, *times])
    table(
        "semantic_propagate, width 64, K = 10C: milliseconds, and speed-up over the sparse\n"
        "product with A_sem, torch's and ours (target on PubMed against torch's: 100)",
        [
            "graph",
            "K",
            "A_sem entries",
            "product",
            "A_sem @ x",
            "clusters",
            "prepared",
            "speed-up",
            "prepared speed-up",
        ],
        rows,
    )
    rows = []
    for nodes in (50_000, 100_000, 200_000, 400_000):
        clusters = torch.randint(100, (nodes,), generator=torch.Generator().manual_seed(0))
        rows.append([f"{nodes:,}", allocated(clusters) / nodes])
    table(
        "memory of one call, bytes per node (linear: constant over rows)", ["N", "bytes / N"], rows
    )
    toy_rows = []
    for nodes in (100_000, 200_000, 400_000):
        graph = toy(num_nodes=nodes, num_edges=10 * nodes, num_features=16)
        x = torch.randn(nodes, WIDTH)
        clusters = prepare_clusters(torch.arange(nodes) % 100, 100, x.dtype)
        (spent,) = milliseconds(lambda x=x, c=clusters: semantic_propagate(x, c), rounds=10)
        toy_rows.append([f"{nodes:,}", spent, 1e6 * spent / nodes])
    table("time by size", ["N", "ms", "ns per node"], toy_rows)
