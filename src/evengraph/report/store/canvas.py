"""The canvas of all figures: matplotlib, our style and colours, a grid of panels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from statistics import fmean
from typing import TYPE_CHECKING, Any

from evengraph.report.store.boards import Board

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRIC = "balanced_accuracy"
MANY = 10  # methods that can stand side by side
# Okabe and Ito's colours, which most colour-blind people can tell apart; ours is the strongest.
COLOURS = ("#9aa0a6", "#56b4e9", "#009e73", "#f0e442", "#cc79a7", "#e69f00", "#0072b2", "#b39ddb")
OURS = "#d55e00"
Draw = Callable[[Board], "Figure | None"]
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "evengraph",  # the same file for the same figures
    "svg.fonttype": "none",
    "text.parse_math": False,  # a dollar in a name is a dollar
}


def styled(draw: Draw) -> Draw:
    """Draw in our style: what is written later than the axes are made takes it, too."""

    @wraps(draw)
    def drawn(board: Board) -> Figure | None:
        with pyplot().rc_context(STYLE):
            return draw(board)

    return drawn


def grid(count: int, *, width: float, height: float) -> tuple[Figure, Sequence[Axes]]:
    """A figure of so many panels, at most four in a row, and the panels, row by row."""
    rows = max(-(-count // 4), 1)
    columns = max(-(-count // rows), 1)
    size = (max(columns * width, 4.0), rows * height + 0.5)
    figure, places = pyplot().subplots(rows, columns, figsize=size, squeeze=False)
    for place in places.flat[count:]:
        place.set_visible(False)
    return figure, list(places.flat[:count])


def pyplot() -> Any:
    """Matplotlib without a window, imported late."""
    try:
        import matplotlib as mpl
    except ImportError:
        message = "Figures want matplotlib; try: pip install 'evengraph[report]'."
        raise ValueError(message) from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def colour_of(board: Board, label: str) -> str:
    """The strongest for Uni-GNN, or else for what was searched over."""
    labels = board.labels
    ours = ["Uni-GNN"] if "Uni-GNN" in labels else [c.label for c in board.cells if c.chosen]
    return OURS if label in ours else COLOURS[labels.index(label) % len(COLOURS)]


def best_first(board: Board) -> list[str]:
    """Labels of methods by their mean rank over the set-ups that they have."""
    ranks: dict[str, list[float]] = {label: [] for label in board.labels}
    for setup in board.setups:
        cells = [c for c in board.cells if c.setup == setup and c.varies is None]
        for rank, cell in enumerate(sorted(cells, key=lambda c: -c.mean(METRIC))):
            ranks[cell.label].append(rank / len(cells))
    return sorted(ranks, key=lambda label: fmean(ranks[label]) if ranks[label] else 1.0)
