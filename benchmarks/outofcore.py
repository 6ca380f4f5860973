"""`python -m benchmarks.outofcore`: a graph on disk, stage by stage, each in its own process.

Prints time and peak memory of packing, propagation, training and prediction from disk within a
limit of memory, and of the same propagation in memory.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import perf_counter

import torch

from benchmarks.timing import table
from benchmarks.toy_on_disk import pack_toy
from evengraph.core.machine import format_size, parse_size
from evengraph.core.task import Task
from evengraph.disk import PackedGraph, unpack_graph
from evengraph.disk.models import DiskGraph, write_predictions
from evengraph.disk.propagation import Walk
from evengraph.methods import METHODS
from evengraph.metrics.multiclass import balanced_accuracy, confusion_matrix
from evengraph.ops.sparse import diffuse, neighbour_means, propagation_matrix, weighted_adjacency
from evengraph.pipeline.model_info import load_model
from evengraph.pipeline.table_model import TableModel
from evengraph.splits import Natural

STAGES = ("nothing", "pack", "propagate", "propagate again", "in memory", "fit", "predict")
STEPS, TELEPORT, HOPS = 20, 0.1, 2
METHOD, EPOCHS = "unison", 100
SEEDS = range(5)


def _task(disk: DiskGraph) -> Task:
    return Natural(train=0.1, val=0.1)(disk.labels(), seed=0)


def _propagate(disk: DiskGraph) -> None:
    disk.space.propagate(disk.x, Walk("symmetric", STEPS, TELEPORT))
    disk.space.propagate(disk.x, Walk("mean", HOPS))


def _propagate_in_memory(folder: Path) -> None:
    """The same products, as in-memory methods compute them."""
    graph, device = unpack_graph(PackedGraph.open(folder)), torch.device("cpu")
    started = perf_counter()
    matrix = weighted_adjacency(graph)
    diffuse(propagation_matrix(matrix, device), graph.x, STEPS, TELEPORT)
    diffuse(neighbour_means(matrix, device), graph.x, HOPS, 0.0)
    print(f"without reading {perf_counter() - started:.1f} s", file=sys.stderr)


def _fit(disk: DiskGraph, folder: Path) -> None:
    method, task = METHODS[METHOD](max_epochs=EPOCHS), _task(disk)
    started = perf_counter()
    disk.fit(method, task, seed=0, progress=False)
    epochs, seconds = method.history_[0].epochs, perf_counter() - started
    print(f"{epochs} epochs of {seconds:.1f} s: {method.history_[0].seconds:.1f}", file=sys.stderr)
    method.save(folder)
    part, probabilities = disk.predict_task(method, task)
    matrix = confusion_matrix(
        part.graph.y[part.test], probabilities[part.test].argmax(1), task.num_classes
    )
    print(f"test balanced accuracy {100 * balanced_accuracy(matrix):.2f}", file=sys.stderr)
    print(*method.notes_, file=sys.stderr)


def _compare(folder: Path, nodes: int, degree: int, memory: int) -> None:
    """Test scores of a fit in memory and of one that sees a sample of rows, by seed."""
    packed = pack_toy(folder / "graph", num_nodes=nodes, degree=degree)
    graph, disk, rows = unpack_graph(packed), DiskGraph.open(packed, memory), []
    params = {"max_epochs": EPOCHS, "views": "structural,ego"}
    for seed in SEEDS:
        task, split = (
            Natural(train=0.3, val=0.1)(each, seed=seed) for each in (graph, disk.labels())
        )
        labels, rare = task.graph.y[task.test], int(task.class_counts.argmin())
        whole = METHODS[METHOD](**params).fit(task, seed=seed).predict_proba(graph)[task.test]
        method = disk.fit(METHODS[METHOD](**params), split, seed=seed, progress=False)
        part = disk.predict_nodes(method, split.test.nonzero().squeeze(1))
        scores = [
            confusion_matrix(labels, each.argmax(1), task.num_classes) for each in (whole, part)
        ]
        rows.append([seed, *(100 * float(balanced_accuracy(each)) for each in scores)])
        rows[-1] += [100 * float(each[rare, rare] / each[rare].sum()) for each in scores]
    header = ["seed", "bAcc in memory", "from disk", "rare recall in memory", "from disk"]
    table(f"{nodes:,} nodes, {format_size(memory)}; {method.notes_[0]}", header, rows)


def run_stage(stage: str, folder: Path, options: argparse.Namespace, memory: int) -> None:
    """Run one stage and print seconds and the peak of resident memory, in bytes."""
    graph, model = folder / "graph", folder / "model"
    started = perf_counter()
    if stage == "pack":
        pack_toy(
            graph,
            num_nodes=options.nodes,
            degree=options.degree,
            homophily=options.homophily,
            memory=max(memory, 2**31),
        )
    elif stage == "in memory":
        _propagate_in_memory(graph)
    elif stage != "nothing":
        disk = DiskGraph.open(PackedGraph.open(graph), memory, device=options.device)
        if stage.startswith("propagate"):
            _propagate(disk)
        elif stage == "fit":
            _fit(disk, model)
        else:
            table_model = TableModel(load_model(model))
            table_model.method_ = load_model(model)
            write_predictions(table_model, disk, folder / "predictions.csv")
    if options.device != "cpu":
        used = format_size(torch.cuda.max_memory_allocated())
        print(f"{stage}: {used} of the GPU", file=sys.stderr)
    print(perf_counter() - started, getrusage(RUSAGE_SELF).ru_maxrss * 1024)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--degree", type=int, default=20)
    parser.add_argument("--homophily", type=float, default=0.8)
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--stage")
    parser.add_argument("--scores", action="store_true", help="compare test scores with memory")
    options = parser.parse_args()
    memory = parse_size(options.memory)
    torch.set_num_threads(options.threads)
    if options.scores:
        with tempfile.TemporaryDirectory() as temporary:
            _compare(Path(temporary), options.nodes, options.degree, memory)
        return
    if options.stage:
        run_stage(options.stage, options.folder, options, memory)
        return
    folder = options.folder or Path(tempfile.mkdtemp(prefix="evengraph-"))
    try:
        rows = []
        for stage in options.stages.split(","):
            command = [sys.executable, "-W", "ignore", "-m", "benchmarks.outofcore"]
            command += [*sys.argv[1:], "--stage", stage, "--folder", str(folder)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            seconds, peak = done.stdout.split()[-2:]
            rows.append([stage, float(seconds), format_size(float(peak))])
            print(stage, *rows[-1][1:], file=sys.stderr)
        title = f"{options.nodes:,} nodes, degree {options.degree}, 64 features, {options.memory}"
        title += f", {options.device}"
        print(
            f"Python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} cores"
        )
        table(f"{title}; peaks include Python and torch", ["stage", "seconds", "peak"], rows)
    finally:
        if options.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
