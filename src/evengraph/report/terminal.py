"""The result of a run as a table for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from evengraph.results import HEADLINE

TITLES = {"balanced_accuracy": "bAcc", "macro_f1": "Macro-F1", "g_mean": "G-mean"}


def result_table(result: Mapping[str, Any]) -> Table:
    """Seeds, their mean and deviation, and the paper's figures below."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("seed")
    for name in HEADLINE:
        table.add_column(TITLES[name], justify="right")
    for title in ("best at", "epochs", "seconds"):
        table.add_column(title, justify="right", style="dim")
    for run in result["runs"]:
        scores = (_number(run["metrics"][name]) for name in HEADLINE)
        spent = (str(run["best_epoch"]), str(run["epochs"]), f"{run['seconds']:.1f}")
        table.add_row(str(run["seed"]), *scores, *spent)
    mean, std, paper = result["mean"], result["std"], result["paper"]
    table.add_row()
    several = len(result["runs"]) > 1  # one run has no spread
    cells = [_spread(mean[name], std[name] if several else None) for name in HEADLINE]
    table.add_row("mean", *cells, style="bold")
    if paper:
        cells = [_spread(paper[name]["mean"], paper[name]["std"]) for name in HEADLINE]
        table.add_row("paper", *cells)
        gaps = [mean[name] - paper[name]["mean"] for name in HEADLINE]
        table.add_row("difference", *(f"{gap:+.1f}" for gap in gaps))
    return table


def comparison_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Methods below one another, ours beside the paper's, the best of ours in bold."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("method", no_wrap=True)
    known = any(result["paper"] for result in results)
    for name in HEADLINE:
        table.add_column(TITLES[name], justify="right", no_wrap=True)
        if known:
            table.add_column("paper", justify="right", style="dim", no_wrap=True)
    table.add_column("seconds", justify="right", style="dim", no_wrap=True)
    best = {name: max(_comparable(result["mean"][name]) for result in results) for name in HEADLINE}
    for result in results:
        cells = []
        for name in HEADLINE:
            several = len(result["runs"]) > 1
            mean, deviation = result["mean"][name], result["std"][name] if several else None
            text = _spread(mean, deviation)
            cells.append(f"[bold]{text}[/]" if mean == best[name] else text)
            if known:
                cells.append(_of_paper(result["paper"], name))
        spent = sum(run["seconds"] for run in result["runs"])
        table.add_row(result["method"]["title"], *cells, f"{spent:.0f}")
    return table


def _comparable(value: float | None) -> float:
    return -1.0 if value is None or value != value else value


def _of_paper(paper: Mapping[str, Any] | None, name: str) -> str:
    return _spread(paper[name]["mean"], paper[name]["std"]) if paper else "–"


def method_card(words: Mapping[str, Any]) -> Table:
    """A method in a few lines: name, idea, reference, cost, fields."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(f"[bold not dim]{words['name']}[/]", f"[bold]{words['title']}[/]")
    for name in ("idea", "reference", "cost"):
        table.add_row(name, escape(words[name]))
    table.add_row("fields", escape(fields_line(words["fields"])))
    return table


def fields_line(fields: Mapping[str, Any]) -> str:
    """Settings and their values on one line."""
    return ", ".join(f"{name}={value}" for name, value in fields.items())


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.1f}"


def _spread(mean: float, deviation: float | None) -> str:
    return _number(mean) if deviation is None else f"{_number(mean)} ± {_number(deviation)}"
