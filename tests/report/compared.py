"""A made-up comparison, as comparison.json holds it."""

import random
from statistics import fmean

from evengraph.metrics.registry import METRICS

NAMES = [name for name, metric in METRICS.items() if not metric.binary]
CLASSES = ("Theory", "Neural Networks", "Rule Learning")


def compared(*means, splits=5, strength="clear", **changes):
    """Methods with these means of balanced accuracy, the best first."""
    methods = [_method(f"m{place}", mean, splits) for place, mean in enumerate(means)]
    content = {
        "schema": 1,
        "kind": "comparison",
        "evengraph": "0.1.0",
        "created": "2026-11-05T10:00:00+00:00",
        "dataset": "cora",
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
        "pairs": [
            _pair(methods[one], methods[other], strength)
            for one in range(len(means))
            for other in range(one + 1, len(means))
        ],
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
            "calibrator": {"note": ""},
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


def _pair(ahead, behind, strength):
    gap = fmean(
        a["metrics"]["balanced_accuracy"] - b["metrics"]["balanced_accuracy"]
        for a, b in zip(ahead["runs"], behind["runs"], strict=True)
    )
    ends = {"low": gap - 1, "high": gap + 1, "wide_low": gap - 2, "wide_high": gap + 2}
    names = {"ahead": ahead["label"], "behind": behind["label"], "strength": strength}
    return names | {"difference": gap, "p": 0.01, "wide_p": 0.02, **ends}
