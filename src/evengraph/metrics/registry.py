"""The table of metrics: what each is called, what it means and how it is computed.

Terminal, pages, tables, `--metric` and verdicts read from `METRICS`, so a new metric is one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evengraph import metrics  # its parts are imported on first use: they need torch

if TYPE_CHECKING:
    from torch import Tensor

    from evengraph.metrics.evaluation import Predictions


@dataclass(frozen=True)
class Metric:
    """A metric.

    Args:
        name: Key in results, files and `--metric`.
        title: Name in running text.
        short: Name for the head of a narrow column.
        meaning: Explanation in one sentence.
        function: Computes it.
        higher_is_better: None where neither direction is better.
        range: Smallest and largest value, as a fraction; results are in percent.
        binary: Whether it is for two classes only, one of them positive.
        ranking: Whether tables about two classes have it although it is for any number.
        is_probability: Whether it is shown as a probability, not in percent.
        calibration: Whether it needs calibrators; `evaluate` leaves it out without them.
        headline: Whether the paper's tables have it.
        column: Whether the tables of `compare` have a column for it.
    """

    name: str
    title: str
    short: str
    meaning: str
    function: Callable[[Predictions], Tensor | float]
    higher_is_better: bool | None = True
    range: tuple[float, float] = (0.0, 1.0)
    binary: bool = False
    ranking: bool = False
    is_probability: bool = False
    calibration: bool = False
    headline: bool = False
    column: bool = True

    @property
    def heading(self) -> str:
        """The title with a capital letter."""
        return self.title[:1].upper() + self.title[1:]


_CALIBRATION: Any = {"higher_is_better": False, "calibration": True}
METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            *("balanced_accuracy", "balanced accuracy", "bAcc"),
            "Mean recall over all classes, so that a rare class counts as much as a common one.",
            lambda p: metrics.multiclass.balanced_accuracy(p.confusion),
            headline=True,
        ),
        Metric(
            *("macro_f1", "Macro-F1", "Macro-F1"),
            "Unweighted mean over classes of F1, the harmonic mean of precision and recall.",
            lambda p: metrics.multiclass.macro_f1(p.confusion),
            headline=True,
        ),
        Metric(
            *("g_mean", "G-mean", "G-mean"),
            "Geometric mean of sensitivity (recall) and specificity (true negative rate), each "
            "averaged over classes first.",
            lambda p: metrics.multiclass.g_mean(p.confusion),
            headline=True,
            column=False,
        ),
        Metric(
            *("accuracy", "accuracy", "accuracy"),
            "Share of test nodes classified correctly; under imbalance the common classes "
            "dominate it.",
            lambda p: metrics.multiclass.accuracy(p.confusion),
        ),
        Metric(
            *("average_precision", "mean average precision", "mAP"),
            "Area under the precision-recall curve of each class against the rest, averaged "
            "over classes.",
            lambda p: metrics.multiclass.average_precision(p.labels, p.probabilities),
            column=False,
        ),
        Metric(
            *("auroc", "AUROC", "AUROC"),
            "Probability that a node of a class is ranked above a node of another class, "
            "averaged over classes; 50% is chance.",
            lambda p: metrics.multiclass.auroc(p.labels, p.probabilities),
            ranking=True,
        ),
        Metric(
            *("positive_average_precision", "positive-class average precision", "AP"),
            "Area under the precision-recall curve of the positive class.",
            lambda p: metrics.binary.average_precision(*p.ranking),
            binary=True,
        ),
        Metric(
            *("precision_at_k", "precision at k", "P@k"),
            "Share of true positives among the k nodes ranked highest, k being the number of "
            "positive test nodes; recall at k is the same.",
            lambda p: metrics.binary.precision_at(*p.ranking, p.top),
            binary=True,
        ),
        Metric(
            *("recall_at_1", "recall at 1% FPR", "R@1%"),
            "Share of positive nodes found at a false positive rate of at most 1%.",
            lambda p: metrics.binary.recall_at(*p.ranking, 0.01),
            binary=True,
        ),
        Metric(
            *("recall_at_5", "recall at 5% FPR", "R@5%"),
            "Share of positive nodes found at a false positive rate of at most 5%.",
            lambda p: metrics.binary.recall_at(*p.ranking, 0.05),
            binary=True,
        ),
        Metric(
            *("tuned_threshold", "tuned threshold", "threshold"),
            "Calibrated probability of the positive class from which on a node is flagged: by "
            "default the one with the best F1 on held-out nodes.",
            lambda p: p.threshold,
            higher_is_better=None,
            is_probability=True,
            binary=True,
        ),
        Metric(
            *("tuned_f1", "F1 at the tuned threshold", "F1 at thr."),
            "F1 of the positive class on the test nodes at the tuned threshold.",
            lambda p: metrics.binary.f1_at(p.ranking[0], p.calibrated[:, p.positive], p.threshold),
            binary=True,
        ),
        Metric(
            *("calibration_error", "expected calibration error", "ECE"),
            "Mean gap between confidence and accuracy, in bins of equal width.",
            lambda p: metrics.calibration.expected_calibration_error(p.labels, p.probabilities),
            **_CALIBRATION,
        ),
        Metric(
            *("calibrated_error", "expected calibration error, calibrated", "ECE calibrated"),
            "Expected calibration error of the calibrated probabilities.",
            lambda p: metrics.calibration.expected_calibration_error(p.labels, p.calibrated),
            **_CALIBRATION,
        ),
        Metric(
            *("brier", "Brier score", "Brier"),
            "Mean squared distance of the probabilities from the truth, summed over classes.",
            lambda p: metrics.calibration.brier_score(p.labels, p.probabilities),
            **_CALIBRATION,
            range=(0.0, 2.0),
            column=False,
        ),
        Metric(
            *("calibrated_brier", "Brier score, calibrated", "Brier calibrated"),
            "Brier score of the calibrated probabilities.",
            lambda p: metrics.calibration.brier_score(p.labels, p.calibrated),
            **_CALIBRATION,
            range=(0.0, 2.0),
            column=False,
        ),
    )
}
"""Every metric by name, in the order in which they are shown."""

HEADLINE = tuple(name for name, metric in METRICS.items() if metric.headline)
"""Names of the metrics of the paper's tables."""


def abbreviations(metrics: Iterable[Metric]) -> str:
    """Explain the heads of columns: `AP is average precision; P@k is precision at k`."""
    return "; ".join(f"{m.short} is {m.title}" for m in metrics if m.short != m.title)


def comparable_metrics() -> dict[str, Metric]:
    return {name: metric for name, metric in METRICS.items() if metric.higher_is_better}
