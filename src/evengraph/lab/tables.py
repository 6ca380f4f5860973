"""Tables of experiments in Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evengraph.core.files import csv_text
from evengraph.core.text import one_line
from evengraph.lab.results import (
    MANY,
    METRIC,
    Cell,
    ExperimentResults,
    alternative_text,
    best_first,
    compare,
    compare_with_paper,
    rank_methods,
)
from evengraph.metrics.registry import HEADLINE, METRICS
from evengraph.report.markup import plural
from evengraph.report.view import dataset_title

LONG = 50  # tables with more rows are folded
TITLES = {name: METRICS[name].short for name in HEADLINE}
TESTS_NOTE = (
    "Intervals are bootstrap intervals; p values come from a paired t-test, Holm-corrected for all "
    "rows of this table."
)

Table = list[list[str]]


def markdown(results: ExperimentResults, pictures: Sequence[str] = ()) -> str:
    """Write all tables of an experiment, after the pictures of these names in the same folder."""
    equal = results.with_equal_seeds()
    shown = (f"![{_line(alternative_text(results, name))}]({name}.svg)" for name in pictures)
    counts = sorted({len(cell.rows) for cell in equal.cells}) or [0]
    seeds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    best = "" if results.kind == "sensitivity" else "; the best mean in bold"
    intro = f"Mean (standard deviation) over {seeds} seeds, in percent{best}."
    parts = [f"# {_line(results.title)}", *shown, intro]
    if results.kind == "sensitivity":
        for name, cells in results.curves().items():
            header = [name, "seeds", "bAcc", "95% interval", "Macro-F1"]
            rows = [
                [
                    str(cell.value),
                    str(len(cell.rows)),
                    mean_text(cell, METRIC),
                    interval_text(cell.interval(METRIC)),
                    f"{cell.mean('macro_f1'):.1f}",
                ]
                for cell in cells
            ]
            notes = filter(None, [cells[0].note])
            parts += [f"## {_line(name)}", *notes, _markdown([header, *rows])]
    else:
        for title, table in _grids(equal, bold="**{}**"):
            parts += [f"## {_line(title)}", _markdown(table)]
        parts += _section(ranks_title(equal), ranks_table(equal))
    if results.kind == "comparison":
        table = paper_table(results)
        note = (
            f"{count_reached(table)}. Ours are means over the seeds that took no part in selecting "
            "hyperparameters, where there are such, with the number of seeds in brackets. Chance: "
            f"how often the mean of {len(results.seeds)} of these reaches the published mean; "
            "below 5% the gap is larger than chance explains."
        )
        parts += _section(f"{results.reference} and the paper", _titled(results, table), note)
    lines = [
        f"- {results.setting_title(cell.setting)}, {cell.label}: {selected_text(cell)}"
        for cell in results.cells
        if cell.selected
    ]
    parts += ["## Hyperparameters selected on validation", "\n".join(lines)] if lines else []
    if results.kind == "ablation":
        note = (
            f"Differences in {METRICS[METRIC].title} of each variant from {results.reference} on "
            f"the same seeds. {TESTS_NOTE} Holds, significant: corrected p below 0.05; uncorrected "
            "only: the interval excludes zero, but the corrected p is larger; not significant: it "
            "includes zero."
        )
        table = claims_table(results)
        parts += _section(claims_title(results, table), _titled(results, table), note)
    else:
        title = f"{results.reference} against the other methods on the same seeds"
        note = f"Differences in {METRICS[METRIC].title}. {TESTS_NOTE}"
        parts += _section(title, _titled(results, significance_table(results)), note)
    return "\n\n".join(parts) + "\n"


def latex(results: ExperimentResults) -> str:
    """Write one tabular per data set and metric, for documents that load booktabs."""
    results = results.with_equal_seeds()
    parts = []
    for title, (header, *rows) in _grids(results, bold="\\textbf{{{}}}"):
        lines = [[_tex(name) for name in header], *([_tex(row[0]), *row[1:]] for row in rows)]
        first, *rest = (" & ".join(line) + " \\\\" for line in lines)
        body = ["\\toprule", first, "\\midrule", *rest, "\\bottomrule"]
        opening = f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}"
        comment = f"% {one_line(f'{results.title}: {title}')}"
        parts.append("\n".join([comment, opening, *body, "\\end{tabular}", ""]))
    return "\n".join(parts)


def table_csv(experiments: Iterable[ExperimentResults]) -> str:
    """Write every cell of every experiment, one line each."""
    return csv_text([_csv_line(results, cell) for results in experiments for cell in results.cells])


def _csv_line(results: ExperimentResults, cell: Cell) -> dict[str, Any]:
    line: dict[str, Any] = {
        "experiment": results.name,
        "setup": cell.setting,
        "method": cell.label,
        "varies": cell.varies or "",
        "value": "" if cell.value is None else cell.value,
        "seeds": len(cell.rows),
    }
    for metric in HEADLINE:
        low, high = cell.interval(metric) or (None, None)
        mean, paper = cell.mean(metric), cell.published(metric)
        values = {"": mean, "_std": cell.deviation(metric), "_low": low, "_high": high}
        values |= {"_paper": paper, "_difference": None if paper is None else mean - paper}
        for suffix, value in values.items():
            line[f"{metric}{suffix}"] = "" if value is None else round(value, 3)
    return line | {"chosen": selected_text(cell)}


def _grids(results: ExperimentResults, *, bold: str) -> Iterator[tuple[str, Table]]:
    """Title and table per data set and metric; per metric if every data set has one setting."""
    titles: dict[str, dict[str, str]] = {}
    for cell in results.cells:
        if cell.varies is None:
            name = dataset_title(cell.dataset)
            column = results.setting_title(cell.setting).removeprefix(f"{name}, ")
            titles.setdefault(name, {})[cell.setting] = column
    if len(titles) > 1 and all(len(columns) == 1 for columns in titles.values()):
        titles = {"All data sets": {s: name for name, columns in titles.items() for s in columns}}
    for title, columns in titles.items():
        for metric in HEADLINE:
            yield f"{title}: {METRICS[metric].title}", _grid(results, columns, metric, bold)


def _grid(results: ExperimentResults, columns: Mapping[str, str], metric: str, bold: str) -> Table:
    """Methods by settings: mean (deviation), published mean, difference; no empty columns.

    Many methods are sorted, the best on average first.
    """
    labels = results.labels if len(results.labels) <= MANY else best_first(results, METRIC)
    rows = {n: [n] for n in labels if any(results.find(s, n) for s in results.settings)}
    for setting in columns:
        cells = {cell.label: cell for cell in results.table_cells(setting)}
        best = max(cell.mean(metric) for cell in cells.values())
        for label, row in rows.items():
            if label not in cells:
                row += [""] * 3
                continue
            mean, paper = cells[label].mean(metric), cells[label].published(metric)
            text = mean_text(cells[label], metric)
            row.append(bold.format(text) if mean == best else text)
            row += ["", ""] if paper is None else [f"{paper:.1f}", difference_text(mean - paper)]
    titles = (name for title in columns.values() for name in (title, "paper", "difference"))
    header = ["method", *titles]
    table = [header, *rows.values()]
    shown = [n for n in range(len(header)) if any(row[n] for row in table[1:])]
    return [[row[n] for n in shown] for row in table]


def difference_text(value: float) -> str:
    """Format a difference with its sign; zero is never negative."""
    return f"{round(value, 1) + 0.0:+.1f}"


def interval_text(interval: tuple[float, float] | None, *, sign: bool = False) -> str:
    """Format an interval; empty if there is none."""
    number = difference_text if sign else "{:.1f}".format
    return " to ".join(map(number, interval or ()))


def mean_text(cell: Cell, metric: str) -> str:
    """Format mean (standard deviation); a single seed has no deviation."""
    mean = f"{cell.mean(metric):.1f}"
    return mean if cell.size == 1 else f"{mean} ({cell.deviation(metric):.1f})"


def selected_text(cell: Cell) -> str:
    """Format the hyperparameters selected on validation."""
    return ", ".join(f"{name} = {value}" for name, value in cell.selected.items())


def _line(text: str) -> str:
    """Foreign text on one line of Markdown, without HTML."""
    return one_line(text).replace("<", "&lt;")


def _markdown(table: Table) -> str:
    header, *rows = table
    rule = ["---"] + ["---:"] * (len(header) - 1)
    lines = ([_line(text).replace("|", "\\|") for text in row] for row in (header, rule, *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _titled(results: ExperimentResults, table: Table) -> Table:
    """The table with settings, its first column, in words."""
    return [[results.setting_title(first), *rest] for first, *rest in table]


def _section(title: str, table: Table, note: str = "") -> list[str]:
    """Heading, table and note; nothing without rows. A long table is folded."""
    if not table:
        return []
    text, rows = _markdown(table), len(table) - 1
    if rows > LONG:
        text = f'<details markdown="1"><summary>{rows} rows</summary>\n\n{text}\n\n</details>'
    return [f"## {_line(title)}", text, *([note] if note else [])]


# Tables as text, the header first, empty without rows; Markdown and HTML pages share them.


def ranks_title(results: ExperimentResults) -> str:
    """Heading of the table of ranks."""
    return f"Mean rank over {plural(len(results.complete_settings()), 'setting')} (1 is best)"


def ranks_table(results: ExperimentResults) -> Table:
    """Mean rank of each method for each metric, the best first."""
    ranks = {metric: rank_methods(results, metric) for metric in HEADLINE}
    labels = sorted(ranks[METRIC], key=lambda label: ranks[METRIC][label])
    rows = [[label, *(f"{ranks[metric][label]:.1f}" for metric in HEADLINE)] for label in labels]
    return [["method", *TITLES.values()], *rows] if rows else []


def paper_table(results: ExperimentResults) -> Table:
    """Published means of the tuned method and ours."""
    rows = [
        [
            mean.cell.setting,
            TITLES[mean.metric],
            f"{mean.cell.mean(mean.metric):.1f} ({len(mean.cell.rows)})",
            interval_text(mean.cell.interval(mean.metric)),
            f"{mean.paper:.1f}",
            difference_text(mean.cell.mean(mean.metric) - mean.paper),
            f"{mean.selection:.1f}",
            f"{100 * mean.chance:.0f}%",
            mean.verdict,
        ]
        for mean in compare_with_paper(results, results.reference, HEADLINE)
    ]
    seeds = f"seeds {', '.join(map(str, results.seeds))}"
    header = ["setting", "metric", "ours", "95% interval", "paper", "difference", seeds]
    return [[*header, "chance", "verdict"], *rows] if rows else []


def count_reached(table: Table) -> str:
    """Say how many published means a table of them reaches."""
    reached = sum(row[-1] == "reached" for row in table)
    return f"{reached} of {len(table) - 1} published means reached"


def claims_title(results: ExperimentResults, table: Table) -> str:
    """Heading of the table of differences between variants."""
    published = any(row[2] for row in table[1:])
    return "Which published differences hold" if published else f"Against {results.reference}"


def claims_table(results: ExperimentResults) -> Table:
    """Published difference of each variant and ours."""
    rows = [
        [
            comparison.setting,
            comparison.gaps.label,
            "" if comparison.gaps.paper is None else difference_text(comparison.gaps.paper),
            difference_text(comparison.gaps.mean),
            interval_text(comparison.gaps.band, sign=True),
            f"{comparison.corrected:.2g}",
            comparison.verdict,
        ]
        for comparison in compare(results, results.reference, METRIC, variants=True)
    ]
    header = ["setting", "variant", "paper", "ours", "95% interval", "p, corrected", "verdict"]
    return [header, *rows] if rows else []


def significance_table(results: ExperimentResults) -> Table:
    """Tests of the tuned method against every other; none if no method was tuned."""
    tuned = any(cell.selected for cell in results.cells)
    rows = [
        [
            comparison.setting,
            comparison.against,
            str(len(comparison.gaps.values)),
            difference_text(comparison.gaps.mean),
            interval_text(comparison.gaps.band, sign=True),
            f"{comparison.p:.2g}",
            f"{comparison.corrected:.2g}",
        ]
        for comparison in (compare(results, results.reference, METRIC) if tuned else ())
    ]
    header = ["setting", "against", "seeds", "difference", "95% interval", "p", "p, corrected"]
    return [header, *rows] if rows else []


def _tex(text: str) -> str:
    """Escape a name for LaTeX."""
    words = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    return "".join(words.get(c, f"\\{c}" if c in "%_&#${}" else c) for c in one_line(text))
