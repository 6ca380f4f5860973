"""Choice between models on validation nodes: the metric and its noise.

All functions are pure; probabilities and labels are those of the validation nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.core.task import Task
from evengraph.metrics.binary import positive_class
from evengraph.metrics.predictions import Predictions
from evengraph.metrics.registry import METRICS
from evengraph.metrics.selection import rare_class

ROUNDS = 100  # resamples of the validation nodes that noise is measured on


def suitable_metric(task: Task) -> str:
    """The name of the metric that fits a task.

    Average precision of the positive class if one of two classes is rare: such tasks are about
    finding its nodes. Otherwise balanced accuracy, where all classes count the same.
    """
    return "balanced_accuracy" if rare_class(task) is None else "positive_average_precision"


class Validation(NamedTuple):
    """Labels of validation nodes, and the metric that models are selected by.

    Shapes:
        labels: int64, (M,)
    """

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
        """The metric, on all nodes or some, repeats included; larger is better, 0 if undefined.

        Shapes:
            probabilities: (M, C)
            rows: int64, (R,)
        """
        labels = self.labels
        if rows is not None:
            labels, probabilities = labels[rows], probabilities[rows]
        predictions = Predictions(
            labels=labels,
            probabilities=probabilities,
            positive=self.positive,
            validation=(labels, probabilities),
        )
        value = float(METRICS[self.metric].function(predictions))
        return 0.0 if value != value else value

    def resamples(self, generator: torch.Generator, rounds: int = ROUNDS) -> list[Tensor]:
        """Bootstrap samples of the nodes, (M,) each, with as many nodes of each class."""
        classes = [
            (self.labels == label).nonzero().squeeze(1) for label in self.labels.unique().tolist()
        ]
        return [
            torch.cat(
                [
                    nodes[torch.randint(nodes.numel(), nodes.shape, generator=generator).to(nodes)]
                    for nodes in classes
                ]
            )
            for _ in range(rounds)
        ]

    def noise(self, first: Tensor, second: Tensor, samples: Sequence[Tensor]) -> float:
        """Standard error of the difference between two models' scores on the same nodes.

        Shapes:
            first, second: (M, C)
            samples: what `resamples` gave
        """
        gaps = [self.score(first, rows) - self.score(second, rows) for rows in samples]
        return float(torch.tensor(gaps, dtype=torch.float64).std())
