"""Stored runs and experiments as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from rich.markup import escape
from rich.table import Table

from evengraph.core.store import Row
from evengraph.metrics import HEADLINE
from evengraph.report.store.experiment_results import Cell, ExperimentResults
from evengraph.report.store.tables import TITLES, mean_text
from evengraph.report.terminal.table import plain_table


def experiment_table(results: ExperimentResults) -> Table:
    """Mean and deviation over seeds of every cell, with the published mean beside it."""
    main, *others = TITLES.values()
    table = plain_table(["method"], ["seeds", main, "paper", *others])
    table.title, table.title_justify = escape(results.title), "left"
    by_setting: dict[str, list[Cell]] = {}
    for cell in results.cells:
        by_setting.setdefault(cell.setting, []).append(cell)
    for setting, cells in by_setting.items():
        table.add_row(f"[bold]{escape(setting)}[/]")
        best = max(cell.mean(HEADLINE[0]) for cell in cells)
        for cell in cells:
            first, *rest = (mean_text(cell, metric) for metric in HEADLINE)
            first = f"[bold]{first}[/]" if cell.mean(HEADLINE[0]) == best else first
            label = cell.label if cell.value is None else f"{cell.label} = {cell.value}"
            published = cell.published(HEADLINE[0])
            paper = "" if published is None else f"{published:.1f}"
            table.add_row(f"  {escape(label)}", str(len(cell.rows)), first, paper, *rest)
    return table


def selected_params(results: ExperimentResults) -> list[str]:
    """One line per cell whose parameters were selected on validation."""
    return [
        f"{cell.setting}: {cell.label} with "
        + ", ".join(f"{name}={value}" for name, value in cell.selected.items())
        for cell in results.cells
        if cell.selected
    ]


def setting_of(row: Row) -> tuple[str, str]:
    """Data set and split protocol of a run, such as `cora` and `step 3 0.1`."""
    job = row.job
    varied = (job.imbalance_fields.get(name) for name in ("minority", "ratio"))
    return job.dataset, " ".join([job.imbalance, *(str(v) for v in varied if v is not None)])


def runs_table(rows: Sequence[Row]) -> Table:
    """Means of runs, one line per method under its setting."""
    values = ("runs", "failed", *TITLES.values(), "val score", "seconds")
    table = plain_table(["method"], values)
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        methods = groups.setdefault(", ".join(setting_of(row)), {})
        methods.setdefault(row.job.method, []).append(row)
    for setting, methods in groups.items():
        table.add_row(f"[bold]{escape(setting)}[/]")
        for method, group in methods.items():
            done = [row for row in group if row.done]
            columns = [[row.outcome["metrics"][name] for row in done] for name in HEADLINE]
            columns += [[row.outcome[name] for row in done] for name in ("validation", "seconds")]
            counts = (str(len(group)), str(len(group) - len(done)))
            means = (f"{fmean(values):.1f}" if values else "" for values in columns)
            table.add_row(f"  {escape(method)}", *counts, *means)
    return table
