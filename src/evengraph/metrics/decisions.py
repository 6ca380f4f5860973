"""Costs of misses and false alarms, and what scores would give at another base rate.

A threshold finds a share of the positive nodes (recall) and flags a share of the negative ones by
mistake (false positive rate). Both stay the same if positive nodes become more or less frequent,
so everything else can be computed for any base rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from evengraph.metrics.binary import curve, flagged
from evengraph.metrics.multiclass import confusion_matrix, recalls

BASE_RATES = (0.001, 0.01, 0.05, 0.1, 0.25)
"""Shares of the positive class that results are computed for."""


class _Costs(NamedTuple):
    miss: float
    alarm: float


class Costs(_Costs):
    """What a positive node that is not flagged costs, and a negative one that is."""

    __slots__ = ()

    def __new__(cls, miss: float = 1.0, alarm: float = 1.0) -> Costs:
        """Check both; one that is not given is 1."""
        for name, value in (("miss", miss), ("alarm", alarm)):
            if not 0 < value < math.inf:
                raise ValueError(f"cost_{name} must be above 0 and finite, got {value:g}.")
        return super().__new__(cls, miss, alarm)

    @classmethod
    def of(cls, miss: float | None, alarm: float | None) -> Costs | None:
        """Costs of which one may be missing, and is 1 then; None stands for neither."""
        if miss is None and alarm is None:
            return None
        return cls(1.0 if miss is None else miss, 1.0 if alarm is None else alarm)


class OperatingPoint(NamedTuple):
    """A threshold and what it does: shares of the positive and of the negative nodes flagged."""

    threshold: float
    recall: float
    false_positive_rate: float

    @classmethod
    def at(cls, positive: Tensor, scores: Tensor, threshold: float) -> OperatingPoint:
        """What a threshold does to labelled nodes; NaN where a class has none."""
        flags = flagged(scores, threshold).double()
        return cls(threshold, float(flags[positive].mean()), float(flags[~positive].mean()))

    def cost(self, base_rate: float, costs: Costs) -> float:
        """Expected cost per node."""
        misses = base_rate * (1 - self.recall)
        return misses * costs.miss + self.alarms(base_rate, false=True) * costs.alarm

    def alarms(self, base_rate: float, *, false: bool = False) -> float:
        """Share of all nodes that is flagged, or flagged by mistake."""
        wrong = (1 - base_rate) * self.false_positive_rate
        return wrong if false else base_rate * self.recall + wrong

    def precision(self, base_rate: float) -> float:
        """Share of flagged nodes that is positive; NaN if none is flagged."""
        alarms = self.alarms(base_rate)
        return base_rate * self.recall / alarms if alarms > 0 else math.nan


def operating_points(positive: Tensor, scores: Tensor) -> list[OperatingPoint]:
    """The thresholds among which the cheapest is, whatever the costs and the base rate.

    These are the corners of the convex hull of the ROC curve; the first flags nothing. Empty where
    one of the two classes has no node.
    """
    thresholds, hits, wrong = curve(positive, scores)
    if hits[-1] == 0 or wrong[-1] == 0:
        return []
    rates = torch.stack([thresholds, hits / hits[-1], wrong / wrong[-1]], dim=1).tolist()
    hull = [OperatingPoint(math.nextafter(float(thresholds[0]), math.inf), 0.0, 0.0)]
    for point in (OperatingPoint(*row) for row in rates):
        while len(hull) > 1:  # is the last corner above the line from the one before it?
            (_, y, x), (_, top, right), (_, end_y, end_x) = hull[-2], hull[-1], point
            if (top - y) * (end_x - x) > (end_y - y) * (right - x):
                break
            hull.pop()
        hull.append(point)
    return hull


def cheapest(points: Sequence[OperatingPoint], base_rate: float, costs: Costs) -> OperatingPoint:
    """The point with the lowest expected cost; of equal ones the highest threshold."""
    return min(points, key=lambda point: (round(point.cost(base_rate, costs), 12), point.recall))


def cheapest_threshold(positive: Tensor, scores: Tensor, costs: Costs) -> float:
    """The threshold with the lowest cost on these nodes; NaN where one class has no node."""
    points = operating_points(positive, scores)
    base_rate = float(positive.double().mean())
    return cheapest(points, base_rate, costs).threshold if points else math.nan


class CostCurve(NamedTuple):
    """The thresholds that may be cheapest for a saved model, and the base rate of its nodes."""

    base_rate: float
    points: tuple[OperatingPoint, ...]
    costs: Costs | None = None

    @classmethod
    def of(cls, positive: Tensor, scores: Tensor, costs: Costs | None = None) -> CostCurve | None:
        """Of validation nodes; None where one of the two classes has no node."""
        points = operating_points(positive, scores) if positive.numel() else []
        return cls(float(positive.double().mean()), tuple(points), costs) if points else None

    def threshold(self, costs: Costs) -> float:
        """The threshold with the lowest cost."""
        return cheapest(self.points, self.base_rate, costs).threshold

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> CostCurve:
        """Read what `_asdict` gave, after a journey through JSON."""
        points = tuple(OperatingPoint(*point) for point in content["points"])
        costs = content["costs"]
        return cls(content["base_rate"], points, None if costs is None else Costs(*costs))


def average_precision_at(positive: Tensor, scores: Tensor, base_rate: float) -> float:
    """Average precision if the share of positive nodes were another, by weighting nodes."""
    _, hits, wrong = curve(positive, scores)
    recall = hits / hits[-1]
    alarms = base_rate * recall + (1 - base_rate) * wrong / wrong[-1]
    gains = torch.diff(recall, prepend=recall.new_zeros(1)) * base_rate * recall / alarms
    return float(gains.sum())


def base_rate_sweep(
    positive: Tensor, scores: Tensor, threshold: float, costs: Costs | None = None
) -> list[dict[str, float]]:
    """What a threshold and the ranking would give at several base rates, that of the nodes first.

    Shares are fractions; `cost` is per node. Empty without a threshold or nodes of both classes.
    """
    share = float(positive.double().mean())
    if math.isnan(threshold) or not 0 < share < 1:
        return []
    point = OperatingPoint.at(positive, scores, threshold)
    return [
        {
            "base_rate": rate,
            "alarms": point.alarms(rate),
            "precision": point.precision(rate),
            "recall": point.recall,
            "average_precision": average_precision_at(positive, scores, rate),
            **({} if costs is None else {"cost": point.cost(rate, costs)}),
        }
        for rate in (share, *BASE_RATES)
    ]


class Abstention(NamedTuple):
    """From which confidence on a model decides, and how good it then is on validation."""

    confidence: float  # probability of the predicted class from which on a node is decided
    coverage: float  # share of the validation nodes that are decided
    error: float  # share of wrong classes among them
    balanced_error: float  # the same, averaged over classes


class RiskCurve(NamedTuple):
    """Abstention at every share of undecided nodes, and without any."""

    nodes: int  # number of validation nodes
    levels: tuple[Abstention, ...]  # from none undecided to nearly all

    @classmethod
    def of(cls, labels: Tensor, probabilities: Tensor) -> Self:
        """Measure validation nodes; probabilities are (V, C)."""
        confidence, predicted = probabilities.double().max(1)
        order = confidence.sort().values
        levels: list[Abstention] = []
        for start in sorted({percent * len(order) // 100 for percent in range(100)}):
            least = 0.0 if start == 0 else float(order[start])
            decided = confidence >= least
            coverage = float(decided.double().mean())
            if levels and levels[-1].coverage == coverage:
                continue  # nodes of equal confidence are decided together
            parts = labels[decided], predicted[decided]
            recall = recalls(confusion_matrix(*parts, probabilities.shape[1]))
            error = float((parts[0] != parts[1]).double().mean())
            balanced = 1 - float(recall[torch.isfinite(recall)].mean())
            levels.append(Abstention(least, coverage, error, balanced))
        return cls(len(order), tuple(levels))

    def at_share(self, share: float) -> Abstention:
        """Leave at least this share of the validation nodes undecided."""
        if not 0 <= share < 1:
            raise ValueError(f"abstain must lie in [0, 1), got {share}.")
        enough = (level for level in self.levels if 1 - level.coverage >= share - 1e-9)
        return next(enough, self.levels[-1])

    def at_error(self, error: float) -> Abstention:
        """Leave so few nodes undecided that the error is no larger."""
        if not 0 <= error < 1:
            raise ValueError(f"max_error must lie in [0, 1), got {error}.")
        for level in self.levels:
            if level.error <= error:
                return level
        best = min(self.levels, key=lambda level: level.error)
        raise ValueError(
            f"max_error must be at least {best.error:.3f}, the lowest error on validation, "
            f"got {error}."
        )
