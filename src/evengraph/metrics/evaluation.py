"""evaluate(): every metric on the test nodes; Validation: one metric, to select models by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from evengraph.core.task import Task
from evengraph.metrics import multiclass
from evengraph.metrics.binary import (
    average_precision,
    flagged,
    positive_class,
    resampled_average_precision,
)
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.decisions import BEST_F1, Decided, Decision, Rule, covering
from evengraph.metrics.multiclass import f1_scores, rare_class, recalls
from evengraph.metrics.registry import METRICS
from evengraph.metrics.significance import ranking_interval


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Test labels and predicted probabilities, and what the metrics derive from them.

    The other fields are those of `evaluate`.
    """

    labels: Tensor  # class of each test node, int64, (M,)
    probabilities: Tensor  # of the test nodes, (M, C)
    positive: int = 1
    held_out: tuple[Tensor, Tensor] | None = None  # labels and probabilities of these nodes
    rule: Rule = BEST_F1
    shares: Sequence[float] | None = None

    @classmethod
    def of(
        cls,
        task: Task,
        probabilities: Tensor,
        *,
        positive: int | None = None,
        held_out: Tensor | None = None,
        **options: Any,
    ) -> Self:
        """Of the test nodes of a task; the arguments are those of `evaluate`."""
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
        masks = (task.val if held_out is None else held_out, task.test)
        held, test = (mask.to(probabilities.device) for mask in masks)
        if labels[test].min() < 0:
            raise ValueError("Some test nodes have no label.")
        return cls(
            labels=labels[test],
            probabilities=probabilities[test],
            positive=positive,
            held_out=(labels[held], probabilities[held]) if held.any() else None,
            **options,
        )

    def scores(self, calibration: bool = False) -> dict[str, Any]:
        """Every metric as a fraction, those of calibration if asked for, and scores per class."""
        classes = self.probabilities.shape[1]
        return {
            **{
                name: float(metric.function(self))
                for name, metric in METRICS.items()
                if (classes == 2 or not metric.binary) and (calibration or not metric.calibration)
            },
            "per_class_recall": recalls(self.confusion).tolist(),
            "per_class_f1": f1_scores(self.confusion).tolist(),
            "per_class_support": self.confusion.sum(1).tolist(),
            "confusion_matrix": self.confusion.tolist(),
        }

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
        """How many of the highest scores precision at k uses: as many as there are positives."""
        return max(int(self.ranking[0].sum()), 1)

    @cached_property
    def by_held_out(self) -> Decided:
        """Calibration and threshold; probabilities stay as they are without held-out nodes."""
        if self.held_out is None:
            return Decided(Calibrator(), None, ())
        labels, rows = self.held_out
        return Decided.by(rows, labels, self.positive, self.rule, self.shares)

    @property
    def calibrator(self) -> Calibrator:
        return self.by_held_out.calibrator

    @cached_property
    def calibrated(self) -> Tensor:
        """Calibrated probabilities, (M, C)."""
        return self.calibrator(self.probabilities)

    @property
    def decision(self) -> Decision | None:
        """The threshold on calibrated probabilities; None without nodes of both classes."""
        return self.by_held_out.decision

    @property
    def decided(self) -> Tensor:
        """Confusion matrix of two classes at the threshold, (2, 2); rows are true classes."""
        flags = flagged(self.calibrated[:, self.positive], self.threshold)
        guess = torch.where(flags, self.positive, 1 - self.positive)
        return multiclass.confusion_matrix(self.labels, guess, 2)

    def coverage(self, wanted: float) -> list[list[int]]:
        """Test nodes of each class whose prediction set holds it, and all of them, (C, 2)."""
        if self.held_out is None:
            return []
        lowest = covering(self.by_held_out.sets, self.calibrator.counts, wanted)
        own = self.calibrated.double().gather(1, self.labels.unsqueeze(1)).squeeze(1)
        inside, size = own >= lowest.to(own)[self.labels], self.probabilities.shape[1]
        both = (self.labels[inside], self.labels)
        return torch.stack([torch.bincount(part, minlength=size) for part in both], 1).tolist()

    def interval(self) -> list[float] | None:
        """Ends in percent of the 95% interval of the positive class's average precision.

        None without both classes.
        """
        positives = int(self.ranking[0].sum())
        if not 0 < positives < len(self.labels):
            return None
        return ranking_interval(average_precision(*self.ranking), positives)

    @property
    def threshold(self) -> float:
        """From which calibrated probability on a node is flagged; NaN without a decision."""
        return math.nan if self.decision is None else self.decision.threshold


def evaluate(
    task: Task,
    probabilities: Tensor,
    *,
    positive: int | None = None,
    rule: Rule = BEST_F1,
    shares: Sequence[float] | None = None,
    held_out: Tensor | None = None,
    calibration: bool = False,
) -> dict[str, Any]:
    """Compute every metric on the test nodes, as fractions; an undefined one is NaN.

    Args:
        task: The task, with its test labels.
        probabilities: What `predict_proba` returned for all nodes.
        positive: Of two classes, the positive one; by default the rarer in training.
        rule: By which the threshold is chosen; by default the best F1.
        shares: Of the classes in the population, if labels were collected unevenly.
        held_out: Nodes that calibration and threshold are fitted to, (N,); by default those for
            validation.
        calibration: Whether to add metrics of calibration.

    Shapes:
        probabilities: (N, C)
    """
    options: Any = {"positive": positive, "held_out": held_out, "rule": rule}
    return Predictions.of(task, probabilities, shares=shares, **options).scores(calibration)


def reported(scores: Mapping[str, Any]) -> dict[str, float]:
    """The metrics among what `evaluate` returned, in percent."""
    return {name: 100 * scores[name] for name in METRICS if name in scores}


ROUNDS = 100  # resamples of the nodes that noise is measured on


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
        shown: Any = {"labels": both[0], "probabilities": both[1], "held_out": both}
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

    def resampled(self, probabilities: Tensor, samples: Sequence[Tensor]) -> Tensor:
        """The metric on each of the `resamples`, (R,); models are compared by differences."""
        if self.metric != "positive_average_precision":
            found = [self.score(probabilities, rows) for rows in samples]
            return torch.tensor(found, dtype=torch.float64)
        positive, scores = self.labels == self.positive, probabilities[:, self.positive]
        return resampled_average_precision(positive, scores, samples)
