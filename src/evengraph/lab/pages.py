"""One self-contained HTML page for all experiments of a store: plots and tables.

The page loads nothing. Its only script copies the command.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table as TerminalTable

from evengraph.core.errors import first_line
from evengraph.core.files import csv_text, write_atomic
from evengraph.lab.results import (
    MANY,
    METRIC,
    TITLES,
    Cell,
    Estimate,
    ExperimentResults,
    Table,
    count_reached,
    difference_text,
    interval_text,
    load_experiments,
    mean_text,
    metrics_table,
    paired_table,
    paired_title,
    paper_table,
    ranks_table,
    ranks_title,
    selected_text,
    table_csv,
    variant_gaps,
)
from evengraph.lab.store import Row, Store
from evengraph.metrics.registry import HEADLINE, METRICS
from evengraph.report import page
from evengraph.report.charts import (
    ForestRow,
    Interval,
    curve,
    forest_plot,
    line_plot,
    padded,
    percent,
    swatch,
    ticks,
)
from evengraph.report.markup import DASH, Markup, tag
from evengraph.report.page import Link, copy_script, origin_section, page_links
from evengraph.report.terminal import plain_table

STYLE = page.read_asset(__package__, "style.css")
FILES = (Link("tables.csv", "All results as CSV"),)

INTROS = {
    "comparison": "Mean over seeds of each method, one panel per setting.",
    "ablation": "Mean difference of each variant from the full method on the same seeds. Orange: "
    "significantly below it.",
    "sensitivity": "One parameter varies, all others stay fixed. The band is the 95% interval of "
    "the mean.",
}

GLOSSARY = {
    "95% interval": "Student's t over seeds; of a difference, widened for nodes that splits share "
    "(Nadeau and Bengio).",
    "p, corrected": "Paired t-test over at least five common seeds, corrected for shared nodes "
    "and, by Holm's method, for all rows of the table.",
    "Chance": "How often the mean of as many seeds as the paper has, drawn from ours, "
    "reaches the published mean.",
    "Holds or significant, uncorrected only, not significant": "Corrected p below 0.05; the "
    "interval excludes zero, but the corrected p is larger; the interval includes zero.",
    "Selection": "Hyperparameters are selected by mean {} on validation nodes only.",
    "Paper": "Published by Alchihabi, Yan and Guo, 2024, over three runs whose seeds they do not "
    "name; on the public split by the papers of other methods, over their own splits.",
}


def render_overview(
    experiments: Sequence[ExperimentResults], content: Mapping[str, Any] | None = None
) -> str:
    """Render experiments as HTML; `content` has the `command` that made the page."""
    sections = [_section(results, f"experiment-{n}") for n, results in enumerate(experiments, 1)]
    paper = any(results.has_paper for results in experiments)
    cells = [cell for results in experiments for cell in results.cells]
    criteria = " or ".join(sorted(set().union(*(cell.criteria for cell in cells))))
    words = GLOSSARY | {"Selection": GLOSSARY["Selection"].format(criteria or "score")}
    words = {term: words[term] for term in words if paper or term not in ("Chance", "Paper")}
    glossary = page.glossary("How to read this page", words)
    origin = origin_section(content or {})
    main = tag("main", _legend(paper=paper), *sections, origin, glossary)
    days = sorted(row.created[:10] for r in experiments for c in r.cells for row in c.rows)
    footer = page.footer(None, *([" to ".join(dict.fromkeys((days[0], days[-1])))] if days else []))
    title = " · ".join(results.title for results in experiments)
    body = (_header(experiments), main, footer)
    return page.html_page(title, *body, style=STYLE, script=copy_script(content or {}))


def _legend(*, paper: bool) -> Markup:
    marks = [("mean", "mean over seeds"), ("whisker", "95% interval"), ("seed", "one seed")]
    marks += [("published", "published")] if paper else []
    entries = [tag("li", swatch(kind), text) for kind, text in marks]
    strong = "best of its setting, or significantly below the full method"
    entries.append(tag("li", swatch("whisker mean"), strong, class_="rare"))
    heading = tag("h2", "Marks in all plots", class_="unseen")
    return tag("section", heading, page.legend(entries), class_="marks")


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
    title = tag("h1", "Experiments", tag("span", ", ".join(r.title for r in experiments)))
    names = {f"experiment-{n}": results.title for n, results in enumerate(experiments, 1)}
    entries = (tag("li", tag("a", title, href=f"#{name}")) for name, title in names.items())
    contents = tag("nav", tag("ul", *entries), class_="contents", aria_label="Contents")
    return tag("header", title, page.facts(facts), contents, page_links(FILES))


# One section per experiment.


def _section(results: ExperimentResults, id: str) -> Markup:
    parts = [tag("p", INTROS[results.kind]), tag("div", *_panels(results), class_="panels")]
    tables: list[tuple[str, Table]] = []
    if results.kind == "comparison":
        equal, paper = results.with_equal_seeds(), paper_table(results)
        title = f"{results.reference} and the paper: {count_reached(paper)}"
        tables.append((title, _joined(results, paper)))
        tables.append((ranks_title(equal), ranks_table(equal)))
    tables.append((paired_title(results), _joined(results, paired_table(results))))
    selected = [
        [f"{results.setting_title(c.setting)}, {c.label}", selected_text(c)]
        for c in results.cells
        if c.selected
    ]
    title = "Hyperparameters selected on validation"
    tables.append((title, [["setting", "hyperparameters"], *selected] if selected else []))
    title = "All metrics in percent: mean (sample standard deviation)"
    tables.append((title, _joined(results, metrics_table(results))))
    parts += [_details(title, table, results.title) for title, table in tables if table]
    return page.section(results.title, *parts, kind="long", id=id)


def _panels(results: ExperimentResults) -> list[Markup]:
    if results.kind == "comparison":
        return [dots_panel(results, setting, METRIC) for setting in results.settings]
    if results.kind == "ablation":
        return [gaps_panel(results, setting, METRIC) for setting in results.settings]
    curves = results.curves()
    points = [cell.estimate(METRIC) for curve in curves.values() for cell in curve]
    ends = [end for point in points for end in point.band] or [0.0, 100.0]
    panels = []
    for name, cells in curves.items():
        name = name.replace(cells[0].setting, results.setting_title(cells[0].setting))
        panels.append(curve_panel(name, cells, METRIC, (min(ends), max(ends))))
    return panels


def _joined(results: ExperimentResults, table: Table) -> Table:
    """The table with its first two columns joined, which saves width, and settings in words."""
    return [[f"{results.setting_title(row[0])}, {row[1]}", *row[2:]] for row in table]


def _details(title: str, table: Table, experiment: str) -> Markup:
    header, *rows = table
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in header)))
    body = [page.table_row(first, (text or "–" for text in rest)) for first, *rest in rows]
    content = tag("table", head, tag("tbody", *body), class_="figures")
    return page.folded(title, page.scroll(content, f"{title}, {experiment}"))


MOST_RINGS = 50  # of single seeds, in a row


def dots_panel(results: ExperimentResults, setting: str, metric: str) -> Markup:
    """Draw the methods of a setting, one per row; many are sorted, the best first."""
    rows = [cell.estimate(metric) for cell in results.table_cells(setting)]
    if len(rows) > MANY:
        rows.sort(key=lambda row: -row.mean)
    best = max(row.mean for row in rows)
    lines = [
        _forest_row(row, "{:.1f}".format, strong=row.mean == best, points=some_values(row.values))
        for row in rows
    ]
    return forest_plot(results.setting_title(setting), lines, axis=f"{METRICS[metric].title}, %")


def gaps_panel(results: ExperimentResults, setting: str, metric: str) -> Markup:
    """Draw the differences of the variants from the full method in a setting, one per row."""
    lines = []
    for row in variant_gaps(results, setting, metric):
        worse = row.interval is not None and row.interval[1] < 0
        lines.append(_forest_row(row, difference_text, strong=worse, unit=" points"))
    axis = f"points of {METRICS[metric].title}"
    return forest_plot(results.setting_title(setting), lines, axis=axis, zero=True)


def _forest_row(
    row: Estimate,
    number: Callable[[float], str],
    *,
    strong: bool,
    points: Sequence[float] = (),
    unit: str = "",
) -> ForestRow:
    text = f"{row.label}: {number(row.mean)}{unit}"
    if row.interval is not None:
        text += f", 95% interval {' to '.join(map(number, row.interval))}"
    text += f", {len(row.values)} seeds"
    text += "" if row.paper is None else f"; paper {number(row.paper)}"
    return ForestRow(
        name=row.label,
        value=number(row.mean),
        text=text,
        mean=row.mean,
        interval=row.interval,
        points=points,
        paper=row.paper,
        strong=strong,
    )


def some_values(values: Sequence[float]) -> Sequence[float]:
    """All values if they are few, else some of them from the smallest to the largest."""
    if len(values) <= MOST_RINGS:
        return values
    ordered, last = sorted(values), MOST_RINGS - 1
    return [ordered[rank * (len(values) - 1) // last] for rank in range(MOST_RINGS)]


def curve_panel(name: str, cells: Sequence[Cell], metric: str, limits: Interval) -> Markup:
    """Draw the mean over seeds along the values of a parameter, its interval as a band."""
    low, high = padded(limits)

    def height(value: float) -> float:
        return 100 * (high - value) / (high - low)

    estimates = [cell.estimate(metric) for cell in cells]
    bands = [estimate.band for estimate in estimates]
    means = [(100 * (n + 0.5) / len(cells), height(e.mean)) for n, e in enumerate(estimates)]
    xs = [x for x, _ in means]
    edge = [*zip(xs, (top for _, top in bands), strict=True)]
    edge += reversed([*zip(xs, (bottom for bottom, _ in bands), strict=True)])
    points = " ".join(f"{10 * x:.1f},{10 * height(value):.1f}" for x, value in edge)
    dots = []
    for (x, y), cell, estimate in zip(means, cells, estimates, strict=True):
        text = f"{name} = {cell.value}: {estimate.mean:.1f}, {interval_text(estimate.band)}, "
        text += f"{len(cell.rows)} seeds"
        dot = tag("circle", tag("title", text), cx=percent(x), cy=percent(y), r=5)
        dots.append(tag("g", dot, class_="point"))
    label = f"{name} from {cells[0].value} to {cells[-1].value}: bAcc "
    label += " to ".join(f"{end(e.mean for e in estimates):.1f}" for end in (min, max))
    picture = line_plot(
        label,
        [tag("polygon", points=points, class_="band"), curve(means, label, "curve")],
        dots,
        rows=[(height(tick), f"{tick:g}") for tick in ticks(low, high, 4)],
        columns=[(x, str(cell.value)) for x, cell in zip(xs, cells, strict=True)],
        axis=cells[0].varies or name,
    )
    metric_line = tag("p", f"{METRICS[metric].title}, %", class_="note")
    note = tag("p", cells[0].note, class_="note") if cells[0].note else ""
    return tag("figure", tag("figcaption", tag("h3", name), metric_line), picture, note)


PARTS = ("metrics", "criterion", "per_class")  # of outcomes, in every row


def export_runs(rows: Sequence[Row], path: Path) -> int:
    """Write runs as CSV, JSON or Parquet, by the suffix of the path; returns their number."""
    flat = [row.flat() for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    if path.suffix == ".csv":
        write_atomic(csv_text(flat, names).encode(), path)
    elif path.suffix == ".json":
        content = [row.flat() | {"outcome": dict(row.outcome)} for row in rows]
        write_atomic((json.dumps(content, indent=1) + "\n").encode(), path)
    elif path.suffix == ".parquet":
        import pandas as pd

        write_atomic(pd.DataFrame(flat, columns=names).to_parquet(index=False), path)
    else:
        raise ValueError(f"path must end in .csv, .json or .parquet, got {path}.")
    return len(rows)


def write_report(
    store: Store, folder: Path, content: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write a page and a CSV file of all results of a store to a folder; returns the paths."""
    with _named(store):
        loaded = load_experiments(store, parts=PARTS)
        experiments = [results for results in loaded if results.cells]
    if not experiments:
        raise ValueError(f"{store.path} holds no finished experiment.")
    folder.mkdir(parents=True, exist_ok=True)
    with _named(store):
        write_atomic(table_csv(experiments).encode(), folder / "tables.csv")
        page.write_html(render_overview(experiments, content), folder / "index.html")
    return [folder / "tables.csv", folder / "index.html"]


