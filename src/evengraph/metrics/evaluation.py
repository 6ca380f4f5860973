"""evaluate(): every metric of a fitted method on the test nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from evengraph.core.task import Task
from evengraph.metrics.binary import positive_class
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.costs import Costs
from evengraph.metrics.multiclass import f1_scores, recalls
from evengraph.metrics.predictions import Predictions
from evengraph.metrics.registry import METRICS


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
