"""One self-contained HTML page for all experiments of a store: plots and a sortable table.

The page loads nothing. Its only script sorts, filters and highlights; everything can be read
without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from evengraph.metrics import HEADLINE
from evengraph.report import page
from evengraph.report.store.canvas import METRIC
from evengraph.report.store.experiment_results import Cell, ExperimentResults
from evengraph.report.store.plots import curve_panel, dots_panel, gaps_panel, tsne_panel
from evengraph.report.store.tables import (
    TITLES,
    Table,
    claims_table,
    count_reached,
    difference_text,
    interval_text,
    mean_text,
    paper_table,
    ranks_table,
    ranks_title,
    selected_text,
    significance_table,
)
from evengraph.report.svg.markup import Markup, tag

STYLE = page.read_asset(__package__, "style.css")
SCRIPT = page.read_asset(__package__, "script.js")

LEGENDS = {
    "comparison": "Dot: mean over seeds; line: its 95% interval; small rings: single seeds; dash: "
    "published mean. Point at a method to highlight it everywhere.",
    "ablation": "Mean difference of each variant from the full method on the same seeds, in points "
    "of balanced accuracy, and its 95% interval; dash: published difference.",
    "sensitivity": "One parameter varies, all others stay fixed. The band is the 95% interval of "
    "the mean.",
}

GLOSSARY = {
    "95% interval": "Percentile bootstrap over seeds.",
    "p, corrected": "Paired t-test over at least five common seeds, with Holm's correction for "
    "all rows of the table.",
    "Chance": "How often the mean of as many seeds as the paper has, drawn from all of ours, "
    "reaches the published mean.",
    "Holds, uncorrected only, not significant": "Corrected p below 0.05; the interval excludes "
    "zero, but the corrected p is larger; the interval includes zero.",
    "Selection": "Hyperparameters are selected by mean {} on validation nodes only.",
    "Paper": "Published by Alchihabi, Yan and Guo, 2024, over three runs whose seeds they do not "
    "name; on the public split by the papers of other methods, over their own splits.",
}


def write_overview(experiments: Sequence[ExperimentResults], path: Path) -> None:
    """Write the page atomically."""
    page.write_html(render_overview(experiments), path)


def render_overview(experiments: Sequence[ExperimentResults]) -> str:
    """Render experiments as HTML."""
    sections = [_section(results) for results in experiments]
    words = GLOSSARY | {"Selection": GLOSSARY["Selection"].format(_criteria(experiments))}
    glossary = page.glossary("How to read this page", words)
    main = tag("main", *sections, _table(experiments), glossary)
    days = sorted(row.created[:10] for r in experiments for c in r.cells for row in c.rows)
    footer = page.footer(None, *([" to ".join(dict.fromkeys((days[0], days[-1])))] if days else []))
    title = " · ".join(results.title for results in experiments)
    body = (_header(experiments), main, footer)
    return page.html_page(title, *body, style=STYLE, script=SCRIPT)


def _criteria(experiments: Sequence[ExperimentResults]) -> str:
    """What the validation scores are; older rows do not say it, they are Macro-F1."""
    rows = [row for results in experiments for cell in results.cells for row in cell.rows]
    names = {str(row.outcome.get("criterion") or "Macro-F1") for row in rows}
    return " or ".join(sorted(names)) or "score"


def _header(experiments: Sequence[ExperimentResults]) -> Markup:
    cells = [cell for results in experiments for cell in results.cells]
    rows = [row for cell in cells for row in cell.rows]
    settings = len({cell.setting for cell in cells})
    facts = [
        (f"{len({row.job.key for row in rows}):,}", "runs"),
        (str(settings), "setting" if settings == 1 else "settings"),
        (str(len({cell.label for cell in cells})), "methods and variants"),
    ]
    for name in ("device", "commit"):
        values = sorted({str(row.environment.get(name) or "") for row in rows} - {""})
        if values:
            facts.append((name, ", ".join(values[:3]) + (" and others" if values[3:] else "")))
    return tag(
        "header",
        tag("h1", "Experiments", tag("span", ", ".join(r.title for r in experiments))),
        page.facts(facts),
    )


# The table.


def _table(experiments: Sequence[ExperimentResults]) -> Markup:
    columns = ["setting", "method", "bAcc", "95% interval", "paper", "difference"]
    columns += [*list(TITLES.values())[1:], "seeds", "experiment"]
    pairs = [(results, cell) for results in experiments for cell in results.cells]
    placeholder = "for example step-3"
    filters = tag(
        "div",
        _select("experiment", "Experiment", [results.title for results in experiments]),
        _select("dataset", "Data set", [cell.dataset for _, cell in pairs]),
        _select("label", "Method", [cell.label for _, cell in pairs]),
        tag(
            "label",
            tag("span", "Search"),
            tag("input", type="search", data_filter="text", placeholder=placeholder),
        ),
        class_="filters",
    )
    head = tag("thead", tag("tr", *(_column(n, name) for n, name in enumerate(columns))))
    body = tag("tbody", *(_row(results, cell) for results, cell in pairs))
    table = tag("table", head, body, class_="figures sortable", id="all")
    text = "Percent; mean (standard deviation) over seeds. Click a column to sort by it."
    return tag(
        "section",
        tag("h2", "All results"),
        tag("p", text),
        filters,
        tag("p", "", class_="note", id="count", aria_live="polite"),
        page.scroll(table, "Results", "scroll tall"),
        class_="long",
    )


def _column(index: int, name: str) -> Markup:
    return tag("th", tag("button", name, type="button", data_column=index), scope="col")


def _select(name: str, title: str, values: Iterable[str]) -> Markup:
    options = [tag("option", "all", value="")]
    options += [tag("option", value, value=value) for value in dict.fromkeys(values)]
    return tag("label", tag("span", title), tag("select", *options, data_filter=name))


def _row(results: ExperimentResults, cell: Cell) -> Markup:
    label = cell.label if cell.value is None else f"{cell.label} = {cell.value}"
    interval, paper, mean = cell.interval(METRIC), cell.published(METRIC), cell.mean(METRIC)
    best = max(c.mean(METRIC) for c in results.cells if c.setting == cell.setting)
    text = mean_text(cell, METRIC)
    gap = None if paper is None else mean - paper
    side = None if gap is None else "above" if gap >= 0 else "below"
    cells = [
        tag("td", cell.setting),
        tag("th", label, scope="row"),
        _number(mean, tag("b", text) if mean == best else text),
        _number(interval[0] if interval else None, interval_text(interval)),
        _number(paper, "" if paper is None else f"{paper:.1f}"),
        _number(gap, "" if gap is None else difference_text(gap), side),
        *(_number(cell.mean(m), f"{cell.mean(m):.1f}") for m in HEADLINE[1:]),
        _number(len(cell.rows), str(len(cell.rows))),
        tag("td", results.title),
    ]
    return tag(
        "tr",
        *cells,
        data_experiment=results.title,
        data_dataset=cell.dataset,
        data_label=cell.label,
        title=selected_text(cell) or None,
    )


def _number(value: float | None, text: str, side: str | None = None) -> Markup:
    sort_key = None if value is None else f"{value:.4f}"
    return tag("td", text or "–", data_value=sort_key, class_=side)


# One section per experiment.


def _section(results: ExperimentResults) -> Markup:
    parts = [tag("h2", results.title), tag("p", LEGENDS[results.kind])]
    parts.append(tag("div", *_panels(results), class_="panels"))
    if results.tsne is not None:
        title = f"t-SNE of one run of {results.tsne_label} on {results.settings[0]}"
        parts.append(tag("div", tsne_panel(results.tsne, title), class_="panels wide"))
    tables: list[tuple[str, Table]] = []
    if results.kind == "comparison":
        equal, paper = results.with_equal_seeds(), paper_table(results)
        tables.append(
            (f"{results.reference} and the paper: {count_reached(paper)}", _joined(paper))
        )
        tables.append((ranks_title(equal), ranks_table(equal)))
    if results.kind == "ablation":
        tables.append(("Which published differences hold", _joined(claims_table(results))))
    else:
        title = f"{results.reference} against the other methods on the same seeds"
        tables.append((title, _joined(significance_table(results))))
    selected = [[f"{c.setting}, {c.label}", selected_text(c)] for c in results.cells if c.selected]
    title = "Hyperparameters selected on validation"
    tables.append((title, [["setting", "hyperparameters"], *selected] if selected else []))
    parts += [_details(title, table, results.title) for title, table in tables if table]
    return tag("section", *parts, class_="long")


def _panels(results: ExperimentResults) -> list[Markup]:
    if results.kind == "comparison":
        return [dots_panel(results, setting, METRIC) for setting in results.settings]
    if results.kind == "ablation":
        return [gaps_panel(results, setting, METRIC) for setting in results.settings]
    curves = results.curves()
    points = [cell.estimate(METRIC) for curve in curves.values() for cell in curve]
    ends = [end for point in points for end in point.band] or [0.0, 100.0]
    limits = min(ends), max(ends)
    return [curve_panel(name, curve, METRIC, limits) for name, curve in curves.items()]


def _joined(table: Table) -> Table:
    """The table with its first two columns joined, which saves width."""
    return [[f"{row[0]}, {row[1]}", *row[2:]] for row in table]


def _details(title: str, table: Table, experiment: str) -> Markup:
    """Fold a table under its title."""
    header, *rows = table
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in header)))
    body = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", text or "–") for text in rest))
        for first, *rest in rows
    ]
    content = tag("table", head, tag("tbody", *body), class_="figures")
    return tag("details", tag("summary", title), page.scroll(content, f"{title}, {experiment}"))
