"""Tables of experiments in Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from evengraph.core.files import csv_text
from evengraph.metrics import HEADLINE, METRICS
from evengraph.report.store.boards import Board, Cell
from evengraph.report.store.canvas import MANY, best_first
from evengraph.report.store.claims import claims, reached
from evengraph.report.store.statistics import comparisons, interval, mean_ranks

LONG = 50  # lines of a table that nobody reads whole
TITLES = {name: METRICS[name].short for name in HEADLINE}


def markdown(board: Board, pictures: Sequence[str] = ()) -> str:
    """The whole board: figures, a table for each graph and metric, ranks, choices and tests.

    Args:
        board: What to draw.
        pictures: Names of files beside it, without their ending.
    """
    even = board.even()
    parts = [f"# {board.title}", *(f"![{name}]({name}.svg)" for name in pictures), _words(even)]
    if board.draws == "sensitivity":
        for name, cells in board.curves().items():
            parts += [
                f"## {name}",
                *([cells[0].note] if cells[0].note else []),
                _curve(name, cells),
            ]
    else:
        for page in _pages(even):
            parts.append(f"## {page.title}, {TITLES[page.metric]}")
            parts.append(_markdown(*_grid(even, page, bold="**{}**")))
        parts += _ranks(even)
    if board.draws == "comparison":
        parts += _reached(board)
    parts += _choices(board)
    parts += _claims(board) if board.draws == "ablation" else _tests(board)
    return "\n\n".join(parts) + "\n"


def latex(board: Board) -> str:
    """A tabular for each graph and metric, for a document that has booktabs."""
    board = board.even()
    parts = []
    for page in _pages(board):
        grid = _grid(board, page, bold="\\textbf{{{}}}")
        columns = "l" + "r" * (len(grid[0]) - 1)
        grid = [[_tex(cell) for cell in grid[0]], *([_tex(row[0]), *row[1:]] for row in grid[1:])]
        lines = [" & ".join(row) + " \\\\" for row in grid]
        body = ["\\toprule", lines[0], "\\midrule", *lines[1:], "\\bottomrule"]
        words = f"% {board.title}: {page.title}, {TITLES[page.metric]}"
        parts.append(
            f"{words}\n\\begin{{tabular}}{{{columns}}}\n" + "\n".join(body) + "\n\\end{tabular}\n"
        )
    return "\n".join(parts)


def table_csv(boards: Iterable[Board]) -> str:
    """Every place of every board, a line each."""
    lines = [_flat(board, cell) for board in boards for cell in board.cells]
    return csv_text(lines)


def _flat(board: Board, cell: Cell) -> dict[str, Any]:
    line: dict[str, Any] = {
        "experiment": board.name,
        "setup": cell.setup,
        "method": cell.label,
        "varies": cell.varies or "",
        "value": "" if cell.value is None else cell.value,
        "seeds": len(cell.rows),
    }
    for metric in HEADLINE:
        ends = interval(cell.values(metric))
        paper = cell.published(metric)
        mean = cell.mean(metric)
        line |= {
            metric: round(mean, 3),
            f"{metric}_std": round(cell.deviation(metric), 3),
            f"{metric}_low": "" if ends is None else round(ends[0], 3),
            f"{metric}_high": "" if ends is None else round(ends[1], 3),
            f"{metric}_paper": "" if paper is None else paper,
            f"{metric}_difference": "" if paper is None else round(mean - paper, 3),
        }
    return line | {"chosen": _settings(cell)}


class _Page(NamedTuple):
    """A table: what it is of, what to call each of its set-ups, and the metric."""

    title: str
    setups: Mapping[str, str]
    metric: str


def _pages(board: Board) -> list[_Page]:
    """A table for each graph and metric, or for each metric if every graph has but one set-up."""
    of: dict[str, dict[str, str]] = {}
    for cell in board.cells:
        if cell.varies is None:
            words = cell.setup.removeprefix(f"{cell.dataset}-")
            of.setdefault(cell.dataset, {})[cell.setup] = words
    if len(of) > 1 and all(len(setups) == 1 for setups in of.values()):
        of = {"All graphs": {setup: name for name, setups in of.items() for setup in setups}}
    return [_Page(title, setups, metric) for title, setups in of.items() for metric in HEADLINE]


def _grid(board: Board, page: _Page, *, bold: str) -> list[list[str]]:
    """Methods by set-ups: mean (deviation), the paper's mean, the difference.

    Many methods stand in order, the best over all first.
    """
    setups, metric = page.setups, page.metric
    header = ["method"]
    for words in setups.values():
        header += [words, "paper", "difference"]
    rows = [header]
    best = {
        setup: max(c.mean(metric) for c in board.cells if c.setup == setup and not c.varies)
        for setup in setups
    }
    order = board.labels if len(board.labels) <= MANY else best_first(board)
    for label in order:
        if not any(board.find(setup, label) for setup in board.setups):
            continue
        row = [label]
        for setup in setups:
            cell = board.find(setup, label)
            row += ["", "", ""] if cell is None else _three(cell, metric, best[setup], bold)
        rows.append(row)
    return [_without_empty(rows, place) for place in range(len(rows))]


def _three(cell: Cell, metric: str, best: float, bold: str) -> list[str]:
    mean, paper = cell.mean(metric), cell.published(metric)
    shown = shown_mean(cell, metric)
    shown = bold.format(shown) if mean == best else shown
    return [shown, *(["", ""] if paper is None else [f"{paper:.1f}", signed(mean - paper)])]


def signed(value: float) -> str:
    """A difference with its sign, zero without a minus."""
    return f"{round(value, 1) + 0.0:+.1f}"


def span(low: float, high: float, sign: bool = False) -> str:
    """An interval in words."""
    return f"{signed(low)} to {signed(high)}" if sign else f"{low:.1f} to {high:.1f}"


def shown_mean(cell: Cell, metric: str) -> str:
    """Mean (deviation); a single seed has no deviation."""
    mean = f"{cell.mean(metric):.1f}"
    return mean if len(cell.rows) == 1 else f"{mean} ({cell.deviation(metric):.1f})"


def _without_empty(rows: Sequence[Sequence[str]], place: int) -> list[str]:
    """A row without the columns in which nothing stands below the header."""
    kept = [n for n in range(len(rows[0])) if any(row[n] for row in rows[1:])]
    return [rows[place][n] for n in kept]


def _markdown(header: Sequence[str], *rows: Sequence[str]) -> str:
    rule = ["---"] + ["---:"] * (len(header) - 1)
    lines = ([cell.replace("|", "\\|") for cell in row] for row in (header, rule, *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _words(board: Board) -> str:
    """What the figures are."""
    counts = sorted({len(cell.rows) for cell in board.cells})
    many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}" if counts else "0"
    best = "" if board.draws == "sensitivity" else "; the best mean in bold"
    return f"Mean (standard deviation) over {many} seeds, in percent{best}."


def _curve(name: str, cells: Sequence[Cell]) -> str:
    rows = [[name, "seeds", "bAcc", "95% interval", "Macro-F1"]]
    for cell in cells:
        values = cell.values("balanced_accuracy")
        ends = interval(values)
        rows.append(
            [
                str(cell.value),
                str(len(values)),
                shown_mean(cell, "balanced_accuracy"),
                f"{ends[0]:.1f} to {ends[1]:.1f}" if ends else "",
                f"{cell.mean('macro_f1'):.1f}",
            ]
        )
    return _markdown(*rows)


def _ranks(board: Board) -> list[str]:
    ranks = {metric: mean_ranks(board, metric) for metric in HEADLINE}
    if not ranks[HEADLINE[0]]:
        return []
    order = sorted(board.labels, key=lambda label: ranks[HEADLINE[0]][label])
    rows = [["method", *TITLES.values()]]
    rows += [[label, *(f"{ranks[metric][label]:.1f}" for metric in HEADLINE)] for label in order]
    count = len(board.complete())
    return [f"## Mean rank over {count} set-ups (1 is best)", _markdown(*rows)]


def reached_rows(board: Board) -> list[list[str]]:
    """The method that was searched over beside the paper's figures of it; the header first."""
    found = reached(board, board.whole, HEADLINE)
    first = f"seeds {', '.join(map(str, board.seeds))}"
    header = ["set-up", "metric", first, "paper", "difference", "all seeds", "95% interval"]
    rows = [
        [
            one.setup,
            TITLES[one.metric],
            f"{one.first:.1f}",
            f"{one.paper:.1f}",
            signed(one.first - one.paper),
            f"{one.mean:.1f} ({one.seeds})",
            span(one.low, one.high) if one.seeds > 1 else "",
            f"{100 * one.chance:.0f}%",
            one.word,
        ]
        for one in found
    ]
    return [[*header, "chance", ""], *rows] if rows else []


