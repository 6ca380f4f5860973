"""Metrics for imbalanced classes."""

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
from evengraph.metrics.registry import Predictions as Predictions
from evengraph.metrics.registry import abbreviations as abbreviations
from evengraph.metrics.registry import comparable_metrics as comparable_metrics
from evengraph.metrics.selection import batched_validation_scores as batched_validation_scores
from evengraph.metrics.selection import criterion as criterion
from evengraph.metrics.selection import rare_class as rare_class
from evengraph.metrics.selection import validation_score as validation_score
