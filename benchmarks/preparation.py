"""One-off costs: clustering, structural adjacency, graph generation; logistic regression."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch
from sklearn.cluster import KMeans
from torch_geometric.data import Data

from benchmarks.timing import table
from evengraph.core.task import Task
from evengraph.datasets import load, toy
from evengraph.methods import Logistic
from evengraph.ops.semantic import kmeans
from evengraph.ops.sparse import sparsify
from evengraph.ops.structural import structural_adjacency


def seconds(task: Callable[[], object]) -> float:
    start = perf_counter()
    task()
    return perf_counter() - start


def random_table(rows: int, columns: int, density: float) -> Task:
    """A graph without edges, half of its nodes to train on and half to validate on."""
    x = torch.rand(rows, columns, generator=torch.Generator().manual_seed(0))
    x = torch.where(x < density, x, 0.0)
    first = x[:, :5].sum(1)
    edges = torch.empty(2, 0, dtype=torch.long)
    train = torch.arange(rows) < rows // 2
    graph = Data(x=x, edge_index=edges, y=(first > first.median()).long())
    return Task(graph=graph, train=train, val=~train, test=torch.zeros_like(train), num_classes=2)


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
    rows = []
    for size in ((4_000, 8_000, 0.005), (100_000, 10, 1.0)):
        task = random_table(*size)
        rows.append([*size, seconds(lambda task=task: Logistic().fit(task, seed=0))])
    table("Logistic, a fit", ["nodes", "features", "density", "seconds"], rows)
