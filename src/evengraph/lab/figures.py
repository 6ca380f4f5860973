"""Figures of experiments in matplotlib: SVG for pages and print, PNG for slides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evengraph.core.text import printable
from evengraph.lab.results import (
    COLOURS,
    HIGHLIGHT,
    MANY,
    METRIC,
    STYLE,
    Cell,
    Estimate,
    ExperimentResults,
    best_first,
    colour_of,
    panel_grid,
    pyplot,
    setting_panels,
    variant_gaps,
)
from evengraph.lab.tables import cost_figure, difference_text, interval_text
from evengraph.metrics.registry import METRICS
from evengraph.report.charts import (
    ForestRow,
    Interval,
    curve,
    forest_plot,
    line_plot,
    padded,
    percent,
    ticks,
)
from evengraph.report.markup import Markup, tag

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figures(results: ExperimentResults) -> Iterator[tuple[str, Figure]]:
    """Draw every figure of an experiment in our style, with a name for its file."""
    draw: dict[str, Callable[[ExperimentResults], Figure | None]] = {
        "comparison": methods_figure,
        "ablation": ablation_figure,
        "sensitivity": curves_figure,
        "recall": recall_figure,
        "confusion": confusion_figure,
        "cost": cost_figure,
        "map": tsne_figure,
    }
    more = ("recall", "confusion", "cost", "map") if results.kind == "comparison" else ()
    for name in (results.kind, *more):
        with pyplot().rc_context(STYLE):
            figure = draw[name](results)
        if figure is not None:
            yield f"{results.name}-{name}", figure


def save(figure: Figure, path: Path) -> list[Path]:
    """Write a figure as SVG and PNG, and close it."""
    plt = pyplot()
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_text(printable(text.get_text()))
    paths = []
    for suffix, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 160})):
        paths.append(path.with_name(f"{path.name}.{suffix}"))
        with plt.rc_context(STYLE):
            figure.savefig(paths[-1], **options)
        figure.set_layout_engine("none")  # laid out once for both files
    plt.close(figure)
    return paths


def methods_figure(results: ExperimentResults) -> Figure | None:
    """Draw every method in every setting: mean, interval and published mean."""
    if len(results.labels) > MANY:
        return _many_methods_figure(results)
    labels = results.labels
    colours = [colour_of(results, label) for label in labels]
    figure, panels = setting_panels(results, height=2.4)
    for axes, setting in panels:
        _draw_means(axes, [results.find(setting, label) for label in labels], colours)
        axes.set_xticks(range(len(labels)), labels, rotation=60, ha="right", fontsize=7)
        axes.grid(visible=False, axis="x")
    panels[0][0].set_ylabel("balanced accuracy, %")
    figure.suptitle(f"{results.title}: mean and 95% interval; dash: published mean")
    return figure


def _many_methods_figure(results: ExperimentResults) -> Figure:
    """Draw many methods one below the other, the best on average at the top."""
    labels = best_first(results, METRIC)
    colours = [HIGHLIGHT if label == results.highlight else COLOURS[6] for label in labels]
    figure, panels = setting_panels(results, height=0.15 * len(labels) + 0.5)
    for axes, setting in panels:
        cells = [results.find(setting, label) for label in labels]
        _draw_means(axes, cells, colours, horizontal=True)
        _label_rows(axes, labels, fontsize=7)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.grid(visible=True, axis="both")
        axes.set_xlabel("balanced accuracy, %", fontsize=7)
    title = f"{results.title}: mean and 95% interval, best on average at the top"
    if any(cell.published(METRIC) is not None for cell in results.cells):
        title += "; bar: published mean"
    figure.suptitle(title)
    return figure


def _draw_means(
    axes: Axes, cells: Sequence[Cell | None], colours: Sequence[str], *, horizontal: bool = False
) -> None:
    """Draw means as dots: bars would mislead on an axis that does not start at zero."""

    def plot(positions: Sequence[float], values: Sequence[float], *args: str, **style: Any) -> None:
        axes.plot(*((values, positions) if horizontal else (positions, values)), *args, **style)

    for position, (cell, colour) in enumerate(zip(cells, colours, strict=True)):
        if cell is None:
            continue
        interval, paper = cell.interval(METRIC), cell.published(METRIC)
        if interval is not None:
            plot([position] * 2, interval, color=colour, lw=2)
        size = 4 if horizontal else 6
        plot([position], [cell.mean(METRIC)], "o", color=colour, ms=size, zorder=3)
        if paper is not None:
            plot([position - 0.4, position + 0.4], [paper, paper], color="black", lw=1.2)


def ablation_figure(results: ExperimentResults) -> Figure | None:
    """Draw the difference of each variant from the full method, with its interval."""
    labels = [label for label in results.labels if label != results.reference]
    figure, panels = setting_panels(results, height=3.0)
    for axes, setting in panels:
        for gaps in variant_gaps(results, setting, METRIC):
            position = labels.index(gaps.label)
            colour = COLOURS[0] if gaps.band[1] > 0 else HIGHLIGHT
            axes.barh(position, gaps.mean, color=colour, height=0.7)
            axes.plot(gaps.band, [position, position], color="black", lw=1)
            if gaps.paper is not None:
                ends = [position - 0.35, position + 0.35]
                axes.plot([gaps.paper] * 2, ends, color="black", lw=2)
        axes.axvline(0, color="black", lw=0.8)
        _label_rows(axes, labels)
        axes.invert_yaxis()
        axes.grid(visible=True, axis="x")
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("points of balanced accuracy")
    title = f"{results.title}: difference from {results.reference} on the same seeds, 95% interval"
    figure.suptitle(title)
    return figure


def curves_figure(results: ExperimentResults) -> Figure | None:
    """Draw one curve per parameter, with its 95% interval as a band."""
    curves = results.curves()
    if not curves:
        return None
    figure, panels = panel_grid(len(curves), width=2.6, height=2.4)
    for axes, (name, cells) in zip(panels, curves.items(), strict=True):
        points = [cell.estimate(METRIC) for cell in cells]
        low, high = zip(*(point.band for point in points), strict=True)
        axes.fill_between(range(len(cells)), low, high, color=HIGHLIGHT, alpha=0.2)
        means = [point.mean for point in points]
        axes.plot(range(len(cells)), means, color=HIGHLIGHT, marker="o", ms=4)
        axes.set_xticks(range(len(cells)), [str(cell.value) for cell in cells], fontsize=7)
        axes.set_xlabel(name)
    lows, highs = zip(*(axes.get_ylim() for axes in panels), strict=True)
    for axes in panels:
        axes.set_ylim(min(lows), max(highs))
        if _is_leftmost(axes):
            axes.set_ylabel("balanced accuracy, %")
    setting = results.setting_title(results.settings[0])
    figure.suptitle(f"{results.title}: {setting}, mean and 95% interval")
    return figure


def recall_figure(results: ExperimentResults) -> Figure | None:
    """Draw recall per class for the baseline, the highlighted method and the best other."""
    figure, panels = setting_panels(results, height=2.2)
    ends = results.baseline, results.highlight
    others = [label for label in best_first(results, METRIC) if label not in ends]
    labels = [label for label in dict.fromkeys((ends[0], *others[:1], ends[1])) if label]
    for axes, setting in panels:
        for label in labels:
            cell = results.find(setting, label)
            outcomes = cell.outcomes() if cell is not None else []
            if not outcomes or "per_class" not in outcomes[0]:
                continue
            recall = np.mean([_recall_by_size(outcome) for outcome in outcomes], axis=0)
            colour = colour_of(results, label)
            axes.plot(range(len(recall)), recall, marker="o", ms=3, color=colour, label=label)
        axes.set_xticks([])
        axes.set_xlabel("classes, largest to smallest", fontsize=7)
    first, _ = panels[0]
    first.set_ylabel("recall, %")
    if lines := first.get_lines():
        names = [str(line.get_label()) for line in lines]
        first.legend(lines, names, fontsize=7, frameon=False)
    figure.suptitle(f"{results.title}: recall per class")
    return figure


def _recall_by_size(outcome: Mapping[str, Any]) -> list[float]:
    """Recall of each class, the one with the most training nodes first."""
    recall = outcome["per_class"]["recall"]
    counts = outcome.get("class_counts") or [0] * len(recall)
    return [recall[c] for c in sorted(range(len(recall)), key=lambda c: -counts[c])]


def confusion_figure(results: ExperimentResults) -> Figure | None:
    """Draw confusion matrices of the baseline and the highlighted method in the first setting."""
    setting = results.settings[0]
    labels = dict.fromkeys((results.baseline, results.highlight))
    cells = [results.find(setting, label) for label in labels]
    drawn = [(cell.label, cell.outcomes()) for cell in cells if cell is not None]
    # a row under another key than that of its job has no outcome
    drawn = [(name, part) for name, part in drawn if part and "confusion_matrix" in part[0]]
    if not drawn:
        return None
    figure, panels = panel_grid(len(drawn), width=3.2, height=3.2)
    for axes, (label, outcomes) in zip(panels, drawn, strict=True):
        total = np.sum([outcome["confusion_matrix"] for outcome in outcomes], axis=0)
        share = 100 * total / np.maximum(total.sum(axis=1, keepdims=True), 1)
        axes.imshow(share, cmap="Oranges", vmin=0, vmax=100)
        for (row, column), value in np.ndenumerate(share):
            text: Any = {"ha": "center", "va": "center", "fontsize": 7}
            colour = "white" if value > 60 else "black"
            axes.text(column, row, f"{value:.0f}", **text, color=colour)
        axes.set_title(label)
        axes.set_xlabel("predicted class")
        axes.grid(visible=False)
    panels[0].set_ylabel("true class")
    title = "confusion matrix, percent of each true class, all seeds"
    figure.suptitle(f"{results.setting_title(setting)}: {title}")
    return figure


def tsne_figure(results: ExperimentResults) -> Figure | None:
    """Draw the t-SNE of the embeddings of one run, by class and by cluster."""
    if results.tsne is None:
        return None
    tsne = results.tsne
    groups = [("class", tsne["classes"]), ("cluster", tsne["clusters"])]
    groups = [(name, values) for name, values in groups if values is not None]
    figure, panels = panel_grid(len(groups), width=4.2, height=4.0)
    for axes, (name, values) in zip(panels, groups, strict=True):
        count = max(values) + 1
        colours = "tab10" if count <= 10 else "turbo"
        # multiples of the golden ratio: consecutive clusters get clearly different colours
        shades = [value * 0.618034 % 1 for value in values] if count > 10 else values
        dots = axes.scatter(tsne["x"], tsne["y"], c=shades, cmap=colours, s=4, lw=0)
        if name == "class" and count <= 10:
            names = tsne["class_names"] or [f"class {n}" for n in range(count)]
            handles = dots.legend_elements(num=None)[0]  # type: ignore[arg-type]
            shown = [names[n] for n in sorted(set(values)) if 0 <= n < len(names)]
            if len(handles) == len(shown):
                axes.legend(handles, shown, fontsize=6, frameon=False, loc="best")
        axes.set_title(f"by {name}")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(visible=False)
    setting = results.setting_title(results.settings[0])
    title = f"{setting}: t-SNE of the embeddings of one run of {results.tsne_label}"
    figure.suptitle(title)
    return figure


def _is_leftmost(axes: Axes) -> bool:
    spec = axes.get_subplotspec()
    return spec is None or spec.is_first_col()


def _label_rows(axes: Axes, labels: Sequence[str], **style: Any) -> None:
    """Name the rows of a panel, in the first column only."""
    shown = labels if _is_leftmost(axes) else [""] * len(labels)
    axes.set_yticks(range(len(labels)), shown, **style)


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
