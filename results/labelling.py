"""Labelling curves: scores against the number of labels, for every strategy of `suggest`.

    export OMP_NUM_THREADS=1 EVENGRAPH_DATA=DATA
    python results/labelling.py                       # all units that have not been run
    python results/labelling.py --list | xargs -P 16 -L 1 python results/labelling.py
    python results/labelling.py --merge               # join the units to labelling.csv
    python results/labelling.py --expected            # what the learning curve expects, what comes

DATA holds the graphs in PyG's layout and the folders `twitch-ru` and `twitch-es`. A start is a
random half of the nodes to test on, and no label: each strategy chooses 10 nodes of the other half
at a time, the labels are revealed, and the quick committee of `suggest` is fitted again. Strategies
that need a model begin with random nodes. A unit is one graph, strategy and start, and one file in
`labelling/`; units are listed longest first. The Twitch tables are stored there as arrays, so that
machines without pandas can run them. Then `python results/draw_labelling.py` draws the page.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import random
from collections.abc import Iterator, Sequence
from functools import cache
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.files import csv_text, write_atomic
from evengraph.datasets import load
from evengraph.desk import STRATEGIES, Pool, learning_curve
from evengraph.desk.strategies import Evidence
from evengraph.desk.suggestions import choose_nodes, gather
from evengraph.metrics import average_precision, balanced_accuracy, confusion_matrix
from evengraph.pipeline.executor import describe

HERE = Path(__file__).parent
Unit = tuple[str, str, int]  # graph, strategy, start
GRAPHS = ("physics", "pubmed", "computers", "citeseer", "cora", "twitch-es", "twitch-ru")
STARTS = range(10)
BATCH, LAST = 10, 200
TABLES = "twitch"  # what the names of the raw tables start with


@cache
def graph_of(name: str, folder: Path) -> Data:
    """A graph by its name; of the raw tables, partner is the label."""
    if not name.startswith(TABLES):
        return load(name)
    path = folder / f"{name}.npz"
    if not path.exists():
        graph = _read_tables(name)
        arrays = {part: graph[part].numpy() for part in ("x", "edge_index", "y")}
        folder.mkdir(exist_ok=True)
        buffer = BytesIO()
        np.savez_compressed(buffer, **arrays)
        write_atomic(buffer.getvalue(), path)
    return Data(**{part: torch.from_numpy(array) for part, array in np.load(path).items()})


def _read_tables(name: str) -> Data:
    import pandas

    from evengraph.tables import from_frames

    folder = Path(os.environ["EVENGRAPH_DATA"]) / name
    nodes, edges = (pandas.read_csv(folder / f"{part}.csv") for part in ("target", "edges"))
    nodes = nodes.drop(columns="id")  # the lists of features.json give the label away
    return from_frames(nodes, edges, label="partner", id="new_id").graph


def test_nodes(labels: Tensor, seed: int) -> Tensor:
    """Half of each class, bool, (N,)."""
    stream, test = random.Random(seed), torch.zeros(len(labels), dtype=torch.bool)
    for label in range(int(labels.max()) + 1):
        nodes = (labels == label).nonzero().squeeze(1).tolist()
        test[stream.sample(nodes, len(nodes) // 2)] = True
    return test


def curve(pool: Pool, strategy: str, seed: int) -> Iterator[dict[str, Any]]:
    """One row per number of labels."""
    truth = pool.labels
    rare = int(truth[truth >= 0].bincount().argmin())
    test, labels = test_nodes(truth, seed), torch.full_like(truth, -1)
    held = (test | (truth < 0)).nonzero().squeeze(1).tolist()
    evidence = gather(pool, labels, held, budget=BATCH, seed=seed)
    for count in range(BATCH, LAST + 1, BATCH):
        blind = STRATEGIES[strategy].needs_model and evidence.probabilities is None
        chosen = choose_nodes(evidence, "random" if blind else strategy)[0]
        labels[chosen] = truth[chosen]
        evidence = gather(pool, labels, held, budget=BATCH, seed=seed)
        yield {
            "labels": count,
            **_scores(truth, evidence, test),
            "rare": int((labels == rare).sum()),
            "classes": int((evidence.counts > 0).sum()),
        }


def _scores(truth: Tensor, evidence: Evidence, test: Tensor) -> dict[str, float]:
    """In percent; without a model all classes are equally probable."""
    number = evidence.num_classes
    found = evidence.probabilities
    probabilities = torch.full((len(truth), number), 1 / number) if found is None else found
    labels, probabilities = truth[test], probabilities[test]
    confusion = confusion_matrix(labels, probabilities.argmax(1), number)
    values = balanced_accuracy(confusion), average_precision(labels, probabilities)
    return dict(
        zip(("bacc", "ap"), (round(100 * float(value), 3) for value in values), strict=True)
    )


@cache
def pool_of(name: str, folder: Path) -> Pool:
    """A graph that has been prepared once for all units of this process."""
    return Pool.open(graph_of(name, folder))


def run(unit: Unit, folder: Path) -> None:
    """Run a unit whose file does not exist."""
    graph, strategy, start = unit
    path = folder / f"{graph}-{strategy}-{start}.csv"
    if path.exists():
        return
    about = describe(torch.device("cpu"))
    machine = f"{platform.machine()}, torch {about['torch']}, {os.cpu_count()} cores"
    first = {"graph": graph, "strategy": strategy, "seed": start}
    last = {"commit": about["commit"], "machine": machine}
    rows = [first | row | last for row in curve(pool_of(graph, folder), strategy, start)]
    folder.mkdir(exist_ok=True)
    write_atomic(csv_text(rows).encode(), path)
    print(path, flush=True)


def expect(graph: str, start: int, folder: Path) -> dict[str, Any]:
    """What the learning curve of 100 random labels expects of 100 more, and what they bring."""
    pool = pool_of(graph, folder)
    truth = pool.labels
    test = test_nodes(truth, start)
    others = (~test & (truth >= 0)).nonzero().squeeze(1).tolist()
    nodes = random.Random(start).sample(others, LAST)
    scores = []
    for count in (LAST // 2, LAST):
        labels = torch.full_like(truth, -1)
        labels[nodes[:count]] = truth[nodes[:count]]
        evidence = gather(pool, labels, seed=start)
        scores.append(_scores(truth, evidence, test)["bacc"])
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
    parser.add_argument("strategy", nargs="?", help="only this strategy, or several: a,b")
    parser.add_argument("start", nargs="?", type=int, help="only this start")
    parser.add_argument("--folder", type=Path, default=HERE / "labelling")
    parser.add_argument("--list", action="store_true", help="print one line per unit")
    parser.add_argument("--merge", action="store_true", help="join the units")
    parser.add_argument("--expected", action="store_true", help="check the learning curve instead")
    options = parser.parse_args()
    graphs = GRAPHS if options.graph is None else (options.graph,)
    strategies = tuple(STRATEGIES) if options.strategy is None else options.strategy.split(",")
    starts = STARTS if options.start is None else (options.start,)
    units = list(product(graphs, strategies, starts))
    if options.list:
        for name in graphs:
            if name.startswith(TABLES):  # become arrays before the first unit needs them
                graph_of(name, options.folder)
        print("\n".join(" ".join(map(str, unit)) for unit in units))
    elif options.merge:
        merge(options.folder, options.folder.with_suffix(".csv"))
    elif options.expected:
        expect_all(graphs, starts, options.folder)
    else:
        torch.set_num_threads(1)
        for unit in units:
            run(unit, options.folder)


def expect_all(graphs: Sequence[str], starts: Sequence[int], folder: Path) -> None:
    """Replace the rows of some graphs."""
    path = HERE / "labelling-expected.csv"
    commit = describe(torch.device("cpu"))["commit"]
    before = [row for row in _read(path) if row["graph"] not in graphs]
    rows = [expect(*job, folder) | {"commit": commit} for job in product(graphs, starts)]
    write_atomic(csv_text(before + rows).encode(), path)


if __name__ == "__main__":
    main()
