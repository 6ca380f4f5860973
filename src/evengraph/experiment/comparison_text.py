"""A comparison as plain text and as a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evengraph.experiment.standing import Standing, comparison_rows, pair_of
from evengraph.metrics import METRICS
from evengraph.metrics.significance import ENOUGH_SPLITS
from evengraph.tables.cells import import_pandas

if TYPE_CHECKING:
    from evengraph.experiment.ranking import Pair


def comparison_frame(standings: Sequence[Standing], pairs: Sequence[Pair]) -> Any:
    """What `comparison.csv` holds, one row per method, the best first; empty columns left out."""
    frame = import_pandas().DataFrame(comparison_rows(standings, pairs))
    frame.insert(1, "title", [standing.title for standing in standings])
    return frame.set_index("method").dropna(axis="columns", how="all")


def comparison_text(
    standings: Sequence[Standing], pairs: Sequence[Pair], metric: str, sentences: Sequence[str]
) -> str:
    """A line per method with the metric, its interval and the gap to the best; then sentences."""
    heads = ("method", METRICS[metric].title, "95% interval", "behind the best", "seconds")
    lines = [heads, *(_cells(standing, standings[0], pairs, metric) for standing in standings)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    rows = (
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    )
    return "\n".join([*rows, "", *sentences])


def _cells(
    standing: Standing, best: Standing, pairs: Sequence[Pair], metric: str
) -> tuple[str, ...]:
    summary = standing.summary(metric)
    pair = None if standing is best else pair_of(pairs, standing.label, best.label)
    return (
        standing.title,
        f"{summary.mean:.1f}",
        f"{summary.low:.1f} to {summary.high:.1f}" if _enough(standing) else "too few splits",
        "" if pair is None else f"{pair.difference:.1f}",
        f"{standing.seconds:.1f}",
    )


def _enough(standing: Standing) -> bool:
    return len(standing.records) >= ENOUGH_SPLITS