@contextmanager
def _named(store: Store) -> Iterator[None]:
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise ValueError(
            f"{store.path} cannot be drawn: a result is not as it was written ({reason})."
        ) from error


def experiment_table(results: ExperimentResults) -> TerminalTable:
    """Mean and deviation over seeds of every cell, with the published mean beside it."""
    main, *others = TITLES.values()
    table = plain_table(["method"], ["seeds", main, "paper", *others])
    table.title, table.title_justify = escape(results.title), "left"
    for setting in results.settings:
        cells = [cell for cell in results.cells if cell.setting == setting]
        table.add_row(f"[bold]{escape(setting)}[/]")
        best = max(cell.mean(HEADLINE[0]) for cell in cells)
        for cell in cells:
            first, *rest = (mean_text(cell, metric) for metric in HEADLINE)
            first = f"[bold]{first}[/]" if cell.mean(HEADLINE[0]) == best else first
            published = cell.published(HEADLINE[0])
            paper = "" if published is None else f"{published:.1f}"
            table.add_row(f"  {escape(cell.name)}", str(len(cell.rows)), first, paper, *rest)
    return table


def selected_params(results: ExperimentResults) -> list[str]:
    """One line per cell whose parameters were selected on validation."""
    return [
        f"{cell.setting}: {cell.label} with "
        + ", ".join(f"{name}={value}" for name, value in cell.selected.items())
        for cell in results.cells
        if cell.selected
    ]


