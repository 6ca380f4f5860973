"""One training epoch of Uni-GNN: against a plain GCN of PyG, against its floor, and in parts."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout
from torch.profiler import ProfilerActivity, profile
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from benchmarks import floor
from benchmarks.timing import table
from evengraph import Task, UniGNN, load
from evengraph.datasets import toy
from evengraph.nn import UnifiedNetwork, unified
from evengraph.splits import LongTail, Natural, SplitProtocol, Step
from evengraph.training import History


class Setup(NamedTuple):
    """What to train, and how many epochs: before the first is timed, and then."""

    name: str
    graph: Callable[[], Data]
    protocol: SplitProtocol
    alpha: int
    target: str = "none"
    before: int = 100  # until many nodes are confident
    timed: int = 60


SETUPS = [
    Setup("cora", lambda: load("cora"), Step(minority=3), 2, "0.7"),
    Setup("citeseer", lambda: load("citeseer"), Step(minority=3), 2, "0.7"),
    Setup("pubmed", lambda: load("pubmed"), Step(minority=1), 2, "1.0"),
    # hundreds of labels: no rows to leave out
    Setup("cora tail", lambda: load("cora"), LongTail(), 2),
]
LARGE = [
    Setup("physics", lambda: load("physics"), Natural(), 2, before=6, timed=5),
    Setup("toy 169k", lambda: toy(169_000, 2_300_000, 64), Natural(), 1, before=3, timed=3),
    Setup("toy 1M", lambda: toy(1_000_000, 10_000_000, 64), Natural(), 1, before=0, timed=2),
]
OUTSIDE = "outside torch"
DEAREST = 5  # operations of each set-up that the profile names


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


class Measured(NamedTuple):
    """Milliseconds of a GCN step, of a Uni-GNN epoch and of its floor; percent by operation."""

    plain: float
    ours: float
    least: float
    shares: dict[str, float]


def measure(setup: Setup, task: Task) -> Measured:
    """Train, and take GCN steps in turns with the epochs that are timed."""
    step = gcn_step(task)
    step()
    plain: list[float] = []
    ours: list[float] = []
    profiler = profile(activities=[ProfilerActivity.CPU])
    left_out = setup.timed // 6  # the first epochs beside a step
    last = setup.before + setup.timed
    end = last + max(left_out, 1)  # as many are profiled
    profiled = 0.0
    resumed = perf_counter()

    def on_epoch(history: History) -> None:
        nonlocal resumed, profiled
        stopped = perf_counter()
        if setup.before < history.epochs <= last:
            ours.append(stopped - resumed)
            step()
            plain.append(perf_counter() - stopped)
        if history.epochs == last:
            profiler.start()
        elif history.epochs > last:
            profiled += stopped - resumed
        if history.epochs == end:
            profiler.stop()
        resumed = perf_counter()

    model = UniGNN(alpha=setup.alpha, recluster_every=0, max_epochs=end)
    few = _few_examples(lambda: model.fit(task, seed=5, on_epoch=on_epoch, progress=False))
    work = floor.steps(model.inputs_, task.num_classes, model.hidden, few=few)
    least = floor.milliseconds(work, torch.device("cpu"))
    times = (1000 * median(spent[left_out:]) for spent in (plain, ours))
    return Measured(*times, least, _shares(profiler, profiled))


def _few_examples(fit: Callable[[], object]) -> bool:
    """Whether the last epoch of a fit computed the loss of its examples alone."""
    asked: list[bool] = []
    few = UnifiedNetwork.selects

    def noted(*arguments: object) -> bool:
        asked.append(few(*arguments))  # type: ignore[arg-type]
        return asked[-1]

    UnifiedNetwork.selects = noted  # type: ignore[method-assign]
    try:
        fit()
    finally:
        UnifiedNetwork.selects = few  # type: ignore[method-assign]
    return asked[-1]


def _shares(profiler: profile, seconds: float) -> dict[str, float]:
    """Percent of the time that each operation took by itself, and what no operation took."""
    found: dict[str, float] = {}
    for event in profiler.key_averages():
        name = event.key.removeprefix("aten::").strip("_").removesuffix("_forward_only")
        found[name] = found.get(name, 0.0) + event.self_cpu_time_total / 1e4 / seconds
    return found | {OUTSIDE: 100 - sum(found.values())}


def profiles(found: dict[str, Measured]) -> None:
    """The dearest operations of each set-up, in one table."""
    dearest: dict[str, float] = {}
    for measured in found.values():
        first = sorted(measured.shares, key=measured.shares.__getitem__, reverse=True)[:DEAREST]
        for name in first:
            dearest[name] = dearest.get(name, 0.0) + measured.shares[name]
    rows: list[list[object]] = [
        [name, *(f"{measured.shares.get(name, 0.0):.0f}" for measured in found.values())]
        for name in sorted(dearest, key=dearest.__getitem__, reverse=True)
    ]
    table(
        f"where an epoch of Uni-GNN goes, percent of its time, the {DEAREST} dearest operations of "
        "each task\n(embedding_bag: sparse products, mm: dense products)",
        ["operation", *found],
        rows,
    )


def clustering(task: Task, alpha: int) -> tuple[float, list[float]]:
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
        model = UniGNN(max_epochs=300, recluster_every=50, alpha=alpha)
        model.fit(task, seed=5, progress=False)
    finally:
        unified.kmeans = kmeans
    return model.history_[0].seconds, spent


def main() -> None:
    found: dict[str, Measured] = {}
    rows: list[list[object]] = []
    more: list[list[object]] = []
    for setup in (*SETUPS, *LARGE):
        task = setup.protocol(setup.graph(), seed=5)
        found[setup.name] = measured = measure(setup, task)
        plain, ours, least, _ = measured
        ratios = [ours / plain, setup.target, least, ours / least]
        rows.append([setup.name, setup.alpha, plain, ours, *ratios])
        if setup in SETUPS:
            total, (features, first, *later) = clustering(task, setup.alpha)
            more.append([setup.name, total, sum(later), 100 * sum(later) / total, features, first])
    table(
        "one training epoch, milliseconds, in turns: a plain PyG GCN's step with default Adam;\n"
        "Uni-GNN's epoch with pseudo-labels, validation and fused Adam",
        ["task", "alpha", "PyG GCN", "Uni-GNN", "ratio", "target", "floor", "times the floor"],
        rows,
    )
    profiles(found)
    table(
        "re-clustering every 50 of 300 epochs, seconds (target: at most 10 percent)",
        ["task", "training", "re-clustering", "percent", "once: features", "once: first layer"],
        more,
    )