def claims_rows(board: Board) -> list[list[str]]:
    """What each variant loses, the paper's and ours; the header first."""
    rows = [
        [
            one.setup,
            one.label,
            "" if one.paper is None else signed(one.paper),
            signed(one.ours),
            span(one.low, one.high, sign=True),
            f"{one.p:.2g}",
            one.word,
        ]
        for one in claims(board, HEADLINE[0])
    ]
    header = ["set-up", "variant", "paper", "ours", "95% interval", "p, corrected", ""]
    return [header, *rows] if rows else []


def tests_rows(board: Board) -> list[list[str]]:
    """The method that was searched over against all others; the header first."""
    chosen = [cell.label for cell in board.cells if cell.chosen]
    found = comparisons(board, chosen[0], HEADLINE[0]) if chosen else []
    rows = [
        [
            one.setup,
            one.against,
            str(one.seeds),
            signed(one.difference),
            span(one.low, one.high, sign=True),
            f"{one.p:.2g}",
            f"{one.corrected:.2g}",
        ]
        for one in found
    ]
    header = ["set-up", "against", "seeds", "difference", "95% interval", "p", "p, corrected"]
    return [header, *rows] if rows else []


def _reached(board: Board) -> list[str]:
    rows = reached_rows(board)
    if not rows:
        return []
    many = sum(row[-1] == "reached" for row in rows)
    note = (
        f"{many} of {len(rows) - 1} reach the paper's mean on its seeds. Chance: how often the "
        f"mean of {len(board.seeds)} seeds, drawn from all of ours, reaches it; below 5% a figure "
        "is short by more than chance."
    )
    return [f"## {board.whole} beside the paper", _markdown(*rows), note]


