"""Contents to draw: results, comparisons, inspections."""

import json
import math
import random
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console

import evengraph as eg
from evengraph.metrics.registry import METRICS

HOSTILE = "</style></title></svg><script>alert(1)</script><img src=x onerror=alert(1)>\"' &amp;"
LONG = "Averylongnamewithoutanyspace" * 4


def printed(*things: Any, width: int = 80, **options: Any) -> str:
    """What a terminal of this width shows."""
    console = Console(width=width, **options)
    with console.capture() as capture:
        for thing in things:
            console.print(thing, markup=not isinstance(thing, str), highlight=False)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


CORA = ["Neural Networks", "Probabilistic Methods", "Genetic Algorithms", "Theory", "Case Based"]
CORA += ["Reinforcement Learning", "Rule Learning"]


def make_result(names=None, *, classes=7, rare=3, seeds=(5, 6, 7), epochs=1500, paper=True):
    """Invent a result that looks like a real one; the same arguments give the same result."""
    draw = random.Random(0)
    counts = [20] * (classes - rare) + [2] * rare
    runs = [_run(draw, seed, counts, epochs + 137 * place) for place, seed in enumerate(seeds)]
    keys = list(runs[0]["metrics"])
    columns = {key: [run["metrics"][key] for run in runs] for key in keys}
    mean = {key: math.fsum(values) / len(runs) for key, values in columns.items()}
    squares = {key: [(v - mean[key]) ** 2 for v in values] for key, values in columns.items()}
    std = {key: math.sqrt(math.fsum(values) / len(runs)) for key, values in squares.items()}
    published = {
        "balanced_accuracy": {"mean": 76.5, "std": 0.5},
        "macro_f1": {"mean": 75.8, "std": 0.4},
        "g_mean": {"mean": 85.6, "std": 0.3},
    }
    sizes = {"num_nodes": 2708, "num_edges": 10556, "num_features": 1433, "num_classes": classes}
    versions = {"python": "3.11.7", "torch": "2.13.0", "torch_geometric": "2.8.1"}
    system = {"platform": "Linux x86_64", "device": "cpu", "threads": 2, "commit": None}
    return {
        "schema": 1,
        "evengraph": "0.1.0",
        "created": "2026-11-15T10:00:00+00:00",
        "dataset": {"name": "cora", **sizes, "class_names": names},
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
        "environment": versions | system,
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
    metrics = {"balanced_accuracy": mean, "macro_f1": mean - 0.8, "g_mean": mean + 8.9}
    metrics |= {"accuracy": mean + 1.3, "average_precision": mean + 3.1}
    f1, support = [value - 1.7 for value in recall], [sum(row) for row in matrix]
    return {
        "seed": seed,
        "metrics": metrics | {"auroc": 94.2 + draw.random()},
        "per_class": {"recall": recall, "f1": f1, "support": support},
        "confusion_matrix": matrix,
        "history": {"loss": loss, "score": score},
        "best_epoch": max(range(epochs), key=score.__getitem__) if epochs else 0,
        "epochs": epochs,
        "seconds": 21.5 + draw.random(),
        "interrupted": False,
    }


DECISION = {"positive": 1, "threshold": 0.4}
OPTION = {"rule": "the best F1", "chosen": True, "threshold": 0.4, "nodes": 300, "positives": 18}
OPTION |= {"flagged": 30, "found": 12, "cost": 138.0, "cost_interval": [80.0, 250.0]}
RANKED = {"value": 35.0, "ends": [17.5, 58.0], "nodes": 300, "positives": 18, "share": 0.06}


def make_fraud() -> dict[str, Any]:
    """Two classes, with everything that a result may have."""
    result = make_result(["honest", "fraud"], classes=2, rare=1, epochs=6, paper=False)
    for figures in (result["mean"], result["std"], *(run["metrics"] for run in result["runs"])):
        binary = [name for name, metric in METRICS.items() if metric.binary]
        figures |= {name: 40.0 + place for place, name in enumerate(binary)}
    unclear = "Whether the graph helps is unclear: {} with it and 69.0 without it."
    for place, run in enumerate(result["runs"]):
        run |= {
            "decision": DECISION | {"confusion": [[88 - place, 6 + place], [2, 4]]},
            "interval": [30.0 + place, 50.0],
            "precision_recall": [[0.1, 1.0], [0.5, 0.4], [1.0, 0.1]],
            "summary": ["Chose [A].", "Rejected: B.", unclear.format(70 + place)],
            "notes": ["Most nodes are alone."] * (place != 1),
            "criterion": "AP",
            "resolved": {"alpha": place // 2},
            "stages": 2,
        }
    result["runs"][1]["interrupted"] = True
    refit = {"train": 717, "train_before": 538}
    result["method"]["fields"] |= {"alpha": "auto", "max_epochs": 143}
    result["runs"][1]["best_epoch"] = 142
    return result | {
        "class_counts": [90, 10],
        "costs": {"miss": 20.0, "alarm": 1.0},
        "decision": {
            "words": "The threshold is 0.4, the best F1. On 300 held-out nodes it finds 12 of 18.",
            "options": [OPTION, OPTION | {"chosen": False, "threshold": 0.1, "flagged": 60}],
            "ranking": RANKED,
        },
        "calibration": {
            "reliability": {"before": [[0.1, 0.0, 20], [0.9, 0.5, 9]], "after": [[0.2, 0.2, 29]]},
            "lines": ["Expected calibration error on test nodes: 9.0% before, 1.0% after."],
        },
        "distinct": 0.5,
        "likeliest": {
            "class": "fraud",
            "kind": "p(fraud)",
            "nodes": [{"id": "shop-1", "probability": 0.93, "reasons": ["amount", "night"]}],
        },
        "model": {"seed": 6, "reason": "", "refit": refit},
        "command": "evengraph run shops --set 'alpha=auto'",
        "commands": ["evengraph compare shops"],
        "method": result["method"] | {"changed": ["alpha"]},
        "complete": False,
        "changed_from_paper": ["patience"],
    }


NAMES = [name for name, metric in METRICS.items() if not metric.binary]
CLASSES = ("Theory", "Neural Networks", "Rule Learning")


def compared(*means, splits=5, significant=True, **changes):
    """Methods with these means of balanced accuracy, the best first."""
    methods = [_method(f"m{place}", mean, splits) for place, mean in enumerate(means)]
    content = {"schema": 1, "kind": "comparison", "evengraph": "0.1.0", "dataset": "cora"} | {
        "created": "2026-11-05T10:00:00+00:00",
        "command": "evengraph compare cora --splits 4 --set 'hidden=64'",
        "commands": ["evengraph run cora --method m0 --save model"],
        "metric": "balanced_accuracy",
        "protocol": {"name": "step", "minority": 1, "ratio": 0.1},
        "seeds": list(range(splits)),
        "budget": 1,
        "classes": list(CLASSES),
        "class_counts": [50, 40, 5],
        "positive": None,
        "failed": {},
        "complete": True,
        "conclusive": splits > 2,
        "verdict": {"best": "m0", "take": "m0", "sentences": ["Method 0 is better.", "Use it."]},
        "environment": {"device": "cpu (x86_64)", "commit": None},
        "methods": methods,
        "pairs": [_pair(one, other, significant) for one, other in combinations(methods, 2)],
    }
    return content | changes


def _method(label, mean, splits):
    draw = random.Random(label)
    values = [mean + draw.uniform(-2, 2) for _ in range(splits)]
    middle = fmean(values)
    summary = {"mean": middle, "low": middle - 3, "high": middle + 3, "p": 0.0}
    runs = [
        {
            "seed": seed,
            "metrics": dict.fromkeys(NAMES, value),
            "per_class": {"recall": [value + 10, value, value - 30], "support": [9, 9, 9]},
            "train_counts": [20, 20, 2],
        }
        for seed, value in enumerate(values)
    ]
    return {
        "label": label,
        "title": f"Method {label[1:]}",
        "settings": {"hidden": 64, "patience": 100},
        "changed": ["patience"] if label == "m0" else [],
        "seconds": 2.0 + int(label[1:]),
        "figures": {name: dict(summary) for name in NAMES},
        "runs": runs,
    }


def _pair(ahead, behind, significant):
    gap = fmean(
        a["metrics"]["balanced_accuracy"] - b["metrics"]["balanced_accuracy"]
        for a, b in zip(ahead["runs"], behind["runs"], strict=True)
    )
    names = {"ahead": ahead["label"], "behind": behind["label"], "significant": significant}
    return names | {"difference": gap, "p": 0.02, "low": gap - 2, "high": gap + 2}


@cache
def _look(classes: int, labelled: int, word: str) -> dict[str, Any]:
    graph = eg.toy(600, 1800, 30, classes)
    graph.class_names = [f"{word}{number}" for number in range(classes)]
    graph.x[:, 3] = graph.y
    graph.feature_names = [f"{word}{place}" for place in range(30)]
    graph.y[labelled:] = -1
    return eg.inspect_graph(graph).as_dict()


def look(classes: int = 4, labelled: int = 120, word: str = "topic ") -> dict[str, Any]:
    """The inspection of a graph of 600 nodes; one column leaks."""
    return dict(_look(classes, labelled, word))


def stored_look() -> dict[str, Any]:
    """An inspect.json as version 0.2.0 wrote it."""
    path = Path(__file__).with_name("snapshots") / "inspect.json"
    return json.loads(path.read_text(encoding="utf-8"))


def explained(**changes: Any) -> dict[str, Any]:
    """An explanation of five nodes: the one explained, three around it, one without a path."""
    near = {
        "node_id": [7, 1, 2, 3, 4],
        "edge_index": [[0, 1, 0, 2, 2, 3], [1, 0, 2, 0, 3, 2]],
        "y": [-1, 0, -1, 1, 1],
        "predicted": [0, 0, 0, 1, 1],
        "contribution": [0.5, 1.0, 0.25, -0.5, 0.0],
        "distance": [0, 1, 1, 2, -1],
    }
    return {
        "node": 7,
        "id": "n7",
        "about": 0,
        "predicted": 0,
        "neighbours": 3,
        "neighbour_labels": [1, 0],
        "probability": 0.9,
        "probabilities": [0.9, 0.1],
        "class_names": ["rare & odd", "common"],
        "class_counts": [3, 20],
        "neighbourhood": near | changes,
    }
