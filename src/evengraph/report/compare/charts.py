"""Charts of a comparison: scores, differences to the best, seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from evengraph.metrics import METRICS
from evengraph.report import page
from evengraph.report.compare import reader
from evengraph.report.compare.reader import Comparison
from evengraph.report.formatting import decimals, signed
from evengraph.report.svg.charts import bar
from evengraph.report.svg.forest import ForestRow, forest_plot
from evengraph.report.svg.markup import Markup, tag
from evengraph.report.untrusted import lookup, number


def score_plot(comparison: Comparison, pages: Mapping[str, str]) -> Markup:
    """Mean, interval and single splits of each method, the best first."""
    metric = comparison["metric"]
    best = comparison["methods"][0]
    rows = [
        _score_row(comparison, method, pages, strong=method is best)
        for method in comparison["methods"]
    ]
    return forest_plot("", rows, axis=f"{METRICS[metric].title}, %", wide=True)


def _score_row(
    comparison: Comparison, method: Mapping[str, Any], pages: Mapping[str, str], *, strong: bool
) -> ForestRow:
    metric = comparison["metric"]
    summary, values = method["figures"][metric], reader.split_values(method, metric)
    low, high = number(summary["low"]), number(summary["high"])
    known = not reader.too_few(comparison) and low is not None and high is not None
    interval = (low, high) if known and low is not None and high is not None else None
    paper = number(lookup(method, "paper", metric, "mean"))
    value, text = decimals(summary["mean"]), f"{method['title']}: {decimals(summary['mean'])}"
    if interval is not None:
        value += f" ({decimals(interval[0])} to {decimals(interval[1])})"
        text += f", 95% interval {decimals(interval[0])} to {decimals(interval[1])}"
    text += "" if paper is None else f"; published {decimals(paper)}"
    path = pages.get(method["label"])
    return ForestRow(
        name=method["title"],
        value=value,
        text=text,
        mean=number(summary["mean"]) or 0.0,
        interval=interval,
        points=list(values.values()) if len(values) > 1 else (),
        paper=paper,
        strong=strong,
        href=None if path is None else quote(path),
    )


def difference_plot(comparison: Comparison) -> Markup:
    """How far each method is behind the best on the same splits."""
    best, *others = comparison["methods"]
    rows = [_difference_row(comparison, best, method) for method in others]
    title = f"Difference from {best['title']} on the same splits"
    axis = f"points of {METRICS[comparison['metric']].title}"
    return forest_plot(title, rows, axis=axis, zero=True, wide=True)


def _difference_row(
    comparison: Comparison, best: Mapping[str, Any], method: Mapping[str, Any]
) -> ForestRow:
    metric = comparison["metric"]
    values, others = (reader.split_values(one, metric) for one in (method, best))
    gaps = [values[seed] - others[seed] for seed in values if seed in others]
    pair = reader.behind_best(comparison, method["label"])
    mean = sum(gaps) / len(gaps) if gaps else 0.0
    interval: tuple[float, float] | None = None
    word = ""
    if pair is not None:
        word, found = reader.pair_verdict(comparison, pair), reader.pair_interval(pair)
        if found is not None and not reader.too_few(comparison):
            ahead = pair["ahead"] == best["label"]  # of equal means either may be first
            interval = (-found[1], -found[0]) if ahead else found
    text = f"{method['title']}: {signed(mean)} points"
    if interval is not None:
        text += f", 95% interval {signed(interval[0])} to {signed(interval[1])}"
    return ForestRow(
        name=method["title"],
        value=f"{signed(mean)}, {word}" if word else signed(mean),
        text=f"{text}; {word}" if word else text,
        mean=mean,
        interval=interval,
        points=gaps if len(gaps) > 1 else (),
        strong=word in ("significant", "on these nodes"),
    )


def cost_section(comparison: Comparison) -> Markup:
    """Seconds per fit of each method."""
    methods = comparison["methods"]
    seconds = [number(method["seconds"]) or 0.0 for method in methods]
    lines = []
    for method, value in zip(methods, seconds, strict=True):
        drawn = bar(f"{method['title']}: {value:.1f} seconds per fit", value, max(seconds))
        name, text = tag("span", method["title"], class_="name"), f"{value:.1f} s"
        lines.append(tag("li", name, drawn, tag("span", text, class_="value")))
    device = lookup(comparison, "environment", "device")
    text = f"Mean seconds per fit{f' on {device}' if device else ''}."
    return page.section("Cost", tag("p", text), tag("ul", *lines, class_="bars names"), id="cost")
