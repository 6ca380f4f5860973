"""Metrics for imbalanced classes.

The names and descriptions of metrics need no torch, so names are imported on first use.
"""

from evengraph.core.lazy import lazy

_NAMES = {
    "evaluation": ("Predictions", "evaluate", "reported"),
    "multiclass": (
        *("accuracy", "auroc", "average_precision", "balanced_accuracy", "batched_macro_f1"),
        *("confusion_matrix", "f1_scores", "g_mean", "macro_f1", "macro_f1_score", "recalls"),
        *("specificities", "batched_validation_scores", "criterion", "rare_class"),
        "validation_score",
    ),
    "registry": ("HEADLINE", "METRICS", "Metric", "abbreviations", "comparable_metrics"),
}
_MODULES = {name: name for name in ("binary", "calibration", "decisions", "multiclass")}
_MODULES["costs"] = "decisions"  # its former name
__getattr__, __dir__ = lazy(__name__, _NAMES, _MODULES)
