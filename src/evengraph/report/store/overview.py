"""One self-contained page for all experiments of a store: a table to sort and filter, figures.

The page needs nothing from outside. Its one script sorts, filters and marks; without it everything
is still there to be read.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from evengraph.core.files import write_whole
from evengraph.metrics import HEADLINE
from evengraph.report.store.boards import Board, Cell
from evengraph.report.store.plots import curve_panel, dots_panel, gaps_panel, map_panel
from evengraph.report.store.statistics import interval, mean_ranks
from evengraph.report.store.style import SCRIPT, STYLE
from evengraph.report.store.tables import (
    TITLES,
    claims_rows,
    reached_rows,
    shown_mean,
    signed,
    tests_rows,
)
from evengraph.report.svg.markup import Markup, join, tag

METRIC = HEADLINE[0]


def write_overview(boards: Sequence[Board], path: Path) -> None:
    """Write the page, whole or not at all."""
    content = render_overview(boards).encode("utf-8", errors="xmlcharrefreplace")
    write_whole(content, Path(path))


def render_overview(boards: Sequence[Board]) -> str:
    """Draw boards as HTML."""
    main = tag("main", *(_board(board) for board in boards), _table(boards), _notes())
    body = tag("body", _header(boards), main, _footer(boards), tag("script", Markup(SCRIPT)))
    return f"<!doctype html>\n{tag('html', _head(boards), body, lang='en')}\n"


def _head(boards: Sequence[Board]) -> Markup:
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", " · ".join(board.title for board in boards)),
        tag("style", Markup(STYLE)),
    )


def _header(boards: Sequence[Board]) -> Markup:
    keys = {row.job.key for board in boards for cell in board.cells for row in cell.rows}
    setups = {cell.setup for board in boards for cell in board.cells}
    labels = {cell.label for board in boards for cell in board.cells}
    facts = [
        tag("li", tag("b", f"{len(keys):,}"), " runs shown"),
        tag("li", tag("b", str(len(setups))), " set-ups"),
        tag("li", tag("b", str(len(labels))), " methods and variants"),
        *(tag("li", tag("b", name), " ", value) for name, value in _origin(boards)),
    ]
    return tag(
        "header",
        tag("h1", "Experiments", tag("span", ", ".join(board.title for board in boards))),
        tag("ul", *facts, class_="facts"),
    )


def _origin(boards: Sequence[Board]) -> Iterable[tuple[str, str]]:
    """Where the runs took place, as far as they agree."""
    rows = [row for board in boards for cell in board.cells for row in cell.rows]
    for name in ("device", "commit"):
        found = {str(row.environment[name]) for row in rows if row.environment.get(name)}
        if found:
            yield name, ", ".join(sorted(found)[:3]) + (" and others" if len(found) > 3 else "")


# The table.


def _table(boards: Sequence[Board]) -> Markup:
    header = ["set-up", "method", TITLES[METRIC], "95% interval", "paper", "difference"]
    header += [*(TITLES[name] for name in HEADLINE[1:]), "seeds", "experiment"]
    rows = [_row(board, cell) for board in boards for cell in board.cells]
    filters = tag(
        "div",
        _select("experiment", "Experiment", [board.title for board in boards]),
        _select("dataset", "Graph", [c.dataset for b in boards for c in b.cells]),
        _select("label", "Method", [c.label for b in boards for c in b.cells]),
        tag(
            "label",
            tag("span", "Search"),
            tag("input", type="search", data_filter="text", placeholder="such as step-3"),
        ),
        class_="filters",
    )
    head = tag("thead", tag("tr", *(_column(n, name) for n, name in enumerate(header))))
    table = tag("table", head, tag("tbody", *rows), class_="figures sortable", id="all")
    return tag(
        "section",
        tag("h2", "All figures"),
        tag("p", "Percent; mean (standard deviation) over seeds. A click on a column sorts by it."),
        filters,
        tag("p", "", class_="note", id="count", aria_live="polite"),
        tag("div", table, class_="scroll tall", tabindex=0, role="region", aria_label="Figures"),
        class_="long",
    )


def _column(place: int, name: str) -> Markup:
    return tag("th", tag("button", name, type="button", data_column=place), scope="col")


def _select(name: str, title: str, values: Iterable[str]) -> Markup:
    options = [tag("option", "all", value="")]
    options += [tag("option", value, value=value) for value in dict.fromkeys(values)]
    return tag("label", tag("span", title), tag("select", *options, data_filter=name))


def _row(board: Board, cell: Cell) -> Markup:
    label = cell.label if cell.value is None else f"{cell.label} = {cell.value}"
    ends, paper, mean = interval(cell.values(METRIC)), cell.published(METRIC), cell.mean(METRIC)
    own = [c for c in board.cells if c.setup == cell.setup]
    best = mean == max(c.mean(METRIC) for c in own)
    shown = shown_mean(cell, METRIC)
    cells = [
        tag("td", cell.setup),
        tag("th", label, scope="row"),
        _number(mean, tag("b", shown) if best else shown),
        _number(ends[0] if ends else None, f"{ends[0]:.1f} to {ends[1]:.1f}" if ends else "–"),
        _number(paper, "–" if paper is None else f"{paper:.1f}"),
        _gap(None if paper is None else mean - paper),
        *(_number(cell.mean(m), f"{cell.mean(m):.1f}") for m in HEADLINE[1:]),
        _number(len(cell.rows), str(len(cell.rows))),
        tag("td", board.title),
    ]
    title = _settings(cell)
    return tag(
        "tr",
        *cells,
        data_experiment=board.title,
        data_dataset=cell.dataset,
        data_label=cell.label,
        title=title or None,
    )


def _number(value: float | None, shown: str) -> Markup:
    return tag("td", shown, data_value=None if value is None else f"{value:.4f}")


def _gap(value: float | None) -> Markup:
    if value is None:
        return _number(None, "–")
    kind = "above" if value >= 0 else "below"
    return tag("td", signed(value), data_value=f"{value:.4f}", class_=kind)


# A section for each experiment.


def _board(board: Board) -> Markup:
    draw = {"comparison": _comparison, "ablation": _ablation, "sensitivity": _sensitivity}
    parts = [tag("h2", board.title), *draw[board.draws](board)]
    tests = _claims(board) if board.draws == "ablation" else _tests(board)
    more = (_reached(board), _ranks(board.even()), tests, _choices(board))
    parts += [part for part in more if part]
    return tag("section", *parts, class_="long")


def _comparison(board: Board) -> list[Markup]:
    words = (
        "A dot is the mean over seeds, the line its 95% interval, small rings are single seeds, a "
        "dash is the paper's mean. Point at a method to see it everywhere."
    )
    panels = [dots_panel(board, setup, METRIC) for setup in board.setups]
    parts = [tag("p", words), tag("div", *panels, class_="panels")]
    if board.map is not None:
        title = f"Embeddings of one run on {board.setups[0]}"
        parts.append(tag("div", map_panel(board.map, title), class_="panels wide"))
    return parts


def _ablation(board: Board) -> list[Markup]:
    words = (
        "How far each variant lies from the whole method on the same seeds: mean difference in "
        "points of balanced accuracy and its 95% interval; a dash is the paper's difference."
    )
    panels = [gaps_panel(board, setup, METRIC) for setup in board.setups]
    return [tag("p", words), tag("div", *panels, class_="panels")]


def _sensitivity(board: Board) -> list[Markup]:
    words = "One field varies, all else stays as chosen. The band is the 95% interval of the mean."
    curves = board.curves()
    values = [value for cells in curves.values() for c in cells for value in _ends(c)]
    low, high = (min(values), max(values)) if values else (0.0, 100.0)
    panels = [curve_panel(name, cells, METRIC, low, high) for name, cells in curves.items()]
    return [tag("p", words), tag("div", *panels, class_="panels")]


def _ends(cell: Cell) -> tuple[float, float]:
    return interval(cell.values(METRIC)) or (cell.mean(METRIC), cell.mean(METRIC))


def _ranks(board: Board) -> Markup | None:
    ranks = {metric: mean_ranks(board, metric) for metric in HEADLINE}
    if not ranks[METRIC] or board.draws != "comparison":
        return None
    order = sorted(ranks[METRIC], key=lambda label: ranks[METRIC][label])
    rows = [[label, *(f"{ranks[metric][label]:.1f}" for metric in HEADLINE)] for label in order]
    title = f"Mean rank over {len(board.complete())} set-ups (1 is best)"
    names = ["method", *TITLES.values()]
    return _details(title, names, rows, f"Ranks, {board.title}")


def _tests(board: Board) -> Markup | None:
    title = f"{board.whole} against the others on the same seeds"
    return _joined(tests_rows(board), title, f"Tests, {board.title}")


def _reached(board: Board) -> Markup | None:
    rows = reached_rows(board) if board.draws == "comparison" else []
    many = sum(row[-1] == "reached" for row in rows)
    words = f"{many} of {len(rows) - 1} figures reached on its seeds"
    return _joined(rows, f"{board.whole} beside the paper: {words}", f"Paper, {board.title}")


def _claims(board: Board) -> Markup | None:
    return _joined(claims_rows(board), "Which differences hold", f"Claims, {board.title}")


def _joined(table: Sequence[Sequence[str]], title: str, label: str) -> Markup | None:
    """A table to unfold, its first two columns in one; none without rows."""
    if not table:
        return None
    header, *rows = ([f"{row[0]}, {row[1]}", *row[2:]] for row in table)
    shown = [[cell or "–" for cell in row] for row in rows]
    return _details(title, [name or "so" for name in header], shown, label)


def _choices(board: Board) -> Markup | None:
    rows = [[f"{c.setup}, {c.label}", _settings(c)] for c in board.cells if c.chosen]
    title, header = "Settings that validation chose", ["set-up", "chosen"]
    return _details(title, header, rows, f"Choices, {board.title}") if rows else None


def _settings(cell: Cell) -> str:
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in cell.chosen.items())


def _details(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], label: str
) -> Markup:
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in header)))
    body = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", text) for text in rest))
        for first, *rest in rows
    ]
    table = tag("table", head, tag("tbody", *body), class_="figures")
    region = tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=label)
    return tag("details", tag("summary", title), region)


def _notes() -> Markup:
    words = [
        ("Intervals", "95% of bootstrap resamples of the seeds have their mean in them."),
        (
            "p, corrected",
            "Of a paired t-test over common seeds, five at least; Holm's correction keeps the "
            "chance of a single false alarm in the whole list below p.",
        ),
        (
            "Chance",
            "How often the mean of as few seeds as the paper has, drawn from all of ours, reaches "
            "its figure.",
        ),
        (
            "Holds, likely, noise",
            "A variant's difference with a corrected p below 0.05; with an interval that leaves "
            "zero out; with one that does not.",
        ),
        ("Choice", "Settings are chosen by mean validation Macro-F1; test figures take no part."),
        (
            "Paper",
            "As published: by Alchihabi, Yan and Guo, 2024, over seeds 5, 6 and 7; on the public "
            "split by UNREAL and IceBerg, over splits of their own.",
        ),
    ]
    pairs = [part for name, text in words for part in (tag("dt", name), tag("dd", text))]
    groups = [tag("div", *pairs[n : n + 2]) for n in range(0, len(pairs), 2)]
    return tag("section", tag("h2", "How to read this"), tag("dl", *groups, class_="words"))


def _footer(boards: Sequence[Board]) -> Markup:
    days = sorted(row.created[:10] for b in boards for c in b.cells for row in c.rows)
    span = "" if not days else days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    return tag("footer", tag("p", join([part for part in ("evengraph", span) if part], " · ")))
