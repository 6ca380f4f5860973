"""ModelInfo: what a saved model holds beside the method, under `extra` of its folder."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

from torch import Tensor

from evengraph.metrics.binary import best_threshold
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.costs import CostCurve, Costs, cheapest_threshold
from evengraph.pipeline.refit import Refit
from evengraph.tables import FeatureEncoder, TableColumns


class Threshold(NamedTuple):
    """From which probability of the positive class a node is flagged, chosen on validation."""

    positive: int
    value: float

    @classmethod
    def best(
        cls,
        probabilities: Tensor,
        labels: Tensor,
        positive: int | None,
        costs: Costs | None = None,
    ) -> Self | None:
        """The threshold with the best F1 or lowest cost on validation nodes; None without one."""
        if positive is None or not len(labels):
            return None
        ranking = labels == positive, probabilities[:, positive]
        value = cheapest_threshold(*ranking, costs) if costs else best_threshold(*ranking)
        return None if math.isnan(value) else cls(positive, value)


class TrainedOn(NamedTuple):
    """Where the training graph was: a data set's name or a path, and the columns named by users."""

    data: str
    columns: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """What a model needs to predict tables, and what is known about it.

    Args:
        encoder: Turns rows into features; None for a model that was trained on a graph.
        columns: The columns of the training tables.
        calibrator: Fitted on the validation nodes.
        threshold: For two classes, where one could be chosen.
        cost_curve: What other thresholds do on validation, to choose one by costs.
        test_scores: Metrics on the test nodes in percent; None for one that is undefined.
        trained_on: Where the training tables were; None for objects in memory.
        refit: If the model was fitted again to all labels; the test scores are from before.
    """

    encoder: FeatureEncoder | None = None
    columns: TableColumns = field(default_factory=TableColumns)
    calibrator: Calibrator | None = None
    threshold: Threshold | None = None
    cost_curve: CostCurve | None = None
    test_scores: dict[str, float | None] = field(default_factory=dict)
    trained_on: TrainedOn | None = None
    refit: Refit | None = None

    def as_dict(self) -> dict[str, Any]:
        """The record as stored, without what is unknown."""
        extra: dict[str, Any] = {}
        if self.calibrator is not None:
            extra["calibrator"] = self.calibrator.as_dict()
        extra["test"] = self.test_scores
        if self.trained_on is not None:
            extra["trained_on"] = self.trained_on._asdict()
        if self.refit is not None:
            extra["refit"] = self.refit._asdict()
        if self.threshold is not None:
            extra["flag"] = {"class": self.threshold.positive, "from": self.threshold.value}
        if self.cost_curve is not None:
            extra["cost_curve"] = self.cost_curve._asdict()
        if self.encoder is not None:
            extra |= {"columns": asdict(self.columns), "encoder": self.encoder.as_dict()}
        return extra

    @classmethod
    def from_dict(cls, extra: Mapping[str, Any]) -> Self:
        """Read what `as_dict` gave; a model saved without any of it has an empty record."""
        flag, calibrator = extra.get("flag"), extra.get("calibrator")
        encoded = "encoder" in extra and "columns" in extra
        try:
            return cls(
                encoder=FeatureEncoder.from_dict(extra["encoder"]) if encoded else None,
                columns=TableColumns(**extra["columns"]) if encoded else TableColumns(),
                calibrator=None if calibrator is None else Calibrator.from_dict(calibrator),
                threshold=None if flag is None else Threshold(flag["class"], flag["from"]),
                cost_curve=CostCurve.from_dict(extra["cost_curve"])
                if "cost_curve" in extra
                else None,
                test_scores=dict(extra.get("test", {})),
                trained_on=TrainedOn(**extra["trained_on"]) if "trained_on" in extra else None,
                refit=Refit(**extra["refit"]) if "refit" in extra else None,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"extra was not written by TableModel: {error!r}.") from error
