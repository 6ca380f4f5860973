"""Labelling curves: scores against the number of labels, for every strategy of `suggest`.

    python results/labelling.py                 # all graphs and starts that the file lacks
    python results/labelling.py --merge         # join the parts to labelling.csv
    python results/labelling.py --expected      # what the learning curve expects, and what comes
    export OMP_NUM_THREADS=1 EVENGRAPH_DATA=DATA
    python results/labelling.py --list | xargs -P 16 -L 1 python results/labelling.py

DATA holds the graphs in PyG's layout and the folders `twitch-ru` and `twitch-es`. A start is a
random half of the nodes to test on and 20 random labels in the other half; each strategy then
chooses 20 nodes at a time, the labels are revealed, and the quick committee of `suggest` is fitted
again. One (graph, start) is one part, a file in `labelling/`; strategies that it has are not run
again. On 16 cores all of it takes minutes. Then `python results/draw_labelling.py` draws the page.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.files import csv_text, write_atomic
from evengraph.datasets import load
from evengraph.experiment.environment import describe
from evengraph.labelling import STRATEGIES, Pool, learning_curve
from evengraph.labelling.suggestions import choose_nodes, gather
from evengraph.metrics import average_precision, balanced_accuracy, confusion_matrix

HERE = Path(__file__).parent
GRAPHS = ("cora", "citeseer", "pubmed", "computers", "physics", "twitch-ru", "twitch-es")
STARTS = range(10)
FIRST, BATCH, LAST = 20, 20, 200


@cache
def graph_of(name: str) -> Data:
    """A graph by its name; of the raw tables, partner is the label."""
    if not name.startswith("twitch"):
        return load(name)
    import pandas

    from evengraph.tables import from_frames

    folder = Path(os.environ["EVENGRAPH_DATA"]) / name
    nodes, edges = (pandas.read_csv(folder / f"{part}.csv") for part in ("target", "edges"))
    nodes = nodes.drop(columns="id")  # the lists of features.json give the label away
    return from_frames(nodes, edges, label="partner", id="new_id").graph


def start_of(labels: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Test nodes, half of each class, (N,), and the first labelled ones, of two classes or more."""
    stream, test = random.Random(seed), torch.zeros(len(labels), dtype=torch.bool)
    for label in range(int(labels.max()) + 1):
        nodes = (labels == label).nonzero().squeeze(1).tolist()
        test[stream.sample(nodes, len(nodes) // 2)] = True
    others = (~test & (labels >= 0)).nonzero().squeeze(1).tolist()
    while True:
        first = torch.tensor(stream.sample(others, FIRST))
        if len(labels[first].unique()) > 1:
            return test, first


def curve(pool: Pool, strategy: str, seed: int) -> Iterator[dict[str, Any]]:
    """One row per number of labels."""
    truth = pool.labels
    rare = int(truth[truth >= 0].bincount().argmin())
    test, first = start_of(truth, seed)
    held = (test | (truth < 0)).nonzero().squeeze(1).tolist()
    labels = torch.where(torch.isin(torch.arange(len(truth)), first), truth, -1)
    while True:
        evidence = gather(pool, labels, held, budget=BATCH, seed=seed)
        count = int((labels >= 0).sum())
        scores = _scores(truth[test], evidence.probabilities[test])
        found = int((labels == rare).sum())
        yield {
            "labels": count,
            **scores,
            "rare": found,
            "classes": int((evidence.counts > 0).sum()),
        }
        if count >= LAST:
            return
        chosen = choose_nodes(evidence, strategy)[0]
        labels[chosen] = truth[chosen]


def _scores(labels: Tensor, probabilities: Tensor) -> dict[str, float]:
    confusion = confusion_matrix(labels, probabilities.argmax(1), probabilities.shape[1])
    values = balanced_accuracy(confusion), average_precision(labels, probabilities)
    return dict(
        zip(("bacc", "ap"), (round(100 * float(value), 3) for value in values), strict=True)
    )


@cache
def pool_of(name: str) -> Pool:
    """A graph that has been prepared once for all starts."""
    return Pool.open(graph_of(name))


def run(graph: str, start: int, strategies: Sequence[str], folder: Path) -> Path:
    """Add the strategies that the part of a graph and start lacks."""
    path = folder / f"{graph}-{start}.csv"
    rows = _read(path) if path.exists() else []
    missing = [name for name in strategies if name not in {row["strategy"] for row in rows}]
    if not missing:
        return path
    about = describe(torch.device("cpu"))
    machine = f"{platform.machine()}, torch {about['torch']}, {os.cpu_count()} cores"
    folder.mkdir(exist_ok=True)
    for strategy in missing:
        rows += [
            {"graph": graph, "strategy": strategy, "seed": start}
            | row
            | {"commit": about["commit"], "machine": machine}
            for row in curve(pool_of(graph), strategy, start)
        ]
        write_atomic(csv_text(rows).encode(), path)
    return path


def expect(graph: str, start: int) -> dict[str, Any]:
    """What the learning curve of 100 random labels expects of 100 more, and what they bring."""
    pool, truth = pool_of(graph), pool_of(graph).labels
    test, _ = start_of(truth, start)
    others = (~test & (truth >= 0)).nonzero().squeeze(1).tolist()
    nodes = random.Random(start).sample(others, LAST)
    scores = []
    for count in (LAST // 2, LAST):
        labels = torch.full_like(truth, -1)
        labels[nodes[:count]] = truth[nodes[:count]]
        evidence = gather(pool, labels, seed=start)
        scores.append(_scores(truth[test], evidence.probabilities[test])["bacc"])
        if count < LAST:
            found = learning_curve(pool, labels=labels, more=(LAST - count,), seed=start)
    row: dict[str, Any] = {"graph": graph, "seed": start, "now": scores[0], "later": scores[1]}
    for name, point in (("now", found.now), ("later", found.expected[0])):
        row |= {f"{name}_{key}": round(getattr(point, key), 2) for key in ("score", "low", "high")}
    last = found.expected[0]
    gains = {"gain": last.gain, "gain_low": last.gain_low, "gain_high": last.gain_high}
    return row | {name: round(value, 2) for name, value in gains.items()}


def _read(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def merge(folder: Path, path: Path) -> None:
    """All parts as one file."""
    rows = [row for part in sorted(folder.glob("*.csv")) for row in _read(part)]
    write_atomic(csv_text(rows).encode(), path)


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graph", nargs="?", help="only this graph")
    parser.add_argument("start", nargs="?", type=int, help="only this start")
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--folder", type=Path, default=HERE / "labelling")
    parser.add_argument("--list", action="store_true", help="print one line per part")
    parser.add_argument("--merge", action="store_true", help="join the parts")
    parser.add_argument("--expected", action="store_true", help="check the learning curve instead")
    options = parser.parse_args()
    graphs = GRAPHS if options.graph is None else (options.graph,)
    starts = STARTS if options.start is None else (options.start,)
    jobs = [(graph, start) for graph in graphs for start in starts]
    if options.list:
        print("\n".join(f"{graph} {start}" for graph, start in jobs))
    elif options.merge:
        merge(options.folder, options.folder.with_suffix(".csv"))
    elif options.expected:
        commit = describe(torch.device("cpu"))["commit"]
        rows = [expect(graph, start) | {"commit": commit} for graph, start in jobs]
        path = HERE / "labelling-expected.csv"
        before = _read(path) if path.exists() else []
        rows = [row for row in before if row["graph"] not in graphs] + rows
        write_atomic(csv_text(rows).encode(), path)
    else:
        torch.set_num_threads(1)
        for graph, start in jobs:
            print(run(graph, start, options.strategies.split(","), options.folder), flush=True)


if __name__ == "__main__":
    main()
