"""A made-up result and a made-up store, shaped like those of real runs."""

import math
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from made_up import fill

from evengraph.lab.results import ExperimentResults, load_experiments
from evengraph.lab.store import Store
from evengraph.metrics.registry import METRICS

VOID = {"meta", "link", "br", "col", "input"}


@dataclass
class Node:
    """One element of a parsed page."""

    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list["Node | str"] = field(default_factory=list)

    def walk(self) -> Iterator["Node"]:
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def all(self, tag: str, kind: str | None = None) -> list["Node"]:
        wanted = {kind} if kind else set()
        return [n for n in self.walk() if n.tag == tag and wanted <= n.kinds]

    @property
    def kinds(self) -> set[str]:
        return set((self.attributes.get("class") or "").split())

    @property
    def text(self) -> str:
        return "".join(c if isinstance(c, str) else c.text for c in self.children)


class Tree(HTMLParser):
    """Builds nodes and insists that every element is closed in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("#root")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({key for key, _ in attrs}) == len(attrs), f"attribute twice in {tag}"
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse_page(text: str) -> Node:
    tree = Tree()
    tree.feed(text)
    tree.close()
    assert tree.open == [tree.root]
    return tree.root


CORA = [
    "Neural Networks",
    "Probabilistic Methods",
    "Genetic Algorithms",
    "Theory",
    "Case Based",
    "Reinforcement Learning",
    "Rule Learning",
]


def make_result(
    names: list[str] | None = None,
    *,
    classes: int = 7,
    rare: int = 3,
    seeds: tuple[int, ...] = (5, 6, 7),
    epochs: int = 1500,
    paper: bool = True,
) -> dict[str, Any]:
    """Invent a result that looks like a real one; the same arguments give the same result."""
    draw = random.Random(0)
    counts = [20] * (classes - rare) + [2] * rare
    runs = [_run(draw, seed, counts, epochs + 137 * place) for place, seed in enumerate(seeds)]
    keys = list(runs[0]["metrics"])
    mean = {key: math.fsum(run["metrics"][key] for run in runs) / len(runs) for key in keys}
    std = {
        key: math.sqrt(
            math.fsum((run["metrics"][key] - mean[key]) ** 2 for run in runs) / len(runs)
        )
        for key in keys
    }
    published = {
        "balanced_accuracy": {"mean": 76.5, "std": 0.5},
        "macro_f1": {"mean": 75.8, "std": 0.4},
        "g_mean": {"mean": 85.6, "std": 0.3},
    }
    return {
        "schema": 1,
        "evengraph": "0.1.0",
        "created": "2026-11-15T10:00:00+00:00",
        "dataset": {
            "name": "cora",
            "num_nodes": 2708,
            "num_edges": 10556,
            "num_features": 1433,
            "num_classes": classes,
            "class_names": names,
        },
        "imbalance": {"name": "step", "minority": rare, "ratio": 0.1},
        "method": {
            "name": "unignn",
            "title": "UniGNN",
            "summary": "Joins structural and semantic neighbours, then labels more nodes evenly.",
            "fields": {"alpha": 2, "beta": [7, 70], "hidden": 64, "dropout": 0.5},
        },
        "class_counts": counts,
        "seeds": list(seeds),
        "runs": runs,
        "mean": mean,
        "std": std,
        "paper": published if paper else None,
        "environment": {
            "python": "3.11.7",
            "torch": "2.13.0",
            "torch_geometric": "2.8.1",
            "platform": "Linux x86_64",
            "device": "cpu",
            "threads": 2,
            "commit": None,
        },
    }


def _run(draw: random.Random, seed: int, counts: list[int], epochs: int) -> dict[str, Any]:
    size = len(counts)
    matrix, recall = [], []
    for true, count in enumerate(counts):
        support = 40 + 17 * ((true * 5) % 7)
        right = round(support * min(max(draw.gauss(0.82 if count > 2 else 0.64, 0.06), 0.1), 1))
        row = [0] * size
        row[true] = right
        for _ in range(support - right):
            row[draw.choice([guess for guess in range(size) if guess != true])] += 1
        matrix.append(row)
        recall.append(100 * right / support)
    mean = math.fsum(recall) / size
    loss = [1.95 * math.exp(-epoch / 180) + 0.3 + draw.gauss(0, 0.03) for epoch in range(epochs)]
    score = [
        mean * (1 - math.exp(-epoch / 90)) + draw.gauss(0, 1.2) + 0.002 * min(epoch, 700)
        for epoch in range(epochs)
    ]
    score = [max(value, 2.0) for value in score]
    return {
        "seed": seed,
        "metrics": {
            "balanced_accuracy": mean,
            "macro_f1": mean - 0.8,
            "g_mean": mean + 8.9,
            "accuracy": mean + 1.3,
            "average_precision": mean + 3.1,
            "auroc": 94.2 + draw.random(),
        },
        "per_class": {
            "recall": recall,
            "f1": [value - 1.7 for value in recall],
            "support": [sum(row) for row in matrix],
        },
        "confusion_matrix": matrix,
        "history": {"loss": loss, "score": score},
        "best_epoch": max(range(epochs), key=score.__getitem__) if epochs else 0,
        "epochs": epochs,
        "seconds": 21.5 + draw.random(),
        "interrupted": False,
    }


@pytest.fixture
def of_two() -> dict[str, Any]:
    """Two classes and three seeds; the figures of the rarer class are as wide as can be."""
    result = make_result(["honest", "fraud"], classes=2, rare=1, epochs=600, paper=False)
    for figures in (result["mean"], result["std"], *(run["metrics"] for run in result["runs"])):
        figures |= {name: 100.0 for name, metric in METRICS.items() if metric.binary}
    return result


@pytest.fixture
def result() -> dict[str, Any]:
    """Cora in seven classes and three seeds."""
    return make_result(CORA)


@pytest.fixture(scope="session")
def make() -> Callable[..., dict[str, Any]]:
    """The maker itself, for other shapes."""
    return make_result


@pytest.fixture
def parse() -> Callable[[str], Node]:
    """Parse a page into nodes."""
    return parse_page


@pytest.fixture(scope="session")
def filled(tmp_path_factory) -> Store:
    """A store of three experiments, to read from."""
    return fill(Store(tmp_path_factory.mktemp("filled") / "store.sqlite"))


@pytest.fixture
def store(filled, tmp_path) -> Store:
    """The same store in a file of its own."""
    return Store(Path(shutil.copy(filled.path, tmp_path)))


@pytest.fixture(scope="session")
def experiments(filled) -> list[ExperimentResults]:
    """Its experiments: a comparison, an ablation, curves."""
    return load_experiments(filled)


@pytest.fixture(scope="session")
def comparison(experiments) -> ExperimentResults:
    """Four methods in three set-ups."""
    return experiments[0]


@pytest.fixture(scope="session")
def written(filled, tmp_path_factory) -> dict[str, Path]:
    """All that `evengraph report` writes of it, by the names of the files."""
    pytest.importorskip("matplotlib", reason="figures want matplotlib")
    from evengraph.lab.pages import write_report

    paths = write_report(filled, tmp_path_factory.mktemp("report"))
    assert len({path.name for path in paths}) == len(paths)
    return {path.name: path for path in paths}
