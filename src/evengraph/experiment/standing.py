"""Standing: one method of a comparison; comparison_rows(): the rows of comparison.csv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evengraph.core.files import csv_text, write_atomic
from evengraph.core.records import Record, mean_and_deviation
from evengraph.metrics import HEADLINE, METRICS
from evengraph.metrics.significance import Evidence, t_test

if TYPE_CHECKING:
    from evengraph.experiment.ranking import Pair

PAIR_COLUMNS = ("difference", "low", "high", "p", "wide_low", "wide_high", "wide_p", "strength")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One method over all splits.

    Args:
        label: Name under which it was compared.
        title: Name in the literature.
        settings: Its parameters.
        records: One per split, with the settings selected on validation.
        seconds: Mean duration of a fit.
        candidates: Index of the selected settings per split, among those tried.
        changed: Names of parameters that differ from the defaults.
        result: What `run` wrote to result.json, if this comes from `run`.
    """

    label: str
    title: str
    settings: Mapping[str, Any]
    records: Sequence[Record]
    seconds: float
    candidates: Sequence[int] = ()
    changed: Sequence[str] = ()
    result: dict[str, Any] = field(default_factory=dict)

    def values(self, metric: str) -> list[float]:
        """A metric in percent, one value per split."""
        return [record.all_metrics[metric] for record in self.records]

    def summary(self, metric: str) -> Evidence:
        """Mean and 95% interval over splits, clipped to the metric's range."""
        evidence = t_test(self.values(metric))
        low, high = (100 * limit for limit in METRICS[metric].range)
        return evidence._replace(low=max(evidence.low, low), high=min(evidence.high, high))


def pair_of(pairs: Sequence[Pair], label: str, other: str) -> Pair | None:
    """The pair of two methods, in either order."""
    return next((pair for pair in pairs if {pair.ahead, pair.behind} == {label, other}), None)


def write_comparison(standings: Sequence[Standing], pairs: Sequence[Pair], path: Path) -> None:
    """Write comparison.csv, one row per method."""
    rows = comparison_rows(standings, pairs)
    write_atomic(csv_text(rows).encode(), path)


def comparison_rows(standings: Sequence[Standing], pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """One row per method: metrics, the paper's values where known, the difference to the best.

    Args:
        standings: The methods, the best first.
        pairs: Every two of them.
    """
    best = standings[0].label
    rows = []
    for standing in standings:
        row: dict[str, Any] = {"method": standing.label, "splits": len(standing.records)}
        row["complete"] = standing.result.get("complete", True)
        for name in standing.records[0].all_metrics:
            mean, low, high = standing.summary(name)[:3]
            row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
        paper = standing.result.get("paper") or {}
        _, deviation = mean_and_deviation(standing.records)
        for name in HEADLINE:
            row[f"{name}_std"] = deviation[name] if len(standing.records) > 1 else None
            row[f"{name}_paper"] = paper.get(name, {}).get("mean")
            row[f"{name}_paper_std"] = paper.get(name, {}).get("std")
        pair = None if standing.label == best else pair_of(pairs, standing.label, best)
        row |= {f"behind_{name}": getattr(pair, name, None) for name in PAIR_COLUMNS}
        row["seconds"] = standing.seconds
        rows.append({n: round(v, 6) if isinstance(v, float) else v for n, v in row.items()})
    return rows
