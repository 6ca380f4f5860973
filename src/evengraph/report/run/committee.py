"""Sections on models that are made of others: what was selected, and how far members agree."""

from collections.abc import Mapping
from typing import Any

from evengraph.report import page
from evengraph.report.formatting import decimals, integer
from evengraph.report.run.result_reader import runs
from evengraph.report.svg.charts import bar, dot_row
from evengraph.report.svg.markup import Markup, tag
from evengraph.report.untrusted import items, lookup, number


def summary_section(result: Mapping[str, Any]) -> Markup:
    """What the method says about what it did, per seed; nothing if it says nothing.

    Of several seeds, the first and the last line are shown: what was chosen, and whether the graph
    helps. Those between them are folded: what was rejected.
    """
    blocks, folded = [], []
    for run in runs(result):
        lines = [line for line in items(run, "summary") if isinstance(line, str)]
        if lines and len(runs(result)) > 1:
            name = tag("b", f"Seed {run.get('seed', '?')}:")
            ends, middle = [*lines[:1], *lines[1:][-1:]], lines[1:-1]
            blocks.append(tag("p", name, f" {' '.join(ends)}"))
            folded += [tag("p", name, f" {' '.join(middle)}")] if middle else []
        else:
            blocks += [tag("p", line) for line in lines]
    if folded:
        blocks.append(tag("details", tag("summary", "What was rejected"), *folded))
    return page.section("What was selected", *blocks) if blocks else Markup("")


def agreement_section(result: Mapping[str, Any]) -> Markup:
    """Share of correct predictions by the agreement of a committee; nothing without one."""
    bands: dict[float, tuple[float, float]] = {}
    for run in runs(result):
        for band in items(run, "agreement"):
            low, nodes, hits = (number(lookup(band, key)) for key in ("from", "nodes", "correct"))
            if low is not None and nodes:
                before = bands.get(low, (0.0, 0.0))
                bands[low] = before[0] + nodes, before[1] + (hits or 0.0)
    if not bands:
        return Markup("")
    edges = sorted(bands, reverse=True)
    largest = max(nodes for nodes, _ in bands.values())
    overall = 100 * sum(hits for _, hits in bands.values()) / sum(n for n, _ in bands.values())
    rows = []
    for index, low in enumerate(edges):
        nodes, hits = bands[low]
        name = _name(low, edges[index - 1] if index else None)
        share = 100 * hits / nodes
        size = bar(f"{name}: {integer(nodes)} test nodes", nodes, largest)
        axis = dot_row(f"{name}: {decimals(share)}% correct", share, reference=overall)
        rows.append(page.class_row(name, integer(nodes), size, axis, decimals(share), rare=False))
    text = (
        "The model is a committee: each prediction comes with the share of its members’ votes, by "
        "weight, for the predicted class. Where members disagree, expect more errors. "
        f"The dashed line is the accuracy on all test nodes, {decimals(overall)}%."
    )
    columns = ("test nodes", "correct, %")
    return page.class_section("Agreement and accuracy", text, [], columns, rows)


def _name(low: float, high: float | None) -> str:
    """Such as `75 to 95% agree`."""
    if high is None:
        return f"{100 * low:g}% or more agree"
    return f"{100 * low:g} to {100 * high:g}% agree" if low else f"below {100 * high:g}% agree"
