"""`python -m benchmarks.epoch [TASK]...`: a training epoch of Uni-GNN.

Against a PyG GCN step, against its floor, and profiled.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Sequence
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
from benchmarks.timing import commit, table
from evengraph import Task, load
from evengraph.core.machine import keep_freed_memory
from evengraph.datasets import toy
from evengraph.fast import unignn as unified
from evengraph.fast.unignn import Connectivity, UnifiedNetwork
from evengraph.methods import UniGNN
from evengraph.splits import LongTail, Natural, SplitProtocol, Step
from evengraph.training import History


class Setting(NamedTuple):
    """A graph with its split protocol, and the numbers of warm-up and timed epochs."""

    name: str
    graph: Callable[[], Data]
    protocol: SplitProtocol
    alpha: int
    target: str = "none"
    before: int = 100  # untimed epochs, until many nodes are confident
    timed: int = 60


SETTINGS = [
    Setting("cora", lambda: load("cora"), Step(minority=3), 2, "0.7"),
    Setting("citeseer", lambda: load("citeseer"), Step(minority=3), 2, "0.7"),
    Setting("pubmed", lambda: load("pubmed"), Step(minority=1), 2, "1.0"),
    # hundreds of labels: all rows are computed
    Setting("cora tail", lambda: load("cora"), LongTail(), 2),
]
LARGE = [
    Setting("physics", lambda: load("physics"), Natural(), 2, before=6, timed=5),
    Setting("toy 169k", lambda: toy(169_000, 2_300_000, 64), Natural(), 1, before=3, timed=3),
    Setting("toy 1M", lambda: toy(1_000_000, 10_000_000, 64), Natural(), 1, before=5, timed=3),
]
OUTSIDE = "outside torch"
SLOWEST = 5  # operations per setting to list


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
    """One training step, as in a tutorial."""
    graph, nodes = task.graph, task.train.nonzero().squeeze(1)
    net = PlainGCN(graph.num_features, task.num_classes).to(graph.x.device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)

    def step() -> None:
        optimizer.zero_grad()
        cross_entropy(net(graph.x, graph.edge_index)[nodes], graph.y[nodes]).backward()
        optimizer.step()

    return step


class Measured(NamedTuple):
    """Milliseconds of a GCN step, of a Uni-GNN epoch and of its floor; percent per operation."""

    plain: float
    ours: float
    least: float
    shares: dict[str, float]
    clean: float = 0.0  # floor without what examples need, if these are some of many nodes


def measure(setting: Setting, task: Task) -> Measured:
    """Train Uni-GNN, alternating timed epochs with GCN steps."""
    step = gcn_step(task)
    step()
    plain: list[float] = []
    ours: list[float] = []
    profiler = profile(activities=[ProfilerActivity.CPU])
    skipped = setting.timed // 6  # first alternating epochs
    last = setting.before + setting.timed
    end = last + max(skipped, 1)  # the rest is profiled
    profiled = 0.0
    resumed = perf_counter()

    def on_epoch(history: History) -> None:
        nonlocal resumed, profiled
        stopped = perf_counter()
        if setting.before < history.epochs <= last:
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

    model = UniGNN(alpha=setting.alpha, recluster_every=0, max_epochs=end)
    few, examples = _restriction(lambda: model.fit(task, seed=5, on_epoch=on_epoch, progress=False))
    work = floor.steps(
        model.quick_.inputs, task.num_classes, model.hidden, few=few, examples=examples
    )
    least = floor.milliseconds(work, torch.device("cpu"))
    times = (1000 * median(spent[skipped:]) for spent in (plain, ours))
    clean = 0.0
    if examples:
        work = floor.steps(model.quick_.inputs, task.num_classes, model.hidden, few=True)
        clean = floor.milliseconds(work, torch.device("cpu"))
    return Measured(*times, least, _shares(profiler, profiled), clean)


def _restriction(fit: Callable[[], object]) -> tuple[bool, int]:
    """Whether the last epoch of a fit needed the last layer at few nodes only.

    Else, at how many nodes it needed the classifier; 0 for all.
    """
    last = False, 0
    selects, restrict = UnifiedNetwork.selects, UnifiedNetwork.restrict

    def selected(net: UnifiedNetwork, nodes: Tensor, inputs: Connectivity) -> bool:
        nonlocal last
        last = False, 0
        return selects(net, nodes, inputs)

    def restricted(net: UnifiedNetwork, nodes: Tensor, inputs: Connectivity) -> object:
        nonlocal last
        near, matrix = restrict(net, nodes, inputs)
        last = (True, 0) if near is not None else (False, nodes.numel())
        return near, matrix

    UnifiedNetwork.selects, UnifiedNetwork.restrict = selected, restricted  # type: ignore[method-assign, assignment]
    try:
        fit()
    finally:
        UnifiedNetwork.selects, UnifiedNetwork.restrict = selects, restrict  # type: ignore[method-assign]
    return last


def _shares(profiler: profile, seconds: float) -> dict[str, float]:
    """Percent of the time per operation, and outside operations."""
    shares: dict[str, float] = {}
    for event in profiler.key_averages():
        name = event.key.removeprefix("aten::").strip("_").removesuffix("_forward_only")
        shares[name] = shares.get(name, 0.0) + event.self_cpu_time_total / 1e4 / seconds
    return shares | {OUTSIDE: 100 - sum(shares.values())}


def profiles(results: dict[str, Measured]) -> None:
    """Print the slowest operations of all settings in one table."""
    slowest: dict[str, float] = {}
    for measured in results.values():
        first = sorted(measured.shares, key=measured.shares.__getitem__, reverse=True)[:SLOWEST]
        for name in first:
            slowest[name] = slowest.get(name, 0.0) + measured.shares[name]
    rows: list[list[object]] = [
        [name, *(f"{measured.shares.get(name, 0.0):.0f}" for measured in results.values())]
        for name in sorted(slowest, key=slowest.__getitem__, reverse=True)
    ]
    table(
        f"profile of a Uni-GNN epoch in percent, the {SLOWEST} slowest operations per setting\n"
        "(embedding_bag: sparse products, mm: dense products)",
        ["operation", *results],
        rows,
    )


def clustering(task: Task, alpha: int) -> tuple[float, list[float]]:
    """Seconds of training with re-clustering, and of each clustering."""
    spent: list[float] = []
    kmeans = unified.kmeans

    def timed(*arguments: object, **options: object) -> Tensor:
        start = perf_counter()
        clusters = kmeans(*arguments, **options)  # type: ignore[arg-type]
        spent.append(perf_counter() - start)
        return clusters

    unified.kmeans = timed
    try:
        model = UniGNN(max_epochs=300, recluster_every=50, alpha=alpha)
        model.fit(task, seed=5, progress=False)
    finally:
        unified.kmeans = kmeans
    return model.history_[0].seconds, spent


def main(names: Sequence[str] = ()) -> None:
    """Measure some of the settings, by default all."""
    keep_freed_memory()  # as the commands do
    results: dict[str, Measured] = {}
    rows: list[list[object]] = []
    more: list[list[object]] = []
    for setting in (*SETTINGS, *LARGE):
        if names and setting.name not in names:
            continue
        task = setting.protocol(setting.graph(), seed=5)
        results[setting.name] = measured = measure(setting, task)
        plain, ours, least, _, clean = measured
        ratios = [ours / plain, setting.target, least, ours / least]
        rows.append([setting.name, setting.alpha, plain, ours, *ratios])
        if clean:
            print(
                f"{setting.name}: floor without examples {clean:.0f} ms, {ours / clean:.2f} times"
            )
        if setting in SETTINGS:
            total, (features, first, *later) = clustering(task, setting.alpha)
            more.append(
                [setting.name, total, sum(later), 100 * sum(later) / total, features, first]
            )
    table(
        "one training epoch in milliseconds, alternating: a PyG GCN step with default Adam;\n"
        "a Uni-GNN epoch with pseudo-labels, validation and fused Adam",
        ["task", "alpha", "PyG GCN", "Uni-GNN", "ratio", "target", "floor", "times the floor"],
        rows,
    )
    profiles(results)
    if not more:
        return
    table(
        "re-clustering every 50 of 300 epochs, seconds (target: at most 10 percent)",
        ["task", "training", "re-clustering", "percent", "once: features", "once: first layer"],
        more,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="TASK", help="such as 'toy 1M'")
    options = parser.parse_args()
    torch.set_num_threads(2)
    load_before = os.getloadavg()[0]
    print(f"Python {platform.python_version()}, torch {torch.__version__}, 2 threads, ", end="")
    print(f"load {load_before:.1f}, commit {commit()}", flush=True)
    main(options.names)
