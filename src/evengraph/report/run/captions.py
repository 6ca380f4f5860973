"""Captions of the run page: what was run, on what, and for how long."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from evengraph.metrics import METRICS
from evengraph.report.formatting import integer, plural
from evengraph.report.run.result_reader import runs
from evengraph.report.untrusted import items, lookup, number, part

_DATASETS = {
    "cora": "Cora",
    "cora_ml": "Cora-ML",
    "cora_full": "Cora-Full",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
}
_PROTOCOLS = {
    "step": "step imbalance",
    "publicstep": "step imbalance on the public split",
    "longtail": "long-tailed imbalance",
    "natural": "natural class imbalance",
    "folds": "natural class imbalance, cross-validated",
    "given": "natural class imbalance, split by a column",
    "bytime": "natural class imbalance, split by time",
    "semisupervised": "a few labels of two classes",
}


def metric_names(result: Mapping[str, Any]) -> dict[str, str]:
    """Return the metrics of this result: known ones in the order of `METRICS`, then others."""
    keys = {**part(result, "mean"), **{k: 0 for run in runs(result) for k in part(run, "metrics")}}
    known = {key: metric.heading for key, metric in METRICS.items() if key in keys}
    return known | {key: str(key).replace("_", " ") for key in keys if key not in known}


def seed_metrics(result: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the metrics that the table of seeds has room for, and the names of what it omits."""
    names = metric_names(result)
    known = {key: METRICS[key] for key in names if key in METRICS}
    if not any(metric.binary for metric in known.values()):
        return names, []
    omitted = [key for key, metric in known.items() if not (metric.binary or metric.headline)]
    shown = {key: name for key, name in names.items() if key not in omitted}
    return shown, [*(names[key] for key in omitted), "epochs", "seconds"]


def title(result: Mapping[str, Any]) -> str:
    """Name method and data set."""
    method = part(result, "method")
    name = method.get("title") or method.get("name") or "A method"
    return f"{name} on {dataset(lookup(result, 'dataset', 'name'))}"


def dataset(name: object) -> str:
    """Spell the name of a data set as papers do."""
    return _DATASETS.get(str(name), str(name)) if name else "a graph"


def imbalance(result: Mapping[str, Any]) -> str:
    """Describe the split protocol."""
    fields = part(result, "imbalance")
    name = str(fields.get("name") or "")
    minority, ratio = number(fields.get("minority")), number(fields.get("ratio"))
    if not name:
        return "imbalance not recorded"
    protocol = _PROTOCOLS.get(name, f"{name} imbalance")
    if name in ("step", "publicstep") and minority is not None and ratio is not None:
        classes = plural(int(minority), "minority class", "minority classes")
        return f"{protocol}: {classes} at {100 * ratio:g}%"
    if name == "longtail" and ratio is not None:
        return f"{protocol}: the smallest class at {100 * ratio:g}% of the largest"
    rest = ", ".join(f"{key} {value}" for key, value in fields.items() if key != "name")
    return protocol if name in _PROTOCOLS or not rest else f"{protocol} ({rest})"


def setting(name: object, protocol: Mapping[str, Any]) -> str:
    """Name a data set with its split protocol, as short as it can be understood."""
    kind, ratio = str(protocol.get("name") or ""), number(protocol.get("ratio"))
    minority = number(protocol.get("minority"))
    share = "" if ratio is None else f" at {100 * ratio:g}%"
    if minority is not None:
        words = plural(int(minority), "minority class", "minority classes") + share
        words += ", public split" if kind == "publicstep" else ""
    elif kind == "longtail":
        words = f"long tail, smallest class{share}"
    else:
        words = _PROTOCOLS.get(kind, kind)
    return f"{dataset(name)}, {words}" if words else dataset(name)


def seeds(result: Mapping[str, Any]) -> str:
    """List the seeds, shortened if there are many."""
    names = [str(seed) for seed in items(result, "seeds")]
    names = names or [str(run.get("seed", "?")) for run in runs(result)]
    if not names:
        return "no seed"
    shown = names if len(names) <= 10 else [*names[:3], "…", names[-1]]
    return f"{'seed' if len(names) == 1 else 'seeds'} {', '.join(shown)}"


def timestamp(created: object) -> str | None:
    """Format an ISO time stamp for readers."""
    if not isinstance(created, str) or not created:
        return None
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return created
    zone = "" if moment.tzinfo is None else " UTC"
    moment = moment.astimezone(UTC) if zone else moment
    return f"{moment.day} {moment:%B %Y, %H:%M}{zone}"


def facts(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the numbers under the title, each with its noun."""
    fields = part(result, "dataset")
    pairs = [
        (integer(fields[key]), key.removeprefix("num_"))
        for key in ("num_nodes", "num_edges", "num_features", "num_classes")
        if number(fields.get(key)) is not None
    ]
    seconds = sum(number(run.get("seconds")) or 0.0 for run in runs(result))
    if seconds > 0:
        pairs.append((duration(seconds), "of training"))
    return pairs


def duration(seconds: float) -> str:
    """Format seconds for readers."""
    return f"{seconds:.1f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
