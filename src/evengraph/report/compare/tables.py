"""Tables of a comparison: recall per class, all metrics, every pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evengraph.metrics import METRICS
from evengraph.metrics.significance import format_p
from evengraph.report import page
from evengraph.report.compare import reader
from evengraph.report.compare.reader import Comparison
from evengraph.report.formatting import DASH, decimals, integer, metric_value, signed
from evengraph.report.page import DENSE
from evengraph.report.run.result_reader import minority
from evengraph.report.svg.markup import Markup, tag
from evengraph.report.untrusted import average, number

MANY = 8  # columns of a table; more stand closer


def recall_section(comparison: Comparison) -> Markup:
    """Recall of each class by each method, head to tail; nothing if it was not recorded."""
    methods, names = comparison["methods"], comparison["classes"]
    counts = reader.training_counts(comparison)
    counts += [0.0] * (len(names) - len(counts))
    rare = minority({"imbalance": comparison["protocol"]}, counts)
    order = sorted(range(len(names)), key=lambda index: (-counts[index], index))
    values = {i: [reader.recalls(method, i) for method in methods] for i in order}
    if not any(value is not None for row in values.values() for value in row):
        return Markup("")
    lines = [
        _recall_row(str(names[i]), integer(counts[i]), values[i], "rare" if i in rare else None)
        for i in order
    ]
    if len(rare) > 1:
        means = [average(column) for column in zip(*(values[i] for i in rare), strict=True)]
        lines.append(_recall_row("mean of rare classes", "", means, "sum"))
    heads = (tag("th", text, scope="col") for text in ("nodes", *(m["title"] for m in methods)))
    label = "Recall per class in percent, mean over splits"
    table = tag(
        "table",
        tag("caption", label, class_="unseen"),
        tag("thead", tag("tr", tag("td", class_="plain"), *heads)),
        tag("tbody", *lines),
        class_="shares even dense" if len(names) > DENSE else "shares even",
        style=f"--columns: {len(methods)}",
    )
    text = f"{label}; nodes: training nodes of the first split. Rare classes are in orange."
    drawn = page.scroll(table, label)
    return page.section("Recall per class, head to tail", tag("p", text), drawn, id="recall")


def _recall_row(name: str, count: str, values: list[float | None], kind: str | None) -> Markup:
    cells = (page.shaded_cell(value, decimals(value, 0)) for value in values)
    size = tag("td", count, class_="plain")
    return tag("tr", tag("th", name, scope="row"), size, *cells, class_=kind)


def metrics_section(comparison: Comparison) -> Markup:
    """Every metric of every method; the best of each in bold."""
    methods = comparison["methods"]
    names = [
        name
        for name in methods[0]["figures"]
        if name in METRICS
        and METRICS[name].column
        and any(_mean(m, name) is not None for m in methods)
    ]
    best = {name: _best(comparison, name) for name in names}
    rows = []
    for method in methods:
        cells = []
        for name in names:
            text = metric_value(name, _mean(method, name))
            leads = _mean(method, name) == best[name] is not None
            cells.append(tag("td", tag("b", text) if leads else text))
        rows.append(tag("tr", tag("th", method["title"], scope="row"), *cells))
    heads = [
        tag("th", text, scope="col") for text in ("method", *(METRICS[n].title for n in names))
    ]
    title = "All metrics"
    text = "Means over splits in percent; a threshold is a probability. The best is in bold."
    table = page.table(title, heads, rows, "figures many" if len(names) > MANY else "figures")
    return page.section(title, tag("p", text), table, id="metrics")


def _mean(method: Mapping[str, Any], name: str) -> float | None:
    return number(method["figures"][name]["mean"])


def _best(comparison: Comparison, name: str) -> float | None:
    """The best mean; None for a metric that is neither good nor bad, such as a threshold."""
    if METRICS[name].higher_is_better is None:
        return None
    known = [mean for m in comparison["methods"] if (mean := _mean(m, name)) is not None]
    return max(known) if METRICS[name].higher_is_better else min(known)


def pairs_section(comparison: Comparison) -> Markup:
    """All pairs of methods, folded; nothing where the differences to the best are all."""
    pairs = comparison["pairs"]
    if len(pairs) < 2:
        return Markup("")
    titles = {method["label"]: method["title"] for method in comparison["methods"]}
    rows = []
    for pair in pairs:
        interval = None if reader.too_few(comparison) else reader.pair_interval(pair)
        cells = [
            signed(pair["difference"]),
            DASH if interval is None else " to ".join(map(signed, interval)),
            DASH if number(pair["wide_p"]) is None else format_p(pair["wide_p"]),
            reader.pair_verdict(comparison, pair),
        ]
        name = f"{titles[pair['ahead']]} over {titles[pair['behind']]}"
        rows.append(tag("tr", tag("th", name, scope="row"), *(tag("td", c) for c in cells)))
    columns = ("pair", "difference", "95% interval", "p, corrected", "verdict")
    heads = [tag("th", text, scope="col") for text in columns]
    table = page.table("All pairs of methods", heads, rows, "figures")
    folded = tag("details", tag("summary", f"{len(pairs)} pairs"), table)
    return page.section("All pairs of methods", folded, id="pairs")
