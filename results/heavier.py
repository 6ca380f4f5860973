"""Unison on the drawn splits of the UNREAL paper: `python results/heavier.py`.

Its authors draw new splits where the public one has too few labels: a number of training nodes per
class, of which the last half of the classes keep one in `ratio`, 30 nodes of each class to
validate on, all others to test on; and 1% of each class of Computers, its natural imbalance.
Features are scaled to sum to one. Runs that `heavier.csv` lacks are added to it.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.datasets import load
from evengraph.methods import METHODS
from evengraph.metrics.evaluation import evaluate
from evengraph.pipeline.executor import describe
from evengraph.pipeline.parameters import parse_seeds
from evengraph.splits.protocols import join_classes

OUT = Path(__file__).with_name("heavier.csv")
HEADER = ("graph", "ratio", "method", "seed", "labels", "balanced_accuracy", "macro_f1", "commit")
VALIDATION = 30  # nodes per class
MINORITY = {"cora": 3, "citeseer": 3, "pubmed": 1, "computers": 5}
PLAIN: dict[str, Any] = {"network": "plain", "normalisation": "symmetric", "hidden": 256}
PLAIN |= {"patience": 300, "max_epochs": 2000}
FIELDS = {"unison": {}, "balancedsoftmax": PLAIN}


class Setting(NamedTuple):
    """A graph, and how many labels a majority class has for one of a minority class."""

    graph: str
    ratio: int  # 0: a hundredth of each class
    majority: int = 0

    def sizes(self, counts: Sequence[int]) -> list[int]:
        """Training nodes of each class."""
        if not self.ratio:
            return [count // 100 for count in counts]
        many = len(counts) - MINORITY[self.graph]
        few = self.majority // self.ratio
        return [self.majority] * many + [few] * MINORITY[self.graph]


SETTINGS = (
    *(Setting(graph, 50, 50) for graph in MINORITY),
    Setting("computers", 0),
    *(Setting("computers", ratio, 20) for ratio in (10, 20)),
    *(Setting(graph, 100, 100) for graph in MINORITY),
)


def split(graph: Data, setting: Setting, seed: int) -> Task:
    """Draw a split."""
    stream, parts = random.Random(seed), []
    for label, size in enumerate(setting.sizes(torch.bincount(graph.y).tolist())):
        nodes = (graph.y == label).nonzero().flatten().tolist()
        stream.shuffle(nodes)
        parts.append((nodes[:size], nodes[size : size + VALIDATION], nodes[size + VALIDATION :]))
    return join_classes(graph, parts)


def scaled(name: str) -> Data:
    """A graph whose features sum to one at each node."""
    graph = load(name)
    graph.x = graph.x / graph.x.sum(dim=1, keepdim=True).clamp(min=1e-12)
    return graph


def main() -> None:
    """Run what the file lacks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--methods", nargs="+", default=list(FIELDS))
    parser.add_argument("--seeds", default="0-9")
    parser.add_argument("--graphs", nargs="+", default=list(MINORITY))
    parser.add_argument("--ratios", nargs="+", default=["50", "0", "10", "20", "100"])
    options = parser.parse_args()
    if not OUT.exists():
        OUT.write_text(",".join(HEADER) + "\n", encoding="utf-8")
    with OUT.open(encoding="utf-8", newline="") as file:
        done = {tuple(row[name] for name in HEADER[:4]) for row in csv.DictReader(file)}
    commit = describe(torch.device("cpu"))["commit"]
    for setting in SETTINGS:
        if setting.graph not in options.graphs or str(setting.ratio) not in options.ratios:
            continue
        graph = scaled(setting.graph)
        for method in options.methods:
            for seed in parse_seeds(options.seeds):
                key = setting.graph, str(setting.ratio), method, str(seed)
                if key not in done:
                    row = *key, *run(split(graph, setting, seed), method, seed), commit
                    with OUT.open("a", encoding="utf-8", newline="") as file:
                        csv.writer(file, lineterminator="\n").writerow(row)


def run(task: Task, method: str, seed: int) -> tuple[str, ...]:
    """Labels, balanced accuracy and Macro-F1 of a fit."""
    build: Callable[..., Any] = METHODS[method]
    model = build(**FIELDS[method]).fit(task, seed=seed, progress=False)
    scores = evaluate(task, model.predict_proba(task.graph))
    values = (f"{100 * scores[name]:.2f}" for name in ("balanced_accuracy", "macro_f1"))
    return str(int(task.train.sum())), *values


if __name__ == "__main__":
    main()
