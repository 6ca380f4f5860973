"""`python -m benchmarks.parity [GRAPH ...]`: scores in memory, from disk and of two processes.

Graphs are data sets, or generated: toy-1000000-0.4 has a million nodes, 40% of its edges within a
class. A tenth of the labels is for training, and as many for validation. Every way of training is a
process of its own, two of them under torchrun. Rows are appended to the CSV file, and those that it
has are not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from time import perf_counter

import torch

from benchmarks.timing import table
from benchmarks.toy_on_disk import pack_toy
from evengraph.core.machine import parse_size
from evengraph.datasets import load
from evengraph.disk import PackedGraph, is_packed, pack_graph, unpack_graph
from evengraph.disk.models import DiskGraph
from evengraph.methods import METHODS
from evengraph.metrics.multiclass import balanced_accuracy, confusion_matrix
from evengraph.pipeline.executor import describe
from evengraph.pipeline.parameters import parse_seeds
from evengraph.splits import Natural
from evengraph.training.ranks import joined_ranks

WAYS = ("memory", "disk", "two ranks")
GRAPHS = ("pubmed", "physics", "toy-1000000-0.4")
NAMES = ("graph", "method", "way", "limit", "seed", "rows", "bacc", "rare_recall", "epochs")
COLUMNS = (*NAMES, "seconds", "machine", "commit")


def packed(name: str, folder: Path) -> PackedGraph:
    """A graph by its name, packed once."""
    path = folder / name
    if is_packed(path):
        return PackedGraph.open(path)
    if name.startswith("toy-"):
        nodes, homophily = name.removeprefix("toy-").split("-")
        return pack_toy(path, num_nodes=int(nodes), degree=20, homophily=float(homophily))
    return pack_graph(load(name), path)


def fit_all(options: argparse.Namespace, way: str) -> None:
    """Fit all methods and seeds that have no row yet, in one way."""
    graph_name = options.graphs[0]
    graph = packed(graph_name, options.folder)
    with joined_ranks() as ranks:
        for method in options.methods.split(","):
            for seed in parse_seeds(options.seeds):
                key = [graph_name, method, way, options.memory, str(seed)]
                full = [*key, str(options.epochs)]  # a fit that stopped early is run again
                if ranks.once(lambda full=full: full in done(options.out)):  # type: ignore[misc]
                    continue
                started = perf_counter()
                if way == "memory":
                    values = fit_in_memory(graph, method, seed, options)
                else:
                    disk = DiskGraph.open(graph, parse_size(options.memory), ranks=ranks)
                    values = fit_from_disk(disk, method, seed, options)
                seconds = round(perf_counter() - started, 1)
                commit = describe(torch.device("cpu"))["commit"]
                machine = f"{os.cpu_count()} cores {platform.machine()}, torch {torch.__version__}"
                if not ranks.rank:
                    append(options.out, [*key, *values, seconds, machine, commit])


def fit_in_memory(graph: PackedGraph, name: str, seed: int, options: argparse.Namespace) -> list:
    """Rows, scores and epochs of a fit to the whole graph."""
    whole = unpack_graph(graph)
    task = Natural(train=options.share, val=options.share)(whole, seed=seed)
    method = METHODS[name](max_epochs=options.epochs).fit(task, seed=seed, progress=False)
    predicted = method.predict_proba(whole)[task.test].argmax(1)
    return [whole.num_nodes, *scores(task, predicted), method.history_[0].epochs]


def fit_from_disk(disk: DiskGraph, name: str, seed: int, options: argparse.Namespace) -> list:
    """The same within a limit of memory, by one process or several."""
    task = Natural(train=options.share, val=options.share)(disk.labels(), seed=seed)
    method = METHODS[name](max_epochs=options.epochs)
    disk.fit(method, task, seed=seed, progress=False)
    predicted = disk.predict_nodes(method, task.test.nonzero().squeeze(1)).argmax(1)
    rows = " ".join(method.notes_) or str(disk.packed.num_nodes)
    return [rows, *scores(task, predicted), method.history_[0].epochs]


def scores(task, predicted: torch.Tensor) -> list[float]:
    """Balanced accuracy, and recall of the class with the fewest training nodes, in percent."""
    matrix = confusion_matrix(task.graph.y[task.test], predicted, task.num_classes)
    rare = int(task.class_counts.argmin())
    recall = matrix[rare, rare] / matrix[rare].sum()
    return [round(100 * float(value), 3) for value in (balanced_accuracy(matrix), recall)]


def done(path: Path) -> list[list[str]]:
    """The keys of the rows in the file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        names = (*NAMES[:5], "epochs")
        return [[row[name] for name in names] for row in csv.DictReader(file)]


def append(path: Path, row: list[object]) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        writer.writerow(row)


def show(path: Path) -> None:
    """Print means over seeds, and how far they are from memory."""
    values: dict[tuple[str, ...], dict[str, list[dict[str, str]]]]
    values = defaultdict(lambda: defaultdict(list))
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            setting = tuple(row[name] for name in ("graph", "method", "epochs"))
            values[setting][row["way"]].append(row)
    rows: list[list[object]] = []
    for setting, ways in values.items():
        base = {}
        for way in (way for way in WAYS if way in ways):
            names = ("bacc", "rare_recall")
            means = [fmean(float(row[name]) for row in ways[way]) for name in names]
            base[way] = means
            away = [f"{a - b:+.2f}" for a, b in zip(means, base.get("memory", means), strict=True)]
            shown = [f"{means[0]:.2f}", away[0], f"{means[1]:.2f}", away[1]]
            rows.append([*setting, way, len(ways[way]), *shown])
    header = ["graph", "method", "epochs", "way", "seeds", "bAcc", "away", "rare recall", "away"]
    table("Means over seeds, percent", header, rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("graphs", nargs="*", default=GRAPHS)
    parser.add_argument("--methods", default="unison")
    parser.add_argument("--memory", default="1GB", help="limit of each process on disk")
    parser.add_argument("--seeds", default="0-4")
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--share", type=float, default=0.1, help="of labels to train on")
    parser.add_argument("--folder", type=Path, help="where packed graphs stay")
    parser.add_argument("--out", type=Path, default=Path("results/parity.csv"))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        fit_all(options, options.worker)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for graph in options.graphs:
            packed(graph, folder)
            for way in options.ways.split(","):
                ranks = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
                start = [sys.executable, "-W", "ignore", "-m", *(ranks if "ranks" in way else [])]
                words = ["--worker", way, "--folder", str(folder), "--out", str(options.out)]
                for name in ("methods", "memory", "seeds", "epochs", "share"):
                    words += [f"--{name}", str(getattr(options, name))]
                subprocess.run([*start, "benchmarks.parity", graph, *words], check=True)
    show(options.out)


if __name__ == "__main__":
    main()