RUN_VALUES = (*HEADLINE, "validation", "seconds")


@dataclass
class RunGroup:
    """Runs of one method in one setting."""

    runs: int = 0
    failed: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0] * len(RUN_VALUES))
    tried: set[str] = field(default_factory=set)  # their parameters, such as those of a grid


def group_runs(rows: Iterable[Row]) -> dict[tuple[str, str], RunGroup]:
    """Count runs and add their `RUN_VALUES`, by setting and method."""
    groups: dict[tuple[str, str], RunGroup] = {}
    for row in rows:
        job = row.job
        varied = (job.imbalance_fields.get(name) for name in ("minority", "ratio"))
        words = [job.imbalance, *(str(value) for value in varied if value is not None)]
        group = groups.setdefault((f"{job.dataset}, {' '.join(words)}", job.method), RunGroup())
        group.tried.add(job.stem)
        group.runs += 1
        group.failed += not row.done
        if row.done:
            outcome = dict(row.outcome.items())
            found = [(outcome["metrics"] | outcome).get(name) for name in RUN_VALUES]
            values = (v if isinstance(v, int | float) else math.nan for v in found)
            group.sums = [sum(pair) for pair in zip(group.sums, values, strict=True)]
    return groups


def runs_table(groups: Mapping[tuple[str, str], RunGroup]) -> TerminalTable:
    """Means of `RUN_VALUES`, one line per method under its setting."""
    table = plain_table(["method"], ("runs", "failed", *TITLES.values(), "val", "seconds"))
    for setting in dict.fromkeys(setting for setting, _ in groups):
        table.add_row(f"[bold]{escape(setting)}[/]")
        for (of, method), group in groups.items():
            if of != setting:
                continue
            done = group.runs - group.failed
            means = [f"{one / done:.1f}" if done and one == one else "" for one in group.sums]
            name = f"  {escape(method)}"
            if len(group.tried) > 1:  # a mean would count what was tried and not selected
                name, means[:-1] = f"{name}, {len(group.tried)} settings", [DASH] * (len(means) - 1)
            table.add_row(name, str(group.runs), str(group.failed), *means)
    return table
