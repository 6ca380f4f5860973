"""The page of a comparison: verdict, forest plot, paired differences, recall, cost, all metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evengraph.metrics import METRICS
from evengraph.metrics.significance import ENOUGH_SPLITS
from evengraph.report import page
from evengraph.report.compare import reader
from evengraph.report.compare.charts import cost_section, difference_plot, score_plot
from evengraph.report.compare.reader import Comparison
from evengraph.report.compare.tables import metrics_section, pairs_section, recall_section
from evengraph.report.formatting import integer, plural
from evengraph.report.origin import Link, changed_params, copy_script, origin_section, page_links
from evengraph.report.run import captions
from evengraph.report.svg.charts import swatch
from evengraph.report.svg.markup import Markup, join, tag
from evengraph.report.untrusted import items, part

_GLOSSARY = {
    "95% interval": "Of a mean: Student's t over splits. Of a difference: the same over the "
    "differences per split, widened for nodes that splits share (Nadeau and Bengio) and corrected "
    "for the number of comparisons (Holm).",
    "Significant": "The corrected interval of the difference excludes 0.",
    "On these nodes": "Significant for the labelled nodes of this graph, with an interval that "
    "does not allow for shared nodes; less certain for other nodes.",
    "ECE": "Expected calibration error: how far confidence is from accuracy. Calibrated: after "
    "temperature scaling on validation nodes; shifted: with a shift of each class as well.",
}


def write_comparison_page(
    comparison: Comparison,
    path: Path,
    *,
    pages: Mapping[str, str] | None = None,
    links: Sequence[Link] = (),
) -> None:
    """Write the page atomically; the arguments are those of `render_comparison`."""
    page.write_html(render_comparison(comparison, pages=pages, links=links), path)


def render_comparison(
    comparison: Comparison,
    *,
    pages: Mapping[str, str] | None = None,
    links: Sequence[Link] = (),
) -> str:
    """Render a comparison as HTML.

    Args:
        comparison: Content of a comparison.json.
        pages: Paths of the methods' own pages, relative to this one, by label.
        links: Other files beside the page.
    """
    pages = pages or {}
    titles = {method["label"]: method["title"] for method in comparison["methods"]}
    every = [*(Link(path, f"Page of {titles[label]}") for label, path in pages.items()), *links]
    changed = {
        m["title"]: changed_params({"fields": m["settings"], **m}) for m in _methods(comparison)
    }
    known = {title: values for title, values in changed.items() if values is not None}
    main = tag(
        "main",
        *comparison_sections(comparison, pages),
        origin_section(comparison, every, changed=known or None),
        _settings(comparison),
        page.glossary("How to read this page", _glossary(comparison)),
    )
    name = _title(comparison)
    footer = page.footer(comparison.get("evengraph"), *_dated(comparison))
    body = (_header(comparison, name, every), main, footer)
    return page.html_page(name, *body, script=copy_script(comparison))


def comparison_sections(comparison: Comparison, pages: Mapping[str, str]) -> list[Markup]:
    """Scores with paired differences, recall per class, cost and all metrics."""
    return [
        _scores(comparison, pages),
        recall_section(comparison),
        cost_section(comparison),
        metrics_section(comparison),
        pairs_section(comparison),
    ]


def verdict(comparison: Comparison) -> Markup:
    """Which method to use, in the first line of the page."""
    sentences = [str(sentence) for sentence in items(comparison, "verdict", "sentences")]
    first, rest = tag("b", *sentences[:1]), " ".join(["", *sentences[1:]])
    return tag("p", first, rest, class_="verdict")


def _methods(comparison: Comparison) -> Sequence[Mapping[str, Any]]:
    return items(comparison, "methods")


def _title(comparison: Comparison) -> str:
    name = comparison.get("dataset")
    return f"Methods compared on {captions.dataset(name) if name else 'a graph'}"


def _header(comparison: Comparison, title: str, links: Sequence[Link]) -> Markup:
    protocol = captions.imbalance({"imbalance": part(comparison, "protocol")})
    splits = len(items(comparison, "seeds"))
    seconds = sum(m["seconds"] * len(m["runs"]) for m in _methods(comparison))
    facts = [
        (str(len(_methods(comparison))), "methods"),
        (str(splits), "split" if splits == 1 else "splits"),
        (integer(sum(comparison["class_counts"])), "labelled nodes"),
        (str(len(comparison["classes"])), "classes"),
        (captions.duration(seconds), "of training"),
    ]
    parts = [
        tag("h1", title, tag("span", ", ", class_="unseen"), tag("span", protocol)),
        verdict(comparison),
        page.facts(facts),
    ]
    if failed := part(comparison, "failed"):
        text = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
        parts.append(tag("p", f"Did not run. {text}", class_="notice"))
    return tag("header", *parts, page_links(links))


def _scores(comparison: Comparison, pages: Mapping[str, str]) -> Markup:
    metric = METRICS[comparison["metric"]]
    few, several = reader.too_few(comparison), len(comparison["seeds"]) > 1
    marks = [("mean", "mean")] + ([] if few else [("whisker", "95% interval")])
    marks += [("seed", "one split")] if several else []
    paper = any(part(method, "paper") for method in _methods(comparison))
    marks += [("published", "published mean")] if paper else []
    text = f"{metric.heading} on test nodes, the same "
    text += plural(len(comparison["seeds"]), "split") + " for all methods."
    if few:
        text += f" Too few splits for intervals: use at least {ENOUGH_SPLITS}, better 10."
    parts = [
        tag("p", text),
        page.legend(tag("li", swatch(kind), name) for kind, name in marks),
        tag("div", score_plot(comparison, pages), class_="panels wide"),
    ]
    if len(_methods(comparison)) > 1:
        parts.append(tag("div", difference_plot(comparison), class_="panels wide"))
    return page.section(metric.heading, *parts, id="scores")


def _settings(comparison: Comparison) -> Markup:
    """Parameters of every method and the environment, folded."""
    folded = [
        tag(
            "details", tag("summary", method["title"]), page.definitions(_texts(method["settings"]))
        )
        for method in _methods(comparison)
    ]
    environment = page.definitions(_texts(part(comparison, "environment")))
    folded.append(tag("details", tag("summary", "Environment"), environment))
    return page.section("Settings", *folded)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): "–" if value is None else str(value) for name, value in values.items()}


def _glossary(comparison: Comparison) -> dict[str, str]:
    metric = METRICS[comparison["metric"]]
    return {metric.heading: metric.meaning, **_GLOSSARY}


def _dated(comparison: Comparison) -> list[Markup]:
    created = comparison.get("created")
    moment = captions.timestamp(created)
    return [] if moment is None else [join([tag("time", moment, datetime=str(created))])]
