"""Metrics for imbalanced classes.

The names and descriptions of metrics need no torch, so names are imported on first use.
"""

from typing import TYPE_CHECKING

from evengraph.core.lazy import lazy

if TYPE_CHECKING:  # for type checkers and editors; `__getattr__` does the same at run time
    from evengraph.metrics import binary as binary
    from evengraph.metrics import calibration as calibration
    from evengraph.metrics import decisions as decisions
    from evengraph.metrics import multiclass as multiclass
    from evengraph.metrics.evaluation import Predictions as Predictions
    from evengraph.metrics.evaluation import evaluate as evaluate
    from evengraph.metrics.evaluation import reported as reported
    from evengraph.metrics.multiclass import accuracy as accuracy
    from evengraph.metrics.multiclass import auroc as auroc
    from evengraph.metrics.multiclass import average_precision as average_precision
    from evengraph.metrics.multiclass import balanced_accuracy as balanced_accuracy
    from evengraph.metrics.multiclass import batched_macro_f1 as batched_macro_f1
    from evengraph.metrics.multiclass import confusion_matrix as confusion_matrix
    from evengraph.metrics.multiclass import f1_scores as f1_scores
    from evengraph.metrics.multiclass import g_mean as g_mean
    from evengraph.metrics.multiclass import macro_f1 as macro_f1
    from evengraph.metrics.multiclass import macro_f1_score as macro_f1_score
    from evengraph.metrics.multiclass import recalls as recalls
    from evengraph.metrics.multiclass import specificities as specificities
    from evengraph.metrics.registry import HEADLINE as HEADLINE
    from evengraph.metrics.registry import METRICS as METRICS
    from evengraph.metrics.registry import Metric as Metric
    from evengraph.metrics.registry import abbreviations as abbreviations
    from evengraph.metrics.registry import comparable_metrics as comparable_metrics
    from evengraph.metrics.selection import batched_validation_scores as batched_validation_scores
    from evengraph.metrics.selection import criterion as criterion
    from evengraph.metrics.selection import rare_class as rare_class
    from evengraph.metrics.selection import validation_score as validation_score

else:
    _NAMES = {
        "evaluation": ("Predictions", "evaluate", "reported"),
        "multiclass": (
            "accuracy",
            "auroc",
            "average_precision",
            "balanced_accuracy",
            "batched_macro_f1",
            "confusion_matrix",
            "f1_scores",
            "g_mean",
            "macro_f1",
            "macro_f1_score",
            "recalls",
            "specificities",
        ),
        "registry": ("HEADLINE", "METRICS", "Metric", "abbreviations", "comparable_metrics"),
        "selection": ("batched_validation_scores", "criterion", "rare_class", "validation_score"),
    }
    _MODULES = {name: name for name in ("binary", "calibration", "decisions", "multiclass")}
    _MODULES["costs"] = "decisions"  # its former name
    __all__ = [name for names in _NAMES.values() for name in names]
    __getattr__, __dir__ = lazy(__name__, _NAMES, _MODULES)
