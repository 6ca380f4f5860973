"""The page of a monitor.json: what to do, alarms, labels that came back, drift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evengraph.core.untrusted import items, part
from evengraph.report import page
from evengraph.report.markup import DASH, Markup, integer, percentage, signed, tag


def render_monitor(content: Mapping[str, Any], model: str) -> str:
    title = f"Monitor of {model}"
    numbers = [(integer(content.get("nodes")), "new nodes")]
    alarms, labels = part(content, "alarms"), part(content, "labels")
    if alarms:
        numbers.append((integer(alarms.get("alarms")), f"alarms of {alarms.get('class')}"))
    heading = [page.headline(title, str(content.get("method", ""))), page.facts(numbers)]
    heading.append(page.verdict([str(text) for text in items(content, "advice")]))
    sections = [_labels(labels), _alarms(content, alarms), _drift(content)]
    return page.render(content, title, heading, [one for one in sections if one])


def _labels(labels: Mapping[str, Any]) -> Markup:
    if not labels:
        return Markup("")
    lines = [tag("p", f"Now: {labels['words']}.")]
    if labels.get("before"):
        lines.append(tag("p", f"On held-out nodes of training: {labels['before']}."))
    if not labels.get("unflagged"):
        text = "Recall needs labels of nodes that were not flagged, and none came back."
        lines.append(tag("p", text))
    return page.section("Labels that came back", *lines)


def _alarms(content: Mapping[str, Any], alarms: Mapping[str, Any]) -> Markup:
    if not alarms:
        return Markup("")
    rows = [
        _row("all", alarms),
        *(_row(str(one["period"]), one) for one in items(content, "periods")),
    ]
    expected = percentage(alarms.get("expected"), 1)
    text = f"On held-out nodes of training {expected} were flagged."
    heads = ("period", "nodes", "alarms", "share", "95% interval")
    return page.table_section("Alarms", text, heads, rows, kind="figures rules")


def _row(name: str, one: Mapping[str, Any]) -> Markup:
    ends, nodes = one.get("interval"), one.get("nodes") or 0
    between = f"{percentage(ends[0], 1)} to {percentage(ends[1], 1)}" if ends else DASH
    share = percentage(one["alarms"] / nodes, 1) if nodes else DASH
    return page.table_row(name, (integer(nodes), integer(one["alarms"]), share, between))


def _drift(content: Mapping[str, Any]) -> Markup:
    lines = [tag("p", str(text)) for text in items(content, "drift")]
    lines = lines or [tag("p", "Nothing differs clearly from training.")]
    total, training = content.get("nodes") or 1, part(content, "training")
    shares = [
        page.table_row(name, (percentage(count / total, 1), percentage(training.get(name), 1)))
        for name, count in part(content, "predicted").items()
    ]
    lines.append(
        page.table("Classes", ("class", "predicted", "labels of training"), shares, "figures")
    )
    moved = [
        page.table_row(str(one["feature"]), (signed(one["moved"], 2),))
        for one in items(content, "features")
    ]
    heads = ("feature", "moved by, in standard deviations")
    return page.section("Drift", *lines, page.table("Features", heads, moved, "figures"))
