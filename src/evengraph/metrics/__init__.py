"""Metrics for unequal classes."""

from evengraph.metrics.multiclass import (
    accuracy,
    auroc,
    average_precision,
    balanced_accuracy,
    confusion_matrix,
    evaluate,
    f1_scores,
    g_mean,
    macro_f1,
    recalls,
    replica_macro_f1,
    score_of,
    specificities,
    validation_score,
)

__all__ = [
    "accuracy",
    "auroc",
    "average_precision",
    "balanced_accuracy",
    "confusion_matrix",
    "evaluate",
    "f1_scores",
    "g_mean",
    "macro_f1",
    "recalls",
    "replica_macro_f1",
    "score_of",
    "specificities",
    "validation_score",
]
