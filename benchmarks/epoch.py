"""One training epoch of Uni-GNN against one of a plain two-layer GCN of PyG."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from time import perf_counter

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.nn import GCNConv

from benchmarks.timing import table
from evengraph import Task, UniGNN, load
from evengraph.imbalance import Step
from evengraph.training import History

# The trial's settings for each graph, with the denser structural graph of alpha = 2.
SETUPS = {
    "cora": (3, {"alpha": 2, "clusters_per_class": 10}),
    "citeseer": (3, {"alpha": 2, "clusters_per_class": 20}),
    "pubmed": (1, {"alpha": 2, "clusters_per_class": 30}),
}
ROUNDS, EPOCHS, WARM_UP = 5, 24, 6


class PlainGCN(torch.nn.Module):
    """Hidden 64, dense features, cached normalisation."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.first = GCNConv(num_features, 64, cached=True)
        self.second = GCNConv(64, num_classes, cached=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(hidden, edge_index)


def gcn_epochs(task: Task) -> list[float]:
    """Seconds of training steps."""
    graph, nodes = task.graph, task.train.nonzero().squeeze(1)
    net = PlainGCN(graph.num_features, task.num_classes)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    times = []
    for _ in range(EPOCHS):
        start = perf_counter()
        optimizer.zero_grad()
        cross_entropy(net(graph.x, graph.edge_index)[nodes], graph.y[nodes]).backward()
        optimizer.step()
        times.append(perf_counter() - start)
    return times[WARM_UP:]


def unignn_epochs(task: Task, model: UniGNN) -> list[float]:
    """Seconds between the ends of epochs: training, pseudo-labels and validation."""
    stamps: list[float] = []

    def stamp(history: History) -> None:
        stamps.append(perf_counter())

    model.fit(task, seed=5, on_epoch=stamp, progress=False)
    return [after - before for before, after in pairwise(stamps)]


def main() -> None:
    rows = []
    for name, (minority, fields) in SETUPS.items():
        task = Step(minority=minority)(load(name), seed=5)
        plain: list[float] = []
        ours: list[float] = []
        for _ in range(ROUNDS):  # in turns, so that noise hits both
            plain += gcn_epochs(task)
            model = UniGNN(max_epochs=EPOCHS, recluster_every=0, **fields)
            ours += unignn_epochs(task, model)[WARM_UP:]
        a, b = 1000 * median(plain), 1000 * median(ours)
        rows.append([name, a, b, b / a])
    table(
        "one training epoch, milliseconds (ours with pseudo-labels and validation)",
        ["graph", "plain PyG GCN", "Uni-GNN", "ratio"],
        rows,
    )
    rows = []
    for name, (minority, fields) in SETUPS.items():
        task = Step(minority=minority)(load(name), seed=5)
        times = unignn_epochs(task, UniGNN(max_epochs=200, recluster_every=50, **fields))
        usual = median(times)
        # Entry e - 1 is the epoch that starts after e steps; clusters are renewed at 50, 100, ...
        extra = sum(max(times[e - 1] - usual, 0) for e in range(50, 201, 50))
        rows.append([name, sum(times), extra, 100 * extra / sum(times)])
    table(
        "re-clustering every 50 epochs, 200 epochs",
        ["graph", "seconds", "of them clustering", "percent"],
        rows,
    )
