"""One-off costs: clustering, structural adjacency, graph generation."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from sklearn.cluster import KMeans

from benchmarks.timing import table
from evengraph.datasets import load, toy
from evengraph.ops import kmeans, sparsify, structural_adjacency


def seconds(task: Callable[[], object]) -> float:
    start = perf_counter()
    task()
    return perf_counter() - start


def main() -> None:
    rows = []
    for name in ("cora", "pubmed"):
        graph = load(name)
        sparse = sparsify(graph.x)
        k = 30 * (int(graph.y.max()) + 1)
        ours = seconds(lambda x=sparse, k=k: kmeans(x, k, seed=0))
        theirs = seconds(lambda x=graph.x, k=k: KMeans(k, n_init=1, random_state=0).fit(x.numpy()))
        rows.append([name, k, theirs, ours, theirs / ours])
    table(
        "k-means of the features, K = 30C, seconds",
        ["graph", "K", "scikit-learn", "ours", "times faster"],
        rows,
    )
    rows = []
    big = toy(num_nodes=169_000, num_edges=2_300_000, num_features=16)
    for name, graph, alpha in (
        ("pubmed", load("pubmed"), 2),
        ("pubmed", load("pubmed"), 3),
        ("toy 169k", big, 2),
    ):
        start = perf_counter()
        matrix = structural_adjacency(graph.edge_index, graph.num_nodes, alpha)
        rows.append([name, alpha, f"{matrix.values().numel():,}", perf_counter() - start])
    table("structural_adjacency, seconds", ["graph", "alpha", "entries", "seconds"], rows)
    spent = seconds(lambda: toy(num_nodes=1_000_000, num_edges=10_000_000, num_features=64))
    table("toy", ["nodes", "directed edges", "seconds"], [["1,000,000", "10,000,000", spent]])
