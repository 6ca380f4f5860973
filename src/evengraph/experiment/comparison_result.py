"""Comparison: what comparing methods gives, as an object, a table, a text and a dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import evengraph
from evengraph.core.records import Record
from evengraph.experiment.comparison_text import comparison_frame, comparison_text
from evengraph.experiment.ranking import Pair, Verdict
from evengraph.experiment.standing import Standing
from evengraph.metrics.significance import FEWEST_SPLITS


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The result of comparing methods.

    Args:
        metric: Metric they were compared by.
        protocol: Name and parameters of the split protocol.
        seeds: Splits on which all methods ran.
        wanted: Number of splits that were asked for.
        overlap: Test nodes over the other labelled nodes of a split.
        budget: Settings tried per method.
        standings: The methods that ran, the best first.
        pairs: Every two of them.
        failed: Methods that did not run, and why.
        verdict: Which method to use.
        positive: For two classes, the positive one.
        classes: Names of the classes, or their indices.
        class_counts: Labelled nodes per class.
        fixed: Whether every seed has the same split.
        stopped: Whether the time limit or Ctrl-C ended it early.
        environment: Versions, device and commit.
    """

    metric: str
    protocol: Mapping[str, Any]
    seeds: Sequence[int]
    wanted: int
    overlap: float
    budget: int
    standings: Sequence[Standing]
    pairs: Sequence[Pair]
    failed: Mapping[str, str]
    verdict: Verdict
    positive: int | None
    classes: Sequence[str]
    class_counts: Sequence[int]
    fixed: bool
    stopped: bool
    environment: Mapping[str, Any]

    @property
    def best(self) -> Standing:
        """The method with the highest mean."""
        return self.standings[0]

    @property
    def frame(self) -> Any:
        """A DataFrame with one row per method, the best first: metrics with 95% intervals."""
        return comparison_frame(self.standings, self.pairs)

    def __str__(self) -> str:
        sentences = (*self.verdict.sentences, *(f"{k}: {v}" for k, v in self.failed.items()))
        return comparison_text(self.standings, self.pairs, self.metric, sentences)

    def _repr_html_(self) -> str:
        """The sections of the comparison page, for notebooks."""
        from evengraph.report.notebook import comparison_html

        return comparison_html(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """The comparison as JSON can hold it."""
        names = list(self.best.records[0].all_metrics)
        plain = ("metric", "protocol", "seeds", "overlap", "budget", "classes", "class_counts")
        return {
            "schema": 1,
            "kind": "comparison",
            "evengraph": evengraph.__version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            **{name: getattr(self, name) for name in (*plain, "failed", "environment")},
            "complete": len(self.seeds) == self.wanted and not self.failed,
            "conclusive": len(self.seeds) >= FEWEST_SPLITS and not self.fixed,
            "positive": None if self.positive is None else self.classes[self.positive],
            "verdict": asdict(self.verdict),
            "methods": [
                {
                    "label": standing.label,
                    "title": standing.title,
                    "settings": dict(standing.settings),
                    "changed": list(standing.changed),
                    "seconds": standing.seconds,
                    "figures": {name: standing.summary(name)._asdict() for name in names},
                    "runs": [
                        _run(standing.label, candidate, record)
                        for candidate, record in zip(
                            standing.candidates or [0] * len(standing.records),
                            standing.records,
                            strict=True,
                        )
                    ],
                    **({"paper": paper} if (paper := standing.result.get("paper")) else {}),
                }
                for standing in self.standings
            ],
            "pairs": [asdict(pair) for pair in self.pairs],
        }


def _run(label: str, candidate: int, record: Record) -> dict[str, Any]:
    return {
        "label": label,
        "place": candidate,
        "seed": record.seed,
        "settings": record.settings,
        "metrics": record.all_metrics,
        "per_class": record.per_class,
        "train_counts": record.class_counts,
        "validation": record.validation,
        "criterion": record.criterion,
        "resolved": record.resolved,
        "calibrator": (record.calibration or {})["calibrator"],
        "epochs": record.total_epochs,
        "seconds": record.seconds,
    }
