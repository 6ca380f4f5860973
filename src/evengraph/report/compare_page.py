"""The page of a comparison.json: scores with paired differences, recall, cost and settings."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from evengraph.core.untrusted import average, lookup, number, part
from evengraph.metrics.registry import METRICS
from evengraph.metrics.significance import ENOUGH_SPLITS, format_p
from evengraph.report import page
from evengraph.report.charts import ForestRow, forest_plot, swatch
from evengraph.report.markup import (
    DASH,
    Markup,
    decimals,
    integer,
    metric_value,
    plural,
    signed,
    tag,
)
from evengraph.report.view import (
    TERMS,
    ComparisonView,
    StandingView,
    dataset_title,
    describe_protocol,
)


def render_comparison(
    comparison: Mapping[str, Any],
    *,
    pages: Mapping[str, str] | None = None,
    links: Sequence[page.Link] = (),
) -> str:
    """Render the content of a comparison.json as HTML.

    `pages` are paths of the methods' own pages by label, `links` other files beside the page.
    """
    view, pages = ComparisonView(comparison), pages or {}
    own = (page.Link(path, f"Page of {view.titles[label]}") for label, path in pages.items())
    every = [*own, *links]
    settings = [(method["title"], method["settings"]) for method in view.methods]
    sections = [
        *comparison_sections(view, pages),
        page.origin_section(comparison),
        page.settings(*settings, ("Environment", part(comparison, "environment"))),
        page.glossary("How to read this page", {view.metric.heading: view.metric.meaning, **TERMS}),
    ]
    title = f"Methods compared on {dataset_title(comparison.get('dataset'))}"
    return page.render(comparison, title, _heading(view, title, every), sections)


def comparison_sections(view: ComparisonView, pages: Mapping[str, str]) -> list[Markup]:
    """Scores with paired differences, recall per class, all metrics and seconds per fit."""
    return [_scores(view, pages), _pairs(view), _recalls(view), _metrics(view)]


def _heading(view: ComparisonView, title: str, links: Sequence[page.Link]) -> list[Markup]:
    content = view.content
    numbers = [
        (str(len(view.methods)), "methods"),
        (str(view.num_splits), "split" if view.num_splits == 1 else "splits"),
        (integer(sum(content["class_counts"])), "labelled nodes"),
        (str(len(content["classes"])), "classes"),
        (view.training, "of training"),
    ]
    failed = "; ".join(f"{name}: {reason}" for name, reason in part(content, "failed").items())
    return [
        page.headline(title, describe_protocol(part(content, "protocol"))),
        page.verdict(view.verdict),
        page.facts(numbers),
        tag("p", f"Did not run. {failed}", class_="notice") if failed else Markup(""),
        page.page_links(links),
    ]


def _scores(view: ComparisonView, pages: Mapping[str, str]) -> Markup:
    """Mean, interval and single splits of each method."""
    marks = [("mean", "mean")] + ([] if view.too_few else [("whisker", "95% interval")])
    marks += [("seed", "one split")] if view.num_splits > 1 else []
    paper = any(one.paper is not None for one in view.standings)
    marks += [("published", "published mean")] if paper else []
    text = f"{view.metric.heading} on test nodes, the same {view.splits} for all methods."
    if view.too_few:
        text += f" Too few splits for intervals: use at least {ENOUGH_SPLITS}, better 10."
    best = view.standings[0]
    rows = [_score_row(one, pages.get(one.label), one is best) for one in view.standings]
    plot = forest_plot("", rows, axis=f"{view.metric.title}, %", wide=True)
    return page.section(
        view.metric.heading,
        tag("p", text),
        page.legend(tag("li", swatch(kind), name) for kind, name in marks),
        tag("div", plot, class_="panels wide"),
        id="scores",
    )


def _score_row(one: StandingView, path: str | None, strong: bool) -> ForestRow:
    text = f"{one.title}: {decimals(one.mean)}"
    if one.interval is not None:
        text += f", 95% interval {' to '.join(map(decimals, one.interval))}"
    text += "" if one.paper is None else f"; published {decimals(one.paper)}"
    return ForestRow(
        name=one.title,
        value=one.score,
        text=text,
        mean=one.mean or 0.0,
        interval=one.interval,
        points=list(one.splits.values()) if len(one.splits) > 1 else (),
        paper=one.paper,
        strong=strong,
        href=None if path is None else quote(path),
    )


def _recalls(view: ComparisonView) -> Markup:
    """Recall of each class by each method, head to tail; nothing if it was not recorded."""
    if not (rows := view.recalls):
        return Markup("")
    lines = [
        page.shaded_row(name, values, "", "rare" if rare else None, integer(size))
        for name, size, rare, values in rows
    ]
    rare = [values for _, _, is_rare, values in rows if is_rare]
    if len(rare) > 1:
        means = [average(column) for column in zip(*rare, strict=True)]
        lines.append(page.shaded_row("mean of rare classes", means, "", "sum", ""))
    label, heads = "Recall per class in percent, mean over splits", ["nodes", *view.titles.values()]
    text = f"{label}; nodes: training nodes of the first split. Rare classes are in orange."
    drawn = page.shaded_table(label, heads, lines, even=len(view.methods))
    return page.section("Recall per class, head to tail", tag("p", text), drawn, id="recall")


def _metrics(view: ComparisonView) -> Markup:
    """Every metric of every method, the best of each in bold, and its cost."""
    heads, rows = ["method"], [(one.title, list[str]()) for one in view.standings]
    for name in view.methods[0]["figures"]:
        means = [number(lookup(method, "figures", name, "mean")) for method in view.methods]
        known = [mean for mean in means if mean is not None]
        if name not in METRICS or not METRICS[name].column or not known:
            continue
        heads.append(METRICS[name].title)
        higher = METRICS[name].higher_is_better  # None of a threshold: no value is the best
        best = None if higher is None else max(known) if higher else min(known)
        for (_, cells), mean in zip(rows, means, strict=True):
            text = metric_value(name, mean)
            cells.append(tag("b", text) if mean == best is not None else text)
    heads.append("seconds per fit")
    for (_, cells), one in zip(rows, view.standings, strict=True):
        cells.append(f"{one.seconds:.1f}")
    text = "Means over splits in percent; a threshold is a probability. The best is in bold."
    lines = [page.table_row(title, cells) for title, cells in rows]
    kind = "figures many" if len(heads) > 9 else "figures"  # many columns stand closer
    return page.table_section("All metrics", text, heads, lines, kind=kind, id="metrics")


def _pairs(view: ComparisonView) -> Markup:
    """Paired differences: to the best, and folded those of all other pairs."""
    best, shown, others = view.standings[0].label, list[Markup](), list[Markup]()
    for gap in view.gaps.values():
        interval = DASH if gap.interval is None else " to ".join(map(signed, gap.interval))
        p = gap.p if gap.interval else None  # of too few splits neither
        name = f"{view.titles[gap.ahead]} over {view.titles[gap.behind]}"
        rows = shown if best in (gap.ahead, gap.behind) else others
        cells = [signed(gap.difference), interval, DASH if p is None else format_p(p), gap.verdict]
        rows.append(page.table_row(name, cells))
    if not shown:
        return Markup("")
    title, points = "Differences on the same splits", f"points of {view.metric.title}"
    heads = ("pair", points, "95% interval", "p, corrected", "verdict")
    parts = [page.table(title, heads, shown, "figures")]
    if others:
        drawn = page.table("Other pairs of methods", heads, others, "figures")
        parts.append(page.folded(plural(len(others), "other pair"), drawn))
    return page.section(title, *parts, id="pairs")
