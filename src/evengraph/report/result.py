"""Classes, confusion matrices and runs of a result whose shape is not trusted."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evengraph.core.untrusted import average, items, lookup, number, part
from evengraph.metrics.registry import METRICS
from evengraph.report import page
from evengraph.report.charts import COLOURS, curve, line_plot, strip, swatch
from evengraph.report.markup import DASH, Markup, decimals, integer, metric_value, plural, tag


@dataclass(frozen=True, kw_only=True)
class ClassRow:
    """One class as the page shows it; recall, F1 and precision in percent, one entry per run."""

    index: int  # label in the graph
    name: str
    count: float | None  # training nodes
    minority: bool
    recalls: list[float | None]
    f1s: list[float | None]
    precisions: list[float | None]


def runs(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the finished runs."""
    return [run for run in items(result, "runs") if isinstance(run, Mapping)]


def class_rows(result: Mapping[str, Any]) -> list[ClassRow]:
    """Return every class, the largest first."""
    counts = [number(count) for count in items(result, "class_counts")]
    total = number(lookup(result, "dataset", "num_classes"))
    # a result without counts still has classes; an absurd number must not make a million rows
    counts += [None] * (min(int(total or 0), 1000) - len(counts))
    rare = minority(result, counts)
    rows = [
        ClassRow(
            index=index,
            name=_name(lookup(result, "dataset", "class_names", index), index),
            count=count,
            minority=index in rare,
            recalls=_per_class(result, "recall", index),
            f1s=_per_class(result, "f1", index),
            precisions=[_precision(run, index) for run in runs(result)],
        )
        for index, count in enumerate(counts)
    ]
    return sorted(rows, key=lambda row: (row.count is None, -(row.count or 0.0), row.index))


def minority(result: Mapping[str, Any], counts: Sequence[float | None]) -> set[int]:
    """Return the indices of the minority classes.

    Where the split protocol fixes their number, these are the smallest classes. Otherwise a
    class with fewer than half the training nodes of the largest.
    """
    known = sorted((count, -index) for index, count in enumerate(counts) if count is not None)
    if not known or known[0][0] == known[-1][0]:
        return set()
    wanted = number(lookup(result, "imbalance", "minority"))
    if wanted is not None:
        return {-index for _, index in known[: max(int(wanted), 0)]}
    return {-index for count, index in known if count < known[-1][0] / 2}


