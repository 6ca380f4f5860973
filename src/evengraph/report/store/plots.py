"""Interactive plots of experiments as inline SVG, coloured by the style sheet of the page.

Horizontal coordinates are percentages, so a plot narrows with the screen and its text keeps its
size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evengraph.metrics import METRICS
from evengraph.report.store.canvas import MANY
from evengraph.report.store.comparisons import variant_gaps
from evengraph.report.store.experiment_results import Cell, Estimate, ExperimentResults
from evengraph.report.store.tables import difference_text, interval_text
from evengraph.report.svg.charts import curve, line_plot, percent, ticks
from evengraph.report.svg.forest import ForestRow, Interval, forest_plot, padded
from evengraph.report.svg.markup import Markup, tag

MOST_RINGS = 50  # of single seeds, in a row


def dots_panel(results: ExperimentResults, setting: str, metric: str) -> Markup:
    """Draw the methods of a setting, one per row: mean, interval, seeds, published mean.

    Many methods are sorted, the best first.
    """
    rows = [cell.estimate(metric) for cell in results.table_cells(setting)]
    if len(rows) > MANY:
        rows.sort(key=lambda row: -row.mean)
    best = max(row.mean for row in rows)
    lines = [
        _row(row, "{:.1f}".format, strong=row.mean == best, points=some_values(row.values))
        for row in rows
    ]
    return forest_plot(results.setting_title(setting), lines, axis=f"{METRICS[metric].title}, %")


def gaps_panel(results: ExperimentResults, setting: str, metric: str) -> Markup:
    """Draw the differences of the variants from the full method in a setting, one per row."""
    lines = []
    for row in variant_gaps(results, setting, metric):
        worse = row.interval is not None and row.interval[1] < 0
        lines.append(_row(row, difference_text, strong=worse, unit=" points"))
    axis = f"points of {METRICS[metric].title}"
    return forest_plot(results.setting_title(setting), lines, axis=axis, zero=True)


def _row(
    row: Estimate,
    number: Callable[[float], str],
    *,
    strong: bool,
    points: Sequence[float] = (),
    unit: str = "",
) -> ForestRow:
    """A row of a forest plot; a single seed has no interval."""
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
