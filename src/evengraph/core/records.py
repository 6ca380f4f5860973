"""Record: the result of one run."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Record:
    """The result of fitting one method to one task with one seed. Metrics are in percent."""

    seed: int  # of the split and of the fit
    metrics: dict[str, float]  # on the test nodes
    per_class: dict[str, list[float]]  # recall, F1 and support
    confusion_matrix: list[list[int]]  # on the test nodes; rows are true classes
    history: dict[str, list[float]]  # loss and validation score per epoch of the main stage
    validation: float  # score on the validation nodes, by which one of several fits is selected
    best_epoch: int  # whose weights were restored, in the main stage
    epochs: int  # of the main stage
    seconds: float  # duration of the fit
    interrupted: bool = False  # whether Ctrl-C ended the fit with its best weights so far
    stages: int = 1
    total_epochs: int = 0  # of all stages
    class_counts: list[int] | None = None  # training nodes
    memory: float | None = None  # peak of the fit in GiB, where it was measured
    together: int = 1  # about how many runs shared the device meanwhile
    settings: dict[str, Any] | None = None  # parameters, where several settings were tried
    calibration: dict[str, Any] | None = None  # the calibrator and its metrics
    criterion: str = "Macro-F1"  # what `validation` and the scores of `history` are
    summary: list[str] | None = None  # what the method says about what it did
    notes: list[str] | None = None  # what went otherwise than expected in the fit
    agreement: list[dict[str, Any]] | None = None  # test nodes and hits per band of a committee
    # of two classes: results at the tuned threshold by share of the positive class, that of the
    # test nodes first, and the curve on the test nodes as pairs of recall and precision
    base_rates: list[dict[str, float]] | None = None
    precision_recall: list[list[float]] | None = None
    resolved: dict[str, Any] | None = None  # values of parameters that were left to fitting

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
