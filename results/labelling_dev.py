"""Development of the default of `suggest`: curves on graphs that no result is reported on.

    export OMP_NUM_THREADS=1 EVENGRAPH_DATA=DATA
    python results/labelling_dev.py default 12   # this strategy and random labelling, 12 starts
    python results/labelling_dev.py --compare    # all trials against random and the default

A trial is a strategy of `STRATEGIES`, or one of a development version that a name describes. Curves
are those of `labelling.py`. `labelling-dev.csv` holds one row per graph, trial and start: scores
and labels of the rarest class with 10, 20, ..., 200 labels. Trials with another PENALTY changed the
quick committee itself: compare them with random labelling under the same PENALTY.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from labelling import BATCH, curve
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from evengraph.core.files import csv_text, write_atomic
from evengraph.core.rng import generator
from evengraph.datasets import load, toy
from evengraph.desk import Pool

FILE = Path(__file__).with_name("labelling-dev.csv")
SCORES = ("bacc", "ap", "rare")
BASELINES = ("random", "default")
HUNDRED = 100 // BATCH - 1  # index of 100 labels


def merged(graph: Data, groups: Sequence[Sequence[int]]) -> Data:
    """Join classes."""
    labels = graph.y.clone()
    for number, classes in enumerate(groups):
        labels[torch.isin(graph.y, torch.tensor(classes))] = number
    return Data(x=graph.x, edge_index=graph.edge_index, y=labels)


def thinned(graph: Data, sizes: Sequence[int], seed: int = 0) -> Data:
    """The graph of so many random nodes of each class; a class of size 0 is left out."""
    stream, parts = generator(seed), []
    for label, size in enumerate(sizes):
        nodes = (graph.y == label).nonzero().squeeze(1)
        parts.append(nodes[torch.randperm(len(nodes), generator=stream)[:size]])
    nodes = torch.cat(parts).sort().values
    edges, _ = subgraph(nodes, graph.edge_index, relabel_nodes=True, num_nodes=graph.num_nodes)
    labels = graph.y[nodes].unique(return_inverse=True)[1]
    return Data(x=graph.x[nodes], edge_index=edges, y=labels)


def sparser(graph: Data, edges: float, features: float, seed: int = 0) -> Data:
    """A random part of the edges, and of the entries of the features."""
    stream, pairs = generator(seed), graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    pairs = pairs[:, torch.rand(pairs.shape[1], generator=stream) < edges]
    x = graph.x * (torch.rand(graph.x.shape, generator=stream) < features)
    return Data(x=x, edge_index=torch.cat([pairs, pairs.flip(0)], 1), y=graph.y)


def table(seed: int, size: int, share: float, noise: float) -> Data:
    """A rare class in three columns, with hubs and few edges to the others."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(size) < share).astype(np.int64)
    views = np.exp(rng.normal(5 + 2.2 * labels, 1.6 * noise))
    days = np.exp(rng.normal(6.8 + 0.4 * labels, 0.7))
    flag = (rng.random(size) < 0.45 + 0.1 * labels).astype(float)
    popular = np.exp(rng.normal(0.9 * labels, 1.2))
    pairs = rng.choice(size, (2, 12 * size), p=popular / popular.sum())
    pairs = pairs[:, pairs[0] != pairs[1]]
    same = labels[pairs[0]] == labels[pairs[1]]
    pairs = pairs[:, same | (rng.random(pairs.shape[1]) < 0.6)]
    columns = np.stack([np.log1p(views), np.log1p(days), flag], 1)
    columns = (columns - columns.mean(0)) / columns.std(0)
    edges = np.unique(np.concatenate([pairs, pairs[::-1]], 1), axis=1)
    arrays = columns.astype(np.float32), edges, labels
    x, edge_index, y = map(torch.from_numpy, arrays)
    return Data(x=x, edge_index=edge_index, y=y)


