"""The paper's whole grid of Uni-GNN: 40 settings, 14 set-ups, 3 seeds, on one card.

`python -m benchmarks.grid OUT.csv [GRAPH ...]` adds a row to the file the moment a run ends; runs
that the file holds already are left out. Runs of one graph and one alpha are trained side by side;
PubMed, which keeps the card busy, takes turns with the small graphs, which keep the host busy.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

warnings.simplefilter("ignore")  # PyG's and torch's own, about each other

from evengraph.data import load  # noqa: E402
from evengraph.imbalance import LongTail, Step  # noqa: E402
from evengraph.methods import UniGNN, fit_many  # noqa: E402
from evengraph.metrics import evaluate, validation_score  # noqa: E402
from evengraph.task import Task  # noqa: E402

SEEDS = (5, 6, 7)
GRID = {
    "alpha": (1, 2),
    "clusters_per_class": (3, 4, 10, 20, 30),
    "threshold": (0.5, 0.7),
    "recluster_every": (50, 100),
}
MINORITIES = {"cora": (3, 5), "citeseer": (3, 5), "pubmed": (1, 2)}
ORDER = [
    ("pubmed", 1),
    ("cora", 1),
    ("cora", 2),
    ("pubmed", 2),
    ("citeseer", 1),
    ("citeseer", 2),
]
TESTED = ("balanced_accuracy", "macro_f1", "g_mean")
KEYS = ("dataset", "imbalance", "minority", "ratio", *GRID, "seed")
COLUMNS = (*KEYS, "validation_macro_f1", *TESTED, "best_epoch", "epochs", "seconds")

Row = dict[str, Any]


def setups(graph: str) -> list[tuple[Row, Step | LongTail]]:
    """The paper's set-ups of a graph: what names them, and the protocol."""
    found: list[tuple[Row, Step | LongTail]] = [
        (
            {"imbalance": "step", "minority": minority, "ratio": ratio},
            Step(minority=minority, ratio=ratio),
        )
        for minority, ratio in product(MINORITIES[graph], (0.1, 0.05))
    ]
    if graph != "pubmed":
        found.append(({"imbalance": "longtail", "minority": "", "ratio": 0.01}, LongTail()))
    return found


def tasks(graph: str, device: str) -> list[tuple[Row, Task]]:
    """Every set-up and seed; equal features and edges are one tensor."""
    data = load(graph)
    found: list[tuple[Row, Task]] = []
    for (names, protocol), seed in product(setups(graph), SEEDS):
        task = protocol(data, seed=seed).to(device)
        for _, other in found:
            for name in ("x", "edge_index"):
                if torch.equal(task.graph[name], other.graph[name]):
                    task.graph[name] = other.graph[name]
        found.append(({"dataset": graph, **names, "seed": seed}, task))
    return found


def missing(graphs: Sequence[str], out: Path, device: str) -> list[tuple[Row, Task]]:
    """The runs that the file lacks, in the order in which their groups take turns."""
    with out.open(newline="") as file:
        done = {_key(row) for row in csv.DictReader(file)}
    every = {graph: tasks(graph, device) for graph in graphs}
    settings = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    turns = [(graph, alpha) for graph, alpha in ORDER if graph in graphs]
    wanted = [
        ({**names, **fields}, task)
        for graph, alpha in turns
        for (names, task), fields in product(every[graph], settings)
        if fields["alpha"] == alpha
    ]
    return [(row, task) for row, task in wanted if _key(row) not in done]


def train(graphs: Sequence[str], out: Path, device: str) -> int:
    """Train what the file lacks; returns how many runs."""
    wanted = missing(graphs, out, device)
    models = [UniGNN(**{name: row[name] for name in GRID}) for row, _ in wanted]
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")

        def ended(place: int) -> None:
            (row, task), model = wanted[place], models[place]
            writer.writerow(row | _outcome(model, task))
            file.flush()
            del model.net_, model.inputs_  # a grid's networks would fill the card

        seeds = [row["seed"] for row, _ in wanted]
        fit_many(models, [task for _, task in wanted], seeds=seeds, on_fit=ended)
    return len(wanted)


def _key(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in KEYS)


def _outcome(model: UniGNN, task: Task) -> Row:
    probabilities = model.predict_proba(task.graph)
    found, history = evaluate(task, probabilities), model.history_[0]
    return {
        "validation_macro_f1": round(100 * float(validation_score(probabilities, task)), 2),
        **{name: round(100 * found[name], 2) for name in TESTED},
        "best_epoch": history.best_epoch,
        "epochs": history.epochs,
        "seconds": round(history.seconds, 1),
    }


def main() -> None:
    out = Path(sys.argv[1])
    if not out.exists():
        out.write_text(",".join(COLUMNS) + "\n")
    start = perf_counter()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    runs = train(sys.argv[2:] or list(MINORITIES), out, device)
    print(f"{runs} runs in {perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
