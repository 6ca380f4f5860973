"""Tables of experiments as text, for pages, and as CSV."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evengraph.core.files import csv_text
from evengraph.lab.results import (
    METRIC,
    Cell,
    ExperimentResults,
    compare,
    compare_with_paper,
    rank_methods,
)
from evengraph.metrics.registry import HEADLINE, METRICS
from evengraph.report.markup import plural

TITLES = {name: METRICS[name].short for name in HEADLINE}

Table = list[list[str]]


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


# Tables as text, the header first, empty without rows.


def ranks_title(results: ExperimentResults) -> str:
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
