"""Metrics for imbalanced classes."""

from evengraph.metrics.evaluation import evaluate, reported
from evengraph.metrics.multiclass import (
    accuracy,
    auroc,
    average_precision,
    balanced_accuracy,
    batched_macro_f1,
    confusion_matrix,
    f1_scores,
    g_mean,
    macro_f1,
    macro_f1_score,
    recalls,
    specificities,
    validation_score,
)
from evengraph.metrics.registry import (
    HEADLINE,
    METRICS,
    Metric,
    Predictions,
    abbreviations,
    comparable_metrics,
)

__all__ = [
    "HEADLINE",
    "METRICS",
    "Metric",
    "Predictions",
    "abbreviations",
    "accuracy",
    "auroc",
    "average_precision",
    "balanced_accuracy",
    "batched_macro_f1",
    "comparable_metrics",
    "confusion_matrix",
    "evaluate",
    "f1_scores",
    "g_mean",
    "macro_f1",
    "macro_f1_score",
    "recalls",
    "reported",
    "specificities",
    "validation_score",
]
