"""A comparison of methods as tables for the terminal.

Every function takes a comparison as `comparison.json` holds it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from rich.markup import escape
from rich.table import Table

from evengraph.metrics import METRICS, Metric, abbreviations
from evengraph.metrics.significance import format_p
from evengraph.report.compare.reader import (
    Comparison,
    behind_best,
    pair_interval,
    pair_verdict,
    too_few,
)
from evengraph.report.formatting import decimals, metric_value, plural
from evengraph.report.terminal.table import plain_table, two_class_metrics

NUMBER = re.compile(r"\d[\d.,]*\b")
HEAD = 20  # characters; longer heads are wrapped, so that no table is wider than 80


def comparison_tables(comparison: Comparison) -> list[Table]:
    """The metric they are compared by, other metrics, and calibration with cost."""
    plain = [metric for metric in METRICS.values() if metric.column and not metric.binary]
    metrics = plain if comparison["positive"] is None else _two_class_metrics(comparison)
    others = [
        metric
        for metric in metrics
        if not metric.calibration and metric.name != comparison["metric"]  # the first table has it
    ]
    calibration = [metric for metric in METRICS.values() if metric.column and metric.calibration]
    return [
        _main_table(comparison),
        _metrics_table(comparison, others),
        _metrics_table(comparison, calibration, seconds=True),
    ]


def _main_table(comparison: Comparison) -> Table:
    """Mean and interval of each method, and how far it is behind the best."""
    heads = (METRICS[comparison["metric"]].title, "behind the best")
    table = plain_table(["method"], [fill(title, HEAD) for title in heads])
    table.add_column("verdict", no_wrap=True)
    for method in comparison["methods"]:
        summary = method["figures"][comparison["metric"]]
        if too_few(comparison):
            cells = [decimals(summary["mean"]), "", ""]
        else:
            cells = [_with_interval(summary["mean"], summary["low"], summary["high"]), "", ""]
        if (pair := behind_best(comparison, method["label"])) is not None:
            cells[1:] = _difference(comparison, pair)
        table.add_row(escape(method["title"]), *cells)
    return table


def _difference(comparison: Comparison, pair: Mapping[str, Any]) -> list[str]:
    """How far a method is behind, and whether that is significant."""
    verdict, interval = pair_verdict(comparison, pair), pair_interval(pair)
    if too_few(comparison) or interval is None:
        return [decimals(pair["difference"]), verdict]
    return [_with_interval(pair["difference"], *interval), verdict]


def _metrics_table(
    comparison: Comparison, metrics: Sequence[Metric], *, seconds: bool = False
) -> Table:
    heads = [*(metric.short for metric in metrics), *(["seconds"] if seconds else [])]
    table = plain_table(["method"], heads, dim={"seconds"})
    for method in comparison["methods"]:
        means = {metric.name: method["figures"][metric.name]["mean"] for metric in metrics}
        cells = [metric_value(name, mean) for name, mean in means.items()]
        cells += [decimals(method["seconds"])] if seconds else []
        table.add_row(escape(method["title"]), *cells)
    return table


def _two_class_metrics(comparison: Comparison) -> list[Metric]:
    return two_class_metrics([method["figures"] for method in comparison["methods"]])


def comparison_notes(comparison: Comparison) -> list[str]:
    """What a reader of the tables should know, one line each."""
    splits = plural(len(comparison["seeds"]), "split")
    intervals = ", too few for an interval;" if too_few(comparison) else " with 95% intervals;"
    lines = [
        f"In percent, means over {splits}{intervals} "
        f"the same splits for all methods, and {_budget(comparison['budget'])}."
    ]
    pairs, methods = comparison["pairs"], comparison["methods"]
    pair = behind_best(comparison, methods[1]["label"]) if len(methods) > 1 else None
    if pair is not None and not too_few(comparison):
        lines.append(
            "Behind the best: the mean difference with its 95% interval, as the verdict uses it: "
            "it allows for nodes that splits share (Nadeau and Bengio)"
            + (f" and is corrected for {len(pairs)} comparisons (Holm)." if len(pairs) > 1 else ".")
        )
        lines.append(
            f"Best against next: {format_p(pair['wide_p'])}; {format_p(pair['p'])} without "
            "allowing for nodes that splits share."
        )
    if any(pair["strength"] == "here" for pair in pairs):
        lines.append(
            "On these nodes: significant for this graph's labelled nodes, with an interval that "
            "does not allow for shared nodes; less certain for other nodes."
        )
    if comparison["positive"] is not None:
        index = comparison["classes"].index(comparison["positive"])
        size, total = comparison["class_counts"][index], sum(comparison["class_counts"])
        lines.append(
            f"The positive class is {comparison['positive']}, {size:,} of {total:,} labelled "
            f"nodes. {abbreviations(_two_class_metrics(comparison))}. The "
            "threshold has the best F1 on validation nodes, before calibration."
        )
    lines.append(
        "ECE: how far confidence is from accuracy; calibrated: after temperature scaling, which "
        "changes no decision; shifted: after a shift of each class as well, which may. Both use "
        "validation nodes."
    )
    return lines + _uncalibrated(comparison)


def _budget(settings: int) -> str:
    if settings == 1:
        return "one setting of each"
    return f"up to {settings} settings of each, selected on validation"


def _uncalibrated(comparison: Comparison) -> list[str]:
    """Which methods could not be calibrated, on how many splits, and why."""
    reasons: dict[str, Counter[str]] = {}  # splits of each method
    alike: dict[str, list[str]] = {}  # reasons that differ in their numbers only
    for method in comparison["methods"]:
        for run in method["runs"]:
            if reason := run["calibrator"]["note"]:
                kind = NUMBER.sub("#", reason)
                alike.setdefault(kind, []).append(reason)
                reasons.setdefault(kind, Counter())[method["title"]] += 1
    lines = []
    total = len(comparison["seeds"])
    for kind, splits in reasons.items():
        names = [
            title if count == total else f"{title} ({count} of {total} splits)"
            for title, count in splits.items()
        ]
        if len(names) > 1 and list(splits.values()) == [total] * len(comparison["methods"]):
            names = ["all methods"]
        several = " in the first of them," if len(set(alike[kind])) > 1 else ""
        lines.append(f"Calibration of {', '.join(names)}:{several} {alike[kind][0]}")
    return lines


def _with_interval(mean: float, low: float, high: float) -> str:
    return decimals(mean) if low != low else f"{mean:.1f} ({low:.1f} to {high:.1f})"
