"""One training epoch of Uni-GNN against one of a plain two-layer GCN of PyG."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.nn import GCNConv

from benchmarks.timing import table
from evengraph import Task, UniGNN, load
from evengraph.imbalance import LongTail, Step
from evengraph.nn import unified
from evengraph.training import History

ALPHA_TWO = {"alpha": 2, "clusters_per_class": 10}  # the denser structural graph
SETUPS = [
    ("cora", Step(minority=3), ALPHA_TWO, "1.0"),
    ("citeseer", Step(minority=3), ALPHA_TWO, "1.0"),
    ("pubmed", Step(minority=1), ALPHA_TWO, "1.5"),
    ("cora", LongTail(), ALPHA_TWO, "none"),  # hundreds of labels: no rows to leave out
]
BEFORE, TIMED = 100, 60  # epochs until many nodes are confident, and epochs to time


class PlainGCN(torch.nn.Module):
    """Hidden 64, dense features, cached normalisation."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.first = GCNConv(num_features, 64, cached=True)
        self.second = GCNConv(64, num_classes, cached=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(hidden, edge_index)


def gcn_step(task: Task) -> Callable[[], None]:
    """One training step, as a tutorial writes it."""
    graph, nodes = task.graph, task.train.nonzero().squeeze(1)
    net = PlainGCN(graph.num_features, task.num_classes).to(graph.x.device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)

    def step() -> None:
        optimizer.zero_grad()
        cross_entropy(net(graph.x, graph.edge_index)[nodes], graph.y[nodes]).backward()
        optimizer.step()

    return step


def side_by_side(task: Task, fields: dict[str, int]) -> tuple[float, float]:
    """Milliseconds of a GCN step and of a Uni-GNN epoch, taken in turns."""
    step = gcn_step(task)
    plain: list[float] = []
    ours: list[float] = []
    resumed = perf_counter()

    def on_epoch(history: History) -> None:
        nonlocal resumed
        stopped = perf_counter()
        if history.epochs > BEFORE:
            ours.append(stopped - resumed)
            step()
            plain.append(perf_counter() - stopped)
        resumed = perf_counter()

    model = UniGNN(max_epochs=BEFORE + TIMED, recluster_every=0, **fields)
    model.fit(task, seed=5, on_epoch=on_epoch, progress=False)
    return 1000 * median(plain[10:]), 1000 * median(ours[10:])


def clustering(task: Task, fields: dict[str, int]) -> tuple[float, list[float]]:
    """Seconds of training with re-clustering, and of each clustering in it."""
    spent: list[float] = []
    kmeans = unified.kmeans

    def timed(*arguments: object, **options: object) -> Tensor:
        start = perf_counter()
        found = kmeans(*arguments, **options)  # type: ignore[arg-type]
        spent.append(perf_counter() - start)
        return found

    unified.kmeans = timed
    try:
        model = UniGNN(max_epochs=300, recluster_every=50, **fields)
        model.fit(task, seed=5, progress=False)
    finally:
        unified.kmeans = kmeans
    return model.history_[0].seconds, spent


def main() -> None:
    rows: list[list[object]] = []
    more: list[list[object]] = []
    for name, protocol, fields, target in SETUPS:
        task = protocol(load(name), seed=5)
        title = f"{name} {type(protocol).__name__}"
        plain, ours = side_by_side(task, fields)
        rows.append([title, plain, ours, ours / plain, target])
        total, (features, first, *later) = clustering(task, fields)
        more.append([title, total, sum(later), 100 * sum(later) / total, features, first])
    table(
        "one training epoch, milliseconds: PyG's GCN step with default Adam; Uni-GNN's epoch "
        "with pseudo-labels, validation and fused Adam",
        ["task", "plain PyG GCN", "Uni-GNN", "ratio", "target at most"],
        rows,
    )
    table(
        "re-clustering every 50 of 300 epochs, seconds (target: at most 10 percent)",
        ["task", "training", "re-clustering", "percent", "once: features", "once: first layer"],
        more,
    )