GRAPHS: dict[str, Callable[[], Data]] = {
    "cora_ml": lambda: load("cora_ml"),
    "cora_ml 3": lambda: merged(load("cora_ml"), [(0, 6), (1, 4), (2, 3, 5)]),
    "cora_ml thin": lambda: thinned(load("cora_ml"), [354, 100, 452, 200, 857, 60, 295]),
    "cora_ml sparse": lambda: sparser(load("cora_ml"), 0.35, 0.6),
    "dblp 3": lambda: thinned(load("dblp"), [1900, 1850, 1000, 0]),
    "dblp 3b": lambda: thinned(load("dblp"), [3750, 3700, 0, 1980], 1),
    "dblp thin": lambda: thinned(load("dblp"), [3200, 2000, 400, 900], 2),
    "toy 10": lambda: toy(5000, 60000, 500, 10, 1, homophily=0.5, size_ratio=0.06),
    "blogcatalog": lambda: load("blogcatalog"),
    "blogcatalog thin": lambda: thinned(load("blogcatalog"), [885, 400, 200, 858, 300, 110]),
    "table 1": lambda: table(1, 5000, 0.12, 1.0),
    "table 2": lambda: table(2, 4000, 0.08, 1.3),
    "minesweeper": lambda: load("minesweeper"),
}


@cache
def pool_of(name: str) -> Pool:
    """A development graph, prepared once."""
    return Pool.open(GRAPHS[name]())


def read() -> list[dict[str, Any]]:
    """Rows of the stored trials."""
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def run(trials: Sequence[str], starts: int) -> None:
    """Add what has not been run."""
    rows = read() if FILE.exists() else []
    stored = {(row["graph"], row["trial"], int(row["start"])) for row in rows}
    for graph in GRAPHS:
        for trial in trials:
            for start in range(starts):
                if (graph, trial, start) in stored:
                    continue
                points = list(curve(pool_of(graph), trial, start))
                texts = {key: " ".join(f"{row[key]:.4g}" for row in points) for key in SCORES}
                rows.append({"graph": graph, "trial": trial, "start": start, **texts})
        write_atomic(csv_text(rows).encode(), FILE)


def compare() -> None:
    """Print the means over graphs, on the starts that a trial shares with the baselines."""
    curves: dict[str, dict[str, dict[int, Tensor]]] = {}
    for row in read():
        values = torch.tensor([[float(value) for value in row[key].split()] for key in SCORES])
        starts = curves.setdefault(row["trial"], {}).setdefault(row["graph"], {})
        starts[int(row["start"])] = values
    for trial, graphs in curves.items():
        parts = [_against(curves, trial, graph) for graph in graphs]
        mean = torch.stack([part for part, _ in parts]).mean(0).tolist()
        error = torch.stack([part for _, part in parts]).square().sum(0).sqrt() / len(parts)
        wide = (1.96 * error).tolist()
        gains = [f"{mean[3 + i]:+.2f} ± {wide[i]:.2f}" for i in range(2)]
        print(
            f"{trial}: {len(parts)} graphs, labels for random's 200 {mean[0]:.0f}, {mean[1]:.0f}, "
            f"rarest class {mean[2]:.2f}, mean over the curve less the default's {', '.join(gains)}"
        )


def _against(curves: dict[str, Any], trial: str, graph: str) -> tuple[Tensor, Tensor]:
    """Labels needed (bAcc, AP; 220: never), rarest class over random's, gains; standard errors."""
    shared = sorted(curves[trial][graph])
    own, random, default = (
        torch.stack([curves[name][graph][start] for start in shared])
        for name in (trial, *BASELINES)
    )  # (starts, 3, points)
    last = own.shape[2]
    reached = own.mean(0)[:2] >= random.mean(0)[:2, -1:]
    first = [int(row.nonzero()[0]) + 1 if row.any() else last + 2 for row in reached]
    rare = own[:, 2, HUNDRED].mean() / random[:, 2, HUNDRED].mean()
    gains = (own - default)[:, :2].mean(2)
    values = [*(float(BATCH * number) for number in first), float(rare), *gains.mean(0).tolist()]
    return torch.tensor(values), gains.std(0) / len(shared) ** 0.5


def main() -> None:
    """Run trials or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("strategy", nargs="?", default="default")
    parser.add_argument("starts", nargs="?", type=int, default=12)
    parser.add_argument("--compare", action="store_true", help="print what is stored")
    options = parser.parse_args()
    if options.compare:
        compare()
    else:
        torch.set_num_threads(1)
        run(dict.fromkeys((*BASELINES, options.strategy)), options.starts)


if __name__ == "__main__":
    main()
