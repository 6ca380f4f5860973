"""Record: the result of one run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Record:
    """The result of fitting one method to one task with one seed. Metrics are in percent.

    Args:
        seed: Seed of the split and of the fit.
        metrics: Metrics on the test nodes.
        per_class: Recall, F1 and support per class.
        confusion_matrix: On the test nodes; rows are true classes.
        history: Loss and validation score per epoch of the main stage.
        validation: Score on the validation nodes, by which one of several fits is selected.
        best_epoch: Epoch whose weights were restored, in the main stage.
        epochs: Epochs of the main stage.
        seconds: Duration of the fit.
        interrupted: Whether Ctrl-C ended the fit with its best weights so far.
        stages: Number of training stages.
        total_epochs: Epochs of all stages.
        class_counts: Training nodes per class.
        memory: Peak memory of the fit in GiB, where it was measured.
        together: About how many runs shared the device meanwhile.
        settings: Parameters of the method, where several settings were tried.
        calibration: The calibrator fitted on validation nodes, and its metrics.
        criterion: What `validation` and the scores of `history` are.
        summary: What the method says about what it did, where it says something.
        notes: What went otherwise than expected in the fit, where something did.
        agreement: Test nodes, and correct ones, per band of agreement of a committee.
        base_rates: For two classes, results at the tuned threshold by share of the positive class,
            that of the test nodes first; shares are fractions.
        precision_recall: For two classes, points of the curve on the test nodes: recall, precision.
        resolved: Parameters whose value was left to fitting, with that value.

    Shapes:
        per_class: lists of length C
        confusion_matrix: (C, C)
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
    total_epochs: int = 0
    class_counts: list[int] | None = None
    memory: float | None = None
    together: int = 1
    settings: dict[str, Any] | None = None
    calibration: dict[str, Any] | None = None
    criterion: str = "Macro-F1"
    summary: list[str] | None = None
    notes: list[str] | None = None
    agreement: list[dict[str, Any]] | None = None
    base_rates: list[dict[str, float]] | None = None
    precision_recall: list[list[float]] | None = None
    resolved: dict[str, Any] | None = None

    @property
    def all_metrics(self) -> dict[str, float]:
        """The metrics, with those of calibration where it was asked for."""
        return {**self.metrics, **(self.calibration or {}).get("metrics", {})}

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON can hold it, without the optional parts it lacks."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def mean_and_deviation(records: Sequence[Record]) -> tuple[dict[str, float], dict[str, float]]:
    """Mean and population standard deviation of every metric over runs, as the paper reports."""
    names = records[0].metrics
    columns = {name: [record.metrics[name] for record in records] for name in names}
    mean = {name: fmean(values) for name, values in columns.items()}
    # pstdev fails on NaN, which stands for a metric that is undefined on the test nodes
    std = {n: pstdev(v) if math.isfinite(mean[n]) else math.nan for n, v in columns.items()}
    return mean, std
