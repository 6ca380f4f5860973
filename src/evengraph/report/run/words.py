"""Plain words: what was run, on what, and what each figure means."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from evengraph.metrics import METRICS
from evengraph.report.run.values import items, number, part, plural, runs, signed, whole

_DATASETS = {
    "cora": "Cora",
    "cora_ml": "Cora-ML",
    "cora_full": "Cora-Full",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
}
_IMBALANCES = {
    "step": "step imbalance",
    "publicstep": "step imbalance on the public split",
    "longtail": "long-tailed imbalance",
    "natural": "classes as unequal as they are in the data",
    "folds": "classes as unequal as they are in the data, cross-validated",
    "given": "classes as unequal as they are in the data, split by a column",
    "bytime": "classes as unequal as they are in the data, split by time",
}


def metric_names(result: Mapping[str, Any]) -> dict[str, str]:
    """Return the metrics of this result: the known ones in our order, then any others."""
    found = {**part(result, "mean"), **{k: 0 for run in runs(result) for k in part(run, "metrics")}}
    known = {key: metric.heading for key, metric in METRICS.items() if key in found}
    return known | {key: str(key).replace("_", " ") for key in found if key not in known}


def seed_metrics(result: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the metrics that a table of seeds has room for, and what else is left out of it."""
    names = metric_names(result)
    known = {key: METRICS[key] for key in names if key in METRICS}
    if not any(metric.binary for metric in known.values()):
        return names, []
    aside = [key for key, metric in known.items() if not (metric.binary or metric.headline)]
    shown = {key: name for key, name in names.items() if key not in aside}
    return shown, [*(names[key] for key in aside), "epochs", "seconds"]


def method_title(result: Mapping[str, Any]) -> str:
    """Name the method as its paper does."""
    method = part(result, "method")
    return str(method.get("title") or method.get("name") or "A method")


def dataset_title(result: Mapping[str, Any]) -> str:
    """Name the graph."""
    name = str(part(result, "dataset").get("name") or "a graph")
    return _DATASETS.get(name, name)


def imbalance_words(result: Mapping[str, Any]) -> str:
    """Say how the classes were made unequal."""
    imbalance = part(result, "imbalance")
    name = str(imbalance.get("name") or "")
    rare, ratio = number(imbalance.get("minority")), number(imbalance.get("ratio"))
    if not name:
        return "imbalance not recorded"
    title = _IMBALANCES.get(name, f"{name} imbalance")
    if name in ("step", "publicstep") and rare is not None and ratio is not None:
        classes = plural(int(rare), "minority class", "minority classes")
        return f"{title}: {classes} at {100 * ratio:g}%"
    if name == "longtail" and ratio is not None:
        return f"{title}: the smallest class at {100 * ratio:g}% of the largest"
    rest = ", ".join(f"{key} {value}" for key, value in imbalance.items() if key != "name")
    return title if name in _IMBALANCES or not rest else f"{title} ({rest})"


def seeds_words(result: Mapping[str, Any]) -> str:
    """List the seeds, shortened when there are many."""
    seeds = [str(seed) for seed in items(result, "seeds")]
    seeds = seeds or [str(run.get("seed", "?")) for run in runs(result)]
    if not seeds:
        return "no seed"
    shown = seeds if len(seeds) <= 10 else [*seeds[:3], "…", seeds[-1]]
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(shown)}"


def against_words(difference: float) -> str:
    """Say on which side of the published figure a mean lies."""
    text = signed(difference)
    return "equal" if text == "0.0" else f"{text} points"


def duration(result: Mapping[str, Any]) -> str | None:
    """Add up the time of all runs."""
    seconds = [number(run.get("seconds")) for run in runs(result)]
    total = sum(value for value in seconds if value is not None)
    if total <= 0:
        return None
    return f"{total:.1f} s" if total < 90 else f"{total / 60:.1f} min"


def day(created: object) -> str | None:
    """Write a time stamp as people say it."""
    if not isinstance(created, str) or not created:
        return None
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return created
    if moment.tzinfo is None:
        return f"{moment.day} {moment:%B %Y, %H:%M}"
    moment = moment.astimezone(UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def facts(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return figure and word of the few facts under the title."""
    dataset = part(result, "dataset")
    pairs = [
        (whole(dataset[key]), key.removeprefix("num_"))
        for key in ("num_nodes", "num_edges", "num_features", "num_classes")
        if number(dataset.get(key)) is not None
    ]
    took = duration(result)
    return [*pairs, *([(took, "of training")] if took else [])]
