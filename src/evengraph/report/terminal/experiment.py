"""Stored runs and experiments as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from evengraph.core.store import JobSpec, RunGroup
from evengraph.metrics import HEADLINE
from evengraph.report.formatting import DASH
from evengraph.report.store.experiment_results import Cell, ExperimentResults
from evengraph.report.store.tables import TITLES, mean_text
from evengraph.report.terminal.table import plain_table

RUN_VALUES = (*(f"metrics.{name}" for name in HEADLINE), "validation", "seconds")


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
            table.add_row(f"  {escape(label)}", str(cell.size), first, paper, *rest)
    return table


def selected_params(results: ExperimentResults) -> list[str]:
    """One line per cell whose parameters were selected on validation."""
    return [
        f"{cell.setting}: {cell.label} with "
        + ", ".join(f"{name}={value}" for name, value in cell.selected.items())
        for cell in results.cells
        if cell.selected
    ]


def setting_of(job: JobSpec | RunGroup) -> tuple[str, str]:
    """Data set and split protocol of runs, such as `cora` and `step 3 0.1`."""
    varied = (job.imbalance_fields.get(name) for name in ("minority", "ratio"))
    return job.dataset, " ".join([job.imbalance, *(str(v) for v in varied if v is not None)])


def averaged_settings(groups: Sequence[RunGroup]) -> list[str]:
    """A sentence where a method has runs of several settings."""
    if all(group.settings == 1 for group in groups):
        return []
    return [
        "Runs of several settings have no mean here: it would count settings that were tried and "
        "not selected. evengraph reproduce and evengraph report show the selected one, --export "
        "every run."
    ]


def runs_table(groups: Sequence[RunGroup]) -> Table:
    """Means of runs, one line per method under its setting.

    Args:
        groups: Groups of runs with the means of `RUN_VALUES`.
    """
    table = plain_table(["method"], ("runs", "failed", *TITLES.values(), "val", "seconds"))
    settings: dict[str, dict[str, RunGroup]] = {}
    for group in groups:
        methods = settings.setdefault(", ".join(setting_of(group)), {})
        before = methods.get(group.method)
        methods[group.method] = group if before is None else before.joined(group)
    for setting, methods in settings.items():
        table.add_row(f"[bold]{escape(setting)}[/]")
        for group in methods.values():
            means = ["" if mean is None else f"{mean:.1f}" for mean in group.means]
            tried = ""
            if group.settings > 1:
                tried, means[:-1] = f", {group.settings} settings", [DASH] * (len(means) - 1)
            table.add_row(
                f"  {escape(group.method)}{tried}", str(group.runs), str(group.failed), *means
            )
    return table
