"""evaluate(): every metric on the test nodes; Validation: one metric, to select models by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from evengraph.core.task import Task
from evengraph.metrics import binary, multiclass
from evengraph.metrics.binary import positive_class
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.decisions import Costs, cheapest_threshold
from evengraph.metrics.multiclass import f1_scores, rare_class, recalls
from evengraph.metrics.registry import METRICS


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


def evaluate(
    task: Task,
    probabilities: Tensor,
    *,
    positive: int | None = None,
    k: int | None = None,
    costs: Costs | None = None,
    calibrators: tuple[Calibrator, Calibrator] | None = None,
) -> dict[str, Any]:
    """Compute every metric on the test nodes, as fractions; an undefined one is NaN.

    Args:
        task: The task, with its test labels.
        probabilities: What `predict_proba` returned for all nodes.
        positive: Of two classes, the positive one; by default the rarer in training.
        k: For precision at k; by default the number of positive test nodes.
        costs: Of misses and false alarms, for the threshold; by default it maximises F1.
        calibrators: By temperature, and by temperature and shift; adds calibration metrics.

    Shapes:
        probabilities: (N, C)
    """
    expected = (task.graph.num_nodes, task.num_classes)
    if tuple(probabilities.shape) != expected:
        raise ValueError(
            f"probabilities must have shape {expected}, got {tuple(probabilities.shape)}."
        )
    if not task.test.any():
        raise ValueError("There are no test nodes to evaluate on.")
    if not torch.isfinite(probabilities).all():
        raise ValueError("probabilities must be finite; some are NaN or infinite.")
    if task.num_classes != 2:
        positive = 1  # unused
    elif positive is None:
        positive = positive_class(task.class_counts)
    elif positive not in (0, 1):
        raise ValueError(f"positive must be class 0 or 1, got {positive}.")
    labels = task.graph.y.to(probabilities.device)
    val, test = (mask.to(probabilities.device) for mask in (task.val, task.test))
    if labels[test].min() < 0:
        raise ValueError("Some test nodes have no label.")
    predictions = Predictions(
        labels=labels[test],
        probabilities=probabilities[test],
        positive=positive,
        validation=(labels[val], probabilities[val]) if val.any() else None,
        k=k,
        costs=costs,
        calibrators=calibrators or (Calibrator(), Calibrator()),
    )
    confusion = predictions.confusion
    return {
        **{
            name: float(metric.function(predictions))
            for name, metric in METRICS.items()
            if (task.num_classes == 2 or not metric.binary)
            and (calibrators is not None or not metric.calibration)
        },
        "per_class_recall": recalls(confusion).tolist(),
        "per_class_f1": f1_scores(confusion).tolist(),
        "per_class_support": confusion.sum(1).tolist(),
        "confusion_matrix": confusion.tolist(),
    }


def reported(scores: Mapping[str, Any]) -> dict[str, float]:
    """The metrics among what `evaluate` returned, in percent."""
    return {name: 100 * scores[name] for name in METRICS if name in scores}


EDGES = (0.0, 0.5, 0.75, 0.95)
"""Lower ends of the bands of agreement; the last one holds predictions that (almost) all share."""


def agreement_bands(agreement: Tensor, correct: Tensor) -> list[dict[str, Any]]:
    """Count nodes, and those that are predicted correctly, per band of agreement that has any."""
    # weights of votes are rounded, so a band begins slightly below its edge
    edges = torch.tensor(EDGES[1:], dtype=torch.float64, device=agreement.device) - 1e-6
    bands = torch.bucketize(agreement.double(), edges, right=True)
    counts = torch.bincount(bands, minlength=len(EDGES)).tolist()
    hits = torch.bincount(bands[correct], minlength=len(EDGES)).tolist()
    return [
        {"from": low, "nodes": nodes, "correct": right}
        for low, nodes, right in zip(EDGES, counts, hits, strict=True)
        if nodes
    ]


ROUNDS = 100  # resamples of the validation nodes that noise is measured on


def suitable_metric(task: Task) -> str:
    """The metric that fits: average precision if one of two classes is rare and to be found."""
    return "balanced_accuracy" if rare_class(task) is None else "positive_average_precision"


class Validation(NamedTuple):
    """Labels of validation nodes, and the metric that models are selected by."""

    labels: Tensor
    metric: str
    positive: int = 1

    @classmethod
    def of(cls, task: Task, metric: str | None = None) -> Validation:
        """Of a task, by default with the metric that fits; of two classes the rarer is positive."""
        if metric is not None and METRICS[metric].binary and task.num_classes != 2:
            raise ValueError(f"metric {metric} is for two classes, got {task.num_classes}.")
        counts = torch.tensor(task.val_counts)
        positive = positive_class(counts) if counts.numel() == 2 else 1
        return cls(task.graph.y[task.val], metric or suitable_metric(task), positive)

    def score(self, probabilities: Tensor, rows: Tensor | None = None) -> float:
        """The metric, on all nodes or some, repeats included; larger is better, 0 if undefined."""
        both = self.labels, probabilities
        if rows is not None:
            both = self.labels[rows], probabilities[rows]
        shown: Any = {"labels": both[0], "probabilities": both[1], "validation": both}
        predictions = Predictions(**shown, positive=self.positive)
        value = float(METRICS[self.metric].function(predictions))
        return 0.0 if value != value else value

    def resamples(self, generator: torch.Generator, rounds: int = ROUNDS) -> list[Tensor]:
        """Bootstrap samples of the nodes, (M,) each, with as many nodes of each class."""
        known = self.labels.unique().tolist()
        classes = [(self.labels == label).nonzero().squeeze(1) for label in known]

        def draw(nodes: Tensor) -> Tensor:
            return nodes[torch.randint(len(nodes), nodes.shape, generator=generator).to(nodes)]

        return [torch.cat([draw(nodes) for nodes in classes]) for _ in range(rounds)]

    def noise(self, first: Tensor, second: Tensor, samples: Sequence[Tensor]) -> float:
        """Standard error of the difference between two models' scores, from `resamples`."""
        gaps = [self.score(first, rows) - self.score(second, rows) for rows in samples]
        return float(torch.tensor(gaps, dtype=torch.float64).std())