def confusion(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> list[list[float]]:
    """Sum the confusion matrices of all runs, in the order of `rows`; empty without any."""
    matrices = [matrix for run in runs(result) if (matrix := items(run, "confusion_matrix"))]
    if not matrices:
        return []

    def count(true: int, guess: int) -> float:
        values = (number(lookup(matrix, true, guess)) or 0.0 for matrix in matrices)
        return math.fsum(max(value, 0.0) for value in values)

    return [[count(true.index, guess.index) for guess in rows] for true in rows]


def shares(counts: Sequence[float]) -> list[float]:
    """Divide a row by its sum; a class without test nodes stays at zero."""
    total = math.fsum(counts)
    return [count / total if total > 0 else 0.0 for count in counts]


def _name(name: object, index: int) -> str:
    return name.strip() if isinstance(name, str) and name.strip() else f"class {index}"


def _precision(run: Mapping[str, Any], index: int) -> float | None:
    """Share of the nodes predicted as a class that are of it; `None` if there are none."""
    matrix = items(run, "confusion_matrix")
    predicted = math.fsum(max(number(lookup(line, index)) or 0.0, 0.0) for line in matrix)
    hits = number(lookup(matrix, index, index))
    return None if hits is None or predicted <= 0 else 100 * hits / predicted


def _per_class(result: Mapping[str, Any], key: str, index: int) -> list[float | None]:
    return [number(lookup(run, "per_class", key, index)) for run in runs(result)]


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


QUANTITIES = {"alarms": 1000, "precision": 100, "average_precision": 100, "cost": 1000}


def base_rate_rows(result: Mapping[str, Any]) -> list[tuple[str, list[float | None]]]:
    """A caption and values per share of the rarer class, that of the test nodes first.

    Alarms per 1,000 nodes, precision and average precision in percent, and with costs the cost per
    1,000 nodes. Empty for results without base rates.
    """
    sweeps = _sweeps(result)
    names = [name for name in QUANTITIES if name != "cost" or has_costs(result)]
    rows = []
    for index, entries in enumerate(zip(*sweeps, strict=False)):
        share = average(number(lookup(entry, "base_rate")) for entry in entries)
        if share is None:
            continue
        means = {name: average(number(lookup(entry, name)) for entry in entries) for name in names}
        values = [None if m is None else QUANTITIES[name] * m for name, m in means.items()]
        rows.append((f"{100 * share:.3g}%{'' if index else ' (test nodes)'}", values))
    return rows


def has_costs(result: Mapping[str, Any]) -> bool:
    """Whether the base rates come with costs."""
    return any(number(lookup(sweep, 0, "cost")) is not None for sweep in _sweeps(result))


def describe_threshold(result: Mapping[str, Any]) -> str:
    """What the threshold is by which base rates are computed, and what they assume."""
    recall = average(number(lookup(sweep, 0, "recall")) for sweep in _sweeps(result))
    miss, alarm = (number(part(result, "costs").get(name)) for name in ("miss", "alarm"))
    goal = "best F1 on validation nodes"
    if miss is not None and alarm is not None:
        goal = f"lowest cost on validation nodes (a miss costs {miss:g}, an alarm {alarm:g})"
    found = "an undefined part" if recall is None else f"{100 * recall:.1f}%"
    return (
        f"The threshold has the {goal}; it finds {found} of the rarer class at any share, if nodes "
        "of a class look the same."
    )


def _sweeps(result: Mapping[str, Any]) -> list[Sequence[Any]]:
    return [rates for run in items(result, "runs") if (rates := items(run, "base_rates"))]


PRECISION = "positive_average_precision"
TICKS = (0, 25, 50, 75, 100)


def is_two_class(result: Mapping[str, Any]) -> bool:
    """Whether the result has a ranking of the rarer of two classes."""
    return number(lookup(result, "mean", PRECISION)) is not None


def two_class_cards(result: Mapping[str, Any]) -> list[Markup]:
    """Average precision against the base rate, precision at the threshold, and at k."""
    rate = base_rate(result)
    chance = "" if rate is None else f"base rate {decimals(rate)}: what a random ranking reaches"
    top = "among as many nodes, ranked highest, as there are of the rarer class"
    return [
        _card(result, PRECISION, chance),
        _threshold(result),
        _card(result, "precision_at_k", top),
    ]


def base_rate(result: Mapping[str, Any]) -> float | None:
    """Share of the rarer class among test nodes, in percent."""
    return at_threshold(result, "base_rate")


def curve_section(result: Mapping[str, Any]) -> Markup:
    """Precision against recall on the test nodes, one line per seed; nothing without it."""
    found = {str(run.get("seed", "?")): _points(run) for run in runs(result)}
    series = {seed: points for seed, points in found.items() if points}
    if not series:
        return Markup("")
    colours = [f"colour-{i if len(series) <= COLOURS else 0}" for i in range(len(series))]
    lines = [
        curve([(x, 100 - y) for x, y in points], f"seed {seed}", f"curve {colour}")
        for (seed, points), colour in zip(series.items(), colours, strict=True)
    ]
    entries = [
        tag("li", swatch("curve"), f"seed {seed}", class_=colour)
        for seed, colour in zip(series, colours, strict=True)
    ]
    marks = []
    if (rate := base_rate(result)) is not None:
        at = f"{100 - rate:.2f}%"
        marks.append(tag("line", x2="100%", y1=at, y2=at, class_="reference"))
        entries.append(tag("li", swatch("reference"), f"base rate {decimals(rate)}"))
    plot = line_plot(
        "Precision against recall of the rarer class, in percent",
        lines,
        marks,
        rows=[(100 - value, str(value)) for value in TICKS],
        columns=[(float(value), str(value)) for value in TICKS],
        axis="recall, %",
    )
    text = "Precision in percent against recall, as the threshold falls from left to right."
    legend = page.legend(entries[-COLOURS - 1 :])
    figure = tag("div", tag("figure", plot), class_="panels")
    return page.section("Precision-recall curve", tag("p", text), legend, figure)


def _points(run: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Recall and precision in percent."""
    pairs = ((number(lookup(p, 0)), number(lookup(p, 1))) for p in items(run, "precision_recall"))
    return [(100 * x, 100 * y) for x, y in pairs if x is not None and y is not None]


def _threshold(result: Mapping[str, Any]) -> Markup:
    """Precision at the threshold, with recall and the number of alarms."""
    precision, recall = (at_threshold(result, name) for name in ("precision", "recall"))
    alarms, sizes = at_threshold(result, "alarms"), [_test_nodes(run) for run in runs(result)]
    nodes = average(sizes)
    threshold = metric_value("tuned_threshold", lookup(result, "mean", "tuned_threshold"))
    count = DASH if alarms is None or nodes is None else integer(alarms * nodes / 100)
    text = tag("span", "recall ", tag("b", decimals(recall)))
    total = tag("span", tag("b", count), f" alarms among {integer(nodes)} test nodes")
    chosen = tag("span", "threshold ", tag("b", threshold), ", a probability")
    below = tag("p", text, total, chosen, class_="against")
    return page.card("Precision at the threshold", decimals(precision), "", below)


def _card(result: Mapping[str, Any], name: str, text: str) -> Markup:
    seeds = [number(lookup(run, "metrics", name)) for run in runs(result)]
    mean, std = (number(lookup(result, key, name)) for key in ("mean", "std"))
    unit = f"± {decimals(std)}" if len(seeds) > 1 and std is not None else ""
    title = METRICS[name].heading
    label = f"{title}: seeds {', '.join(decimals(value) for value in seeds)}"
    below = tag("p", text, class_="against") if text else Markup("")
    return page.card(title, decimals(mean), unit, strip(seeds, mean, (None, None), label), below)


def at_threshold(result: Mapping[str, Any], name: str) -> float | None:
    """A quantity at the test nodes' own base rate, in percent, averaged over seeds."""
    value = average(number(lookup(run, "base_rates", 0, name)) for run in runs(result))
    return None if value is None else 100 * value


def _test_nodes(run: Mapping[str, Any]) -> float | None:
    support = [number(count) or 0.0 for count in items(run, "per_class", "support")]
    return sum(support) or None


def verdict(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> Markup:
    """What the test says, compared with chance; nothing without scores."""
    sentences = _two_classes(result, rows) if is_two_class(result) else _classes(result, rows)
    if not sentences:
        return Markup("")
    first, *rest = sentences
    return tag("p", tag("b", first), *(f" {sentence}" for sentence in rest), class_="verdict")


def _classes(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> list[str]:
    """Balanced accuracy, and the recall of the minority classes."""
    mean = number(lookup(result, "mean", "balanced_accuracy"))
    if mean is None or not rows:
        return []
    chance = decimals(100 / len(rows))
    found = [f"Balanced accuracy is {decimals(mean)}% on test nodes; guessing gives {chance}%."]
    rare = [row for row in rows if row.minority]
    recall = average(average(row.recalls) for row in rare)
    if recall is not None:
        names = f"class {rare[0].name}" if len(rare) == 1 else f"the {len(rare)} minority classes"
        kind = "Recall" if len(rare) == 1 else "Mean recall"
        found.append(f"{kind} of {names} is {decimals(recall)}%.")
    return found


def _two_classes(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> list[str]:
    """The ranking against the base rate, and the decisions at the threshold."""
    mean, chance = number(lookup(result, "mean", PRECISION)), base_rate(result)
    rare = next((f"class {row.name}" for row in rows if row.minority), "the rarer class")
    against = "" if chance is None else f"; a random ranking has {decimals(chance)}%"
    found = [f"Average precision for {rare} is {decimals(mean)}% on test nodes{against}."]
    recall, precision = (at_threshold(result, name) for name in ("recall", "precision"))
    if recall is not None and precision is not None:
        found.append(
            f"At the threshold, {decimals(recall)}% of {rare} is found and {decimals(precision)}% "
            "of the alarms are correct."
        )
    return found
