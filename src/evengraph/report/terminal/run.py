"""The result of a run as a table for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from evengraph.metrics import HEADLINE, METRICS, abbreviations

PAPER_GRAPHS = ("cora", "citeseer", "pubmed")


def result_table(result: Mapping[str, Any]) -> Table:
    """Seeds, their mean and deviation, and the paper's figures below."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("seed")
    for name in HEADLINE:
        table.add_column(METRICS[name].short, justify="right")
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


def two_class_table(result: Mapping[str, Any]) -> Table | None:
    """Figures of the class that matters; none where there are not two classes."""
    mean, std = result["mean"], result["std"]
    metrics = [metric for name, metric in METRICS.items() if metric.binary and name in mean]
    if not metrics:
        return None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("rarer class", no_wrap=True)
    several = len(result["runs"]) > 1
    for metric in metrics:
        table.add_column(metric.short, justify="right", no_wrap=True)
    cells = [_tight(mean[m.name], std[m.name] if several else None) for m in metrics]
    table.add_row("mean", *cells)
    return table


def comparison_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Methods below one another, ours beside the paper's, the best of ours in bold."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("method", no_wrap=True)
    known = any(result["paper"] for result in results)
    for name in HEADLINE:
        table.add_column(METRICS[name].short, justify="right", no_wrap=True)
        if known:
            table.add_column("paper", justify="right", style="dim", no_wrap=True)
    table.add_column("seconds", justify="right", style="dim", no_wrap=True)
    whole = [result for result in results if result["complete"]]
    best = {
        name: max((_comparable(result["mean"][name]) for result in whole), default=-1.0)
        for name in HEADLINE
    }
    for result in results:
        cells = []
        for name in HEADLINE:
            text = _tight(*_figures(result, name))
            leads = result["complete"] and result["mean"][name] == best[name]
            cells.append(f"[bold]{text}[/]" if leads else text)
            if known:
                paper = result["paper"]
                cells.append(_tight(paper[name]["mean"], paper[name]["std"]) if paper else "–")
        spent = sum(run["seconds"] for run in result["runs"])
        table.add_row(_name(result), *cells, f"{spent:.0f}" if spent >= 10 else f"{spent:.1f}")
    return table


def comparison_rows(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same figures as plain rows, for a file."""
    rows = []
    for result in results:
        row: dict[str, Any] = {"method": result["method"]["name"], "seeds": len(result["runs"])}
        for name in HEADLINE:
            mean, deviation = _figures(result, name)
            paper = result["paper"][name] if result["paper"] else {}
            row |= {name: mean, f"{name}_std": deviation}
            row |= {f"{name}_paper": paper.get("mean"), f"{name}_paper_std": paper.get("std")}
        rows.append(row | {"complete": result["complete"]})
    return rows


def notes(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader of the tables should know, a line each."""
    lines = ["± is the standard deviation over seeds; G-mean is the root of mean recall times mean"]
    lines[0] += " specificity, as in the paper."
    means = {name for result in results for name in result["mean"]}
    if binary := [m for m in METRICS.values() if m.binary and m.name in means]:
        lines.append(f"Rarer class: {abbreviations(binary)}.")
    changed: dict[str, list[str]] = {}
    for result in results:
        if result["changed_from_paper"] and result["dataset"]["name"] in PAPER_GRAPHS:
            names = ", ".join(result["changed_from_paper"])
            changed.setdefault(names, []).append(result["method"]["title"])
    for names, titles in changed.items():
        lines.append(
            f"{', '.join(titles)}: without the paper's figures, not got with this {names}."
        )
    lines += [
        f"{result['method']['title']}: interrupted, of the best model so far."
        for result in results
        if not result["complete"]
    ]
    return lines


def _name(result: Mapping[str, Any]) -> str:
    variant = result["method"]["fields"].get("variant")
    title = result["method"]["title"] + (f" {variant}" if variant else "")
    return title if result["complete"] else f"{title} (cut short)"


def _figures(result: Mapping[str, Any], name: str) -> tuple[float, float | None]:
    """Mean and deviation; one run has no spread."""
    return result["mean"][name], result["std"][name] if len(result["runs"]) > 1 else None


def _comparable(value: float | None) -> float:
    return -1.0 if value is None or value != value else value


def _tight(mean: float, deviation: float | None) -> str:
    return _spread(mean, deviation).replace(" ", "")


def method_card(words: Mapping[str, Any]) -> Table:
    """A method in a few lines: name, idea, reference, cost, fields."""
    table = _two_columns()
    table.add_row(f"[bold not dim]{words['name']}[/]", f"[bold]{words['title']}[/]")
    for name in ("idea", "reference", "cost"):
        table.add_row(name, escape(words[name]))
    table.add_row("fields", escape(fields_line(words["fields"])))
    return table


def field_table(fields: Mapping[str, Any], meanings: Mapping[str, str]) -> Table:
    """Settings below one another, with their defaults and what they mean."""
    table = _two_columns()
    for name, value in fields.items():
        table.add_row(f"[not dim]{name}={escape(str(value))}[/]", escape(meanings.get(name, "")))
    return table


def _two_columns() -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def fields_line(fields: Mapping[str, Any]) -> str:
    """Settings and their values on one line."""
    return ", ".join(f"{name}={value}" for name, value in fields.items())


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.1f}"


def _spread(mean: float, deviation: float | None) -> str:
    return _number(mean) if deviation is None else f"{_number(mean)} ± {_number(deviation)}"
