"""The table of metrics: what each is called, what it means and how it is computed.

Terminal, pages, tables, `--metric` and verdicts read from `METRICS`, so a new metric is one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evengraph import metrics  # its parts are imported on first use: they need torch

if TYPE_CHECKING:
    from torch import Tensor

    from evengraph.metrics.evaluation import Predictions


@dataclass(frozen=True, kw_only=True)
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


METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            name="balanced_accuracy",
            title="balanced accuracy",
            short="bAcc",
            meaning="Mean recall over all classes, so that a rare class counts as much as a "
            "common one.",
            function=lambda p: metrics.multiclass.balanced_accuracy(p.confusion),
            headline=True,
        ),
        Metric(
            name="macro_f1",
            title="Macro-F1",
            short="Macro-F1",
            meaning="Unweighted mean over classes of F1, the harmonic mean of precision and "
            "recall.",
            function=lambda p: metrics.multiclass.macro_f1(p.confusion),
            headline=True,
        ),
        Metric(
            name="g_mean",
            title="G-mean",
            short="G-mean",
            meaning="Geometric mean of sensitivity (recall) and specificity (true negative rate), "
            "each averaged over classes first.",
            function=lambda p: metrics.multiclass.g_mean(p.confusion),
            headline=True,
            column=False,
        ),
        Metric(
            name="accuracy",
            title="accuracy",
            short="accuracy",
            meaning="Share of test nodes classified correctly; under imbalance the common classes "
            "dominate it.",
            function=lambda p: metrics.multiclass.accuracy(p.confusion),
        ),
        Metric(
            name="average_precision",
            title="mean average precision",
            short="mAP",
            meaning="Area under the precision-recall curve of each class against the rest, "
            "averaged over classes.",
            function=lambda p: metrics.multiclass.average_precision(p.labels, p.probabilities),
            column=False,
        ),
        Metric(
            name="auroc",
            title="AUROC",
            short="AUROC",
            meaning="Probability that a node of a class is ranked above a node of another class, "
            "averaged over classes; 50% is chance.",
            function=lambda p: metrics.multiclass.auroc(p.labels, p.probabilities),
            ranking=True,
        ),
        Metric(
            name="positive_average_precision",
            title="positive-class average precision",
            short="AP",
            meaning="Area under the precision-recall curve of the positive class.",
            function=lambda p: metrics.binary.average_precision(*p.ranking),
            binary=True,
        ),
        Metric(
            name="precision_at_k",
            title="precision at k",
            short="P@k",
            meaning="Share of true positives among the k nodes ranked highest, k being the number "
            "of positive test nodes unless set.",
            function=lambda p: metrics.binary.precision_at(*p.ranking, p.top),
            binary=True,
        ),
        Metric(
            name="recall_at_k",
            title="recall at k",
            short="R@k",
            meaning="Share of the positive nodes that are among the k ranked highest; equal to "
            "precision at k unless k is set.",
            function=lambda p: metrics.binary.recall_at_top(*p.ranking, p.top),
            binary=True,
        ),
        Metric(
            name="recall_at_1",
            title="recall at 1% FPR",
            short="R@1%",
            meaning="Share of positive nodes found at a false positive rate of at most 1%.",
            function=lambda p: metrics.binary.recall_at(*p.ranking, 0.01),
            binary=True,
        ),
        Metric(
            name="recall_at_5",
            title="recall at 5% FPR",
            short="R@5%",
            meaning="Share of positive nodes found at a false positive rate of at most 5%.",
            function=lambda p: metrics.binary.recall_at(*p.ranking, 0.05),
            binary=True,
        ),
        Metric(
            name="tuned_threshold",
            title="tuned threshold",
            short="threshold",
            meaning="Probability of the positive class from which on a node is flagged, with the "
            "best F1 on the validation nodes, or the lowest cost if costs are given.",
            function=lambda p: p.threshold,
            higher_is_better=None,
            is_probability=True,
            binary=True,
        ),
        Metric(
            name="tuned_f1",
            title="F1 at the tuned threshold",
            short="F1 at thr.",
            meaning="F1 of the positive class on the test nodes at the tuned threshold.",
            function=lambda p: metrics.binary.f1_at(*p.ranking, p.threshold),
            binary=True,
        ),
        Metric(
            name="calibration_error",
            title="expected calibration error",
            short="ECE",
            meaning="Mean gap between confidence and accuracy, in bins of equal width.",
            function=lambda p: metrics.calibration.expected_calibration_error(
                p.labels, p.probabilities
            ),
            higher_is_better=False,
            calibration=True,
        ),
        Metric(
            name="calibrated_error",
            title="expected calibration error, calibrated",
            short="ECE calibrated",
            meaning="Expected calibration error after temperature scaling, which changes no "
            "decision.",
            function=lambda p: metrics.calibration.expected_calibration_error(
                p.labels, p.calibrated
            ),
            higher_is_better=False,
            calibration=True,
        ),
        Metric(
            name="shifted_error",
            title="expected calibration error, shifted",
            short="ECE shifted",
            meaning="Expected calibration error after temperature scaling and a shift of each "
            "class, which may change decisions.",
            function=lambda p: metrics.calibration.expected_calibration_error(p.labels, p.shifted),
            higher_is_better=False,
            calibration=True,
        ),
        Metric(
            name="brier",
            title="Brier score",
            short="Brier",
            meaning="Mean squared distance of the probabilities from the truth, summed over "
            "classes.",
            function=lambda p: metrics.calibration.brier_score(p.labels, p.probabilities),
            higher_is_better=False,
            range=(0.0, 2.0),
            calibration=True,
            column=False,
        ),
        Metric(
            name="calibrated_brier",
            title="Brier score, calibrated",
            short="Brier calibrated",
            meaning="Brier score after temperature scaling.",
            function=lambda p: metrics.calibration.brier_score(p.labels, p.calibrated),
            higher_is_better=False,
            range=(0.0, 2.0),
            calibration=True,
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
    """Metrics that methods can be ranked by."""
    return {name: metric for name, metric in METRICS.items() if metric.higher_is_better}
