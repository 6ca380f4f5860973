"""Record: the result of one run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Record:
    """The result of one method on one task with one seed; metrics in percent.

    Shapes:
        per_class: lists of length C
        confusion_matrix: (C, C), rows are true classes
        history: lists with one entry per epoch of the main stage
    """

    seed: int
    metrics: dict[str, float]
    per_class: dict[str, list[float]]
    confusion_matrix: list[list[int]]
    history: dict[str, list[float]]
    validation: float
    best_epoch: int
    epochs: int
    seconds: float
    interrupted: bool = False
    stages: int = 1

    def as_dict(self) -> dict[str, Any]:
        """The record as a dict that JSON can hold."""
        return asdict(self)


def mean_and_deviation(records: Sequence[Record]) -> tuple[dict[str, float], dict[str, float]]:
    """Mean and population standard deviation of every metric over runs, as in the paper."""
    names = records[0].metrics
    columns = {name: [record.metrics[name] for record in records] for name in names}
    mean = {name: fmean(values) for name, values in columns.items()}
    # pstdev fails on NaN, the value of a metric that is undefined on a test set
    std = {n: pstdev(v) if math.isfinite(mean[n]) else math.nan for n, v in columns.items()}
    return mean, std
