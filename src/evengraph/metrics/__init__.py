"""Metrics for unequal classes."""

from evengraph.metrics.evaluation import evaluate, reported
from evengraph.metrics.multiclass import (
    accuracy,
    auroc,
    average_precision,
    balanced_accuracy,
    confusion_matrix,
    f1_scores,
    g_mean,
    macro_f1,
    recalls,
    replica_macro_f1,
    score_of,
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
    "comparable_metrics",
    "confusion_matrix",
    "evaluate",
    "f1_scores",
    "g_mean",
    "macro_f1",
    "recalls",
    "replica_macro_f1",
    "reported",
    "score_of",
    "specificities",
    "validation_score",
]
