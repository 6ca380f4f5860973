"""Figures of experiments in matplotlib: SVG for pages and print, PNG for slides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from evengraph.core.text import printable
from evengraph.lab.results import MANY, METRIC, Cell, ExperimentResults, best_first, variant_gaps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation


COLUMNS = 3  # panels side by side: more are too small to read in a column of text
# Okabe and Ito's palette, which most colour-blind people can tell apart
COLOURS = ("#9aa0a6", "#56b4e9", "#009e73", "#f0e442", "#cc79a7", "#e69f00", "#0072b2", "#b39ddb")
HIGHLIGHT = "#d55e00"
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
    "axes.titlesize": 9,
    "figure.titlesize": 10,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "evengraph",  # the same results give the same file
    "svg.fonttype": "none",
    "text.parse_math": False,  # a dollar sign in a name is not mathematics
}


def panel_grid(count: int, *, width: float, height: float) -> tuple[Figure, Sequence[Axes]]:
    """Make a figure of `count` panels, at most three per row; returns the panels row by row."""
    rows = max(-(-count // COLUMNS), 1)
    columns = max(-(-count // rows), 1)
    size = (max(columns * width, 4.0), rows * height + 0.5)
    figure, axes = pyplot().subplots(rows, columns, figsize=size, squeeze=False)
    for unused in axes.flat[count:]:
        unused.set_visible(False)
    return figure, list(axes.flat[:count])


def setting_panels(
    results: ExperimentResults, *, height: float
) -> tuple[Figure, Sequence[tuple[Axes, str]]]:
    """Make a figure with one titled panel per setting; returns each panel with its setting."""
    figure, panels = panel_grid(len(results.settings), width=2.6, height=height)
    for axes, setting in zip(panels, results.settings, strict=True):
        axes.set_title(results.setting_title(setting).replace(", ", "\n", 1))
    return figure, list(zip(panels, results.settings, strict=True))


def pyplot() -> Any:
    """Import matplotlib when it is first needed, without a window."""
    try:
        import matplotlib as mpl
    except ImportError:
        message = "Figures need matplotlib; install it with: pip install 'evengraph[report]'."
        raise ValueError(message) from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def colour_of(results: ExperimentResults, label: str) -> str:
    """Colour of a method: the strongest for the highlighted one."""
    if label == results.highlight:
        return HIGHLIGHT
    return COLOURS[results.labels.index(label) % len(COLOURS)]


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
    """Draw every method in every setting: mean, interval and published mean.

    Many are drawn one below the other, the best on average at the top.
    """
    many, labels, name = len(results.labels) > MANY, results.labels, "balanced accuracy, %"
    colours = [colour_of(results, label) for label in labels]
    title, height = f"{results.title}: mean and 95% interval; dash: published mean", 2.4
    if many:
        labels = best_first(results, METRIC)
        colours = [HIGHLIGHT if label == results.highlight else COLOURS[6] for label in labels]
        title = f"{results.title}: mean and 95% interval, best on average at the top"
        if any(cell.published(METRIC) is not None for cell in results.cells):
            title += "; bar: published mean"
        height = 0.15 * len(labels) + 0.5
    figure, panels = setting_panels(results, height=height)
    for axes, setting in panels:
        for position, (label, colour) in enumerate(zip(labels, colours, strict=True)):
            if (cell := results.find(setting, label)) is not None:
                _draw_mean(axes, cell, position, colour, horizontal=many)
        if many:
            _label_rows(axes, labels, fontsize=7)
            axes.set_ylim(len(labels) - 0.5, -0.5)
            axes.grid(visible=True, axis="both")
            axes.set_xlabel(name, fontsize=7)
        else:
            axes.set_xticks(range(len(labels)), labels, rotation=60, ha="right", fontsize=7)
            axes.grid(visible=False, axis="x")
    if not many:
        panels[0][0].set_ylabel(name)
    figure.suptitle(title)
    return figure


def _draw_mean(axes: Axes, cell: Cell, position: int, colour: str, *, horizontal: bool) -> None:
    """Draw a mean as a dot: bars would mislead on an axis that does not start at zero."""

    def plot(positions: Sequence[float], values: Sequence[float], *args: str, **style: Any) -> None:
        axes.plot(*((values, positions) if horizontal else (positions, values)), *args, **style)

    interval, paper, size = cell.interval(METRIC), cell.published(METRIC), 4 if horizontal else 6
    if interval is not None:
        plot([position] * 2, interval, color=colour, lw=2)
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


OFFSETS: tuple[tuple[float, float, Any], ...] = (  # points to the right, points up, alignment
    *((5, 3, "left"), (-5, 3, "right"), (0, 7, "center"), (0, -12, "center")),
    *((5, -9, "left"), (-5, -9, "right"), (12, 12, "left"), (12, -18, "left")),
)
LISTED = 6  # methods named as missing


def cost_figure(results: ExperimentResults) -> Figure | None:
    """Draw balanced accuracy against seconds and memory per run, mean over all settings.

    Of many methods only the Pareto front, the baseline and the highlighted method are named.
    """
    figure, panels = panel_grid(2, width=4.2, height=3.4)
    rows = [row for cell in results.cells for row in cell.rows]
    devices = {str(row.environment.get("device", "")).partition(" ")[0] for row in rows}
    mixed = " (some on CPU, some on GPU)" if len(devices) > 1 else ""  # not to be compared
    titles = f"amortized seconds per run{mixed}", "GiB of memory per run"
    for axes, quantity, title in zip(panels, ("seconds", "memory"), titles, strict=True):
        points = _costs(results, quantity)
        names = _draw_costs(axes, results, points)
        if missing := [label for label in results.labels if label not in points]:
            shown = ", ".join(missing[:LISTED]) + (", …" if len(missing) > LISTED else "")
            title += "\n" + fill(f"not measured ({len(missing)}): {shown}", 52)
        axes.set_xlabel(title, fontsize=8)
        axes.grid(visible=True, axis="both")
        axes.set_visible(bool(axes.collections))
        if points:
            figure.draw_without_rendering()
            dots = axes.transData.transform(list(points.values()))
            _place_names(axes, names, dots, hide=len(points) > MANY)
    panels[0].set_ylabel("mean balanced accuracy, %")
    note = "; named: no cheaper method is better" if len(results.labels) > MANY else ""
    figure.suptitle(f"{results.title}: accuracy and cost, mean over settings{note}")
    return figure


def _draw_costs(
    axes: Axes, results: ExperimentResults, points: Mapping[str, tuple[float, float]]
) -> list[Annotation]:
    from matplotlib.ticker import FixedLocator

    many = len(points) > MANY
    named, order = set(points), list(points)
    if many:
        named = {*_pareto_front(points), results.baseline, results.highlight}
        order.sort(key=lambda label: -points[label][1])
    names = []
    for label in order:
        other = COLOURS[6 if label in named else 0] if many else colour_of(results, label)
        colour = HIGHLIGHT if label == results.highlight else other
        axes.scatter(*points[label], color=colour, s=36 if label in named else 14, zorder=3)
        if label in named:
            offset: Any = {"xytext": (4, 3), "textcoords": "offset points"}
            names.append(axes.annotate(label, points[label], **offset, fontsize=7))
    axes.set_xscale("log")
    axes.margins(x=0.25)  # room for the names beside the points
    axes.xaxis.set_major_locator(FixedLocator(_ticks(*axes.get_xlim())))
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.xaxis.set_major_formatter("{x:g}")
    return names


def _place_names(axes: Axes, names: Sequence[Annotation], dots: Any, *, hide: bool) -> None:
    """Put each name where it meets no dot and no earlier name; else hide it, if asked to."""
    panel = axes.get_window_extent()
    for index, name in enumerate(names):
        earlier = [other for other in names[:index] if other.get_visible()]
        taken = [other.get_window_extent() for other in earlier]
        for x, y, align in (*OFFSETS, OFFSETS[0]):  # the first again, if none is free
            name.set_position((x, y))
            name.set_horizontalalignment(align)
            box = name.get_window_extent().padded(3)
            inside = panel.x0 <= box.x0 and box.x1 <= panel.x1 + 30 and panel.y0 <= box.y0
            met = any(map(box.overlaps, taken)) or any(box.contains(*dot) for dot in dots)
            if free := inside and not met:
                break
        name.set_visible(free or not hide)


def _costs(results: ExperimentResults, quantity: str) -> dict[str, tuple[float, float]]:
    """Mean cost and mean score of each method with known costs."""
    points = {}
    for label in results.labels:
        cells = [cell for cell in results.cells if cell.label == label]
        costs = [cost for cell in cells for cost in getattr(cell.numbers, quantity)]
        scores = [score for cell in cells for score in cell.values(METRIC)]
        known = [pair for pair in zip(costs, scores, strict=True) if pair[0]]
        if known:
            points[label] = fmean(cost for cost, _ in known), fmean(score for _, score in known)
    return points


def _pareto_front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Methods that no cheaper one equals."""
    best, front = -math.inf, []
    for label, (_, score) in sorted(points.items(), key=lambda item: (item[1][0], -item[1][1])):
        if score > best:
            best = score
            front.append(label)
    return front


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers of a logarithmic axis: the coarsest steps of which three are within."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), tuple(n / 10 for n in range(10, 100))):
        ticks = [step * 10**power for power in powers for step in steps]
        within = [tick for tick in ticks if low <= tick <= high]
        if len(within) >= 3:
            break
    return within
