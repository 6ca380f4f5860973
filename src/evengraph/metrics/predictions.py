"""What a metric is computed from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from evengraph.metrics import binary, multiclass
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.costs import Costs, cheapest_threshold


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Test labels and predicted probabilities, and what the metrics derive from them.

    Args:
        labels: Class of each test node.
        probabilities: Predicted probabilities of the test nodes.
        positive: Index of the positive class, for metrics of two classes.
        validation: Labels and probabilities of the validation nodes; None without any.
        k: How many of the highest scores `precision_at_k` uses; by default the class size.
        costs: Of misses and false alarms, for the threshold; by default it maximises F1.
        calibrators: By temperature, and by temperature and shift; for calibration metrics.

    Shapes:
        labels: int64, (M,)
        probabilities: (M, C)
    """

    labels: Tensor
    probabilities: Tensor
    positive: int = 1
    validation: tuple[Tensor, Tensor] | None = None
    k: int | None = None
    costs: Costs | None = None
    calibrators: tuple[Calibrator, Calibrator] = (Calibrator(), Calibrator())

    @cached_property
    def confusion(self) -> Tensor:
        """Confusion matrix of the argmax, (C, C); rows are true classes."""
        classes = self.probabilities.shape[1]
        return multiclass.confusion_matrix(self.labels, self.probabilities.argmax(1), classes)

    @cached_property
    def ranking(self) -> tuple[Tensor, Tensor]:
        """Which nodes are positive, (M,), and their probability of being so, (M,)."""
        return self.labels == self.positive, self.probabilities[:, self.positive]

    @property
    def top(self) -> int:
        """How many of the highest scores precision at k uses."""
        positive, _ = self.ranking
        return min(self.k or max(int(positive.sum()), 1), positive.numel())

    @cached_property
    def threshold(self) -> float:
        """The threshold with the best F1 or the lowest cost on validation; NaN without any."""
        if self.validation is None:
            return math.nan
        labels, probabilities = self.validation
        ranking = labels == self.positive, probabilities[:, self.positive]
        if self.costs is not None:
            return cheapest_threshold(*ranking, self.costs)
        return binary.best_threshold(*ranking)

    @cached_property
    def calibrated(self) -> Tensor:
        """Probabilities after temperature scaling, (M, C)."""
        return self.calibrators[0](self.probabilities)

    @cached_property
    def shifted(self) -> Tensor:
        """Probabilities after temperature scaling and a shift of each class, (M, C)."""
        return self.calibrators[1](self.probabilities)