def _claims(board: Board) -> list[str]:
    rows = claims_rows(board)
    note = (
        f"Points of bAcc that a variant has beside {board.whole} on the same seeds. Intervals by "
        "bootstrap; p of a paired t-test, corrected after Holm for all lines of this table. Holds: "
        "corrected p below 0.05; likely: the interval leaves zero out; noise: it does not."
    )
    return ["## Which differences hold", _markdown(*rows), note] if rows else []


def _choices(board: Board) -> list[str]:
    lines = [f"- {c.setup}, {c.label}: {_settings(c)}" for c in board.cells if c.chosen]
    return ["## Settings that validation chose", "\n".join(lines)] if lines else []


def _settings(cell: Cell) -> str:
    return ", ".join(f"{name} = {value}" for name, value in cell.chosen.items())


def _tests(board: Board) -> list[str]:
    rows = tests_rows(board)
    title = f"## {board.whole} against the others, bAcc on the same seeds"
    note = (
        "Intervals by bootstrap; p of a paired t-test, corrected after Holm for all lines of this "
        "table."
    )
    return [title, _folded(_markdown(*rows), len(rows) - 1), note] if rows else []


def _folded(table: str, lines: int) -> str:
    """A long table behind its number of lines, to open."""
    if lines <= LONG:
        return table
    opened = f'<details markdown="1"><summary>{lines} comparisons</summary>'
    return f"{opened}\n\n{table}\n\n</details>"


def _tex(text: str) -> str:
    """A name as LaTeX prints it."""
    words = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    return "".join(words.get(c, f"\\{c}" if c in "%_&#${}" else c) for c in text)
