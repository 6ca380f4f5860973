"""What all matplotlib figures share: style, colours, a grid of panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evengraph.report.store.experiment_results import ExperimentResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRIC = "balanced_accuracy"
COLUMNS = 3  # panels side by side: more are too small to read in a column of text
MANY = 10  # more methods than this do not fit side by side
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
        axes.set_title(panel_title(results, setting))
    return figure, list(zip(panels, results.settings, strict=True))


def panel_title(results: ExperimentResults, setting: str) -> str:
    """A setting in two lines: data set, split protocol."""
    return results.setting_title(setting).replace(", ", "\n", 1)


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
