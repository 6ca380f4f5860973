"""The criterion of early stopping, and of every other choice made on validation nodes.

Macro-F1 of the argmax. With two classes, one of them rare among the validation nodes, it is the
mean of the rare class's average precision and balanced accuracy: Macro-F1 would prefer a model
that never predicts the rare class to one that finds half of it at low precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from evengraph.core.task import Task
from evengraph.metrics.binary import positive_class
from evengraph.metrics.evaluation import Predictions
from evengraph.metrics.multiclass import batched_macro_f1, macro_f1_score
from evengraph.metrics.registry import METRICS

RARE_SHARE = 0.25
"""Of two classes, one with a smaller share of the validation nodes is rare."""


def rare_class(task: Task) -> int | None:
    """The rare one of two classes; None without one, or if no validation node is in it."""
    counts = task.val_counts
    return counts.index(min(counts)) if has_rare_class(counts) else None


def has_rare_class(counts: Sequence[int]) -> bool:
    """Whether there are two classes, one of them rare, by the number of nodes of each."""
    return len(counts) == 2 and 0 < min(counts) < RARE_SHARE * sum(counts)


def criterion(task: Task) -> str:
    """What `validation_score` computes, in words."""
    if rare_class(task) is None:
        return "Macro-F1"
    return "mean of average precision and balanced accuracy"


def validation_score(logits: Tensor, task: Task) -> Tensor:
    """Score logits, or probabilities, on the validation nodes; a GPU is not synchronised.

    Macro-F1, or for two classes, one of them rare, the mean of its average precision and balanced
    accuracy.

    Shapes:
        logits: (N, C)
    """
    return score_validation_rows(logits[task.val_nodes], task)


def score_validation_rows(logits: Tensor, task: Task) -> Tensor:
    """The validation score from the logits of the validation nodes alone, (V, C)."""
    labels, rare = task.graph.y[task.val_nodes], rare_class(task)
    if rare is None:
        return macro_f1_score(labels, logits.argmax(1), task.num_classes)
    batch = labels[None], logits[None], torch.ones_like(labels[None], dtype=torch.bool)
    return _rare_scores(*batch, labels.new_full((1,), rare))[0]


def batched_validation_scores(labels: Tensor, logits: Tensor, mask: Tensor, rare: Tensor) -> Tensor:
    """The validation score of several replicas at once, without a device synchronisation, (R,).

    Shapes:
        labels: int64, (R, V), of the validation nodes
        logits: (R, V, C)
        mask: bool, (R, V), which nodes count
        rare: int64, (R,), the rare class of two, -1 without one
    """
    scores = batched_macro_f1(labels, logits.argmax(2), mask, logits.shape[2])
    if logits.shape[2] == 2:
        ranked = _rare_scores(labels, logits, mask, rare.clamp(min=0))
        scores = torch.where(rare < 0, scores, ranked)
    return scores


def _rare_scores(labels: Tensor, logits: Tensor, mask: Tensor, rare: Tensor) -> Tensor:
    """Mean of average precision and balanced accuracy of each replica, (R,)."""
    rare = rare.unsqueeze(1)
    positive, negative = (labels == rare) & mask, (labels != rare) & mask
    flagged = logits.argmax(2) == rare
    recall = (flagged & positive).sum(1) / positive.sum(1)
    specificity = (~flagged & negative).sum(1) / negative.sum(1)
    # double precision, so that probabilities rank almost as finely as logits
    margin = (logits[..., 1].double() - logits[..., 0].double()) * (2 * rare - 1)
    ranking = batched_average_precision(positive, margin, mask)
    return (ranking.float() + (recall + specificity) / 2) / 2


def batched_average_precision(positive: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
    """Average precision of several replicas at once, without a device synchronisation, (R,).

    Every positive node adds the precision at the end of its tie, since nodes of equal score are
    flagged together.

    Shapes:
        positive, mask: bool, (R, V); positive nodes are among those of the mask
        scores: (R, V)
    """
    scores, order = torch.where(mask, scores, -torch.inf).sort(dim=1, descending=True)
    hits = positive.gather(1, order)
    precision = hits.cumsum(1) / mask.gather(1, order).cumsum(1).clamp(min=1).double()
    index = torch.arange(scores.shape[1], device=scores.device)
    ends = torch.cat([scores[:, 1:] != scores[:, :-1], torch.ones_like(hits[:, :1])], dim=1)
    last = torch.where(ends, index, index[-1]).flip(1).cummin(1).values.flip(1)
    return (hits * precision.gather(1, last)).sum(1) / positive.sum(1)


StopOn = Literal["score", "accuracy", "loss"]
"""The validation score, balanced accuracy, or the loss of the validation nodes."""


def stopping_score(on: StopOn, logits: Tensor, task: Task) -> Tensor:
    """What early stopping maximises, on the validation nodes; a GPU is not synchronised.

    Shapes:
        logits: (N, C)
    """
    if on == "score":
        return validation_score(logits, task)
    labels, logits = task.graph.y[task.val_nodes][None], logits[task.val_nodes][None]
    mask = torch.ones_like(labels, dtype=torch.bool)
    return batched_stopping_scores(on, labels, logits, mask, labels.new_full((1,), -1))[0]


def batched_stopping_scores(
    on: StopOn, labels: Tensor, logits: Tensor, mask: Tensor, rare: Tensor
) -> Tensor:
    """The same of several replicas at once, (R,); see `batched_validation_scores`."""
    if on == "score":
        return batched_validation_scores(labels, logits, mask, rare)
    if on == "loss":
        losses = cross_entropy(logits.transpose(1, 2), labels, reduction="none")
        return -(losses * mask).sum(1) / mask.sum(1)
    classes = torch.arange(logits.shape[2], device=labels.device)
    truth = (labels.unsqueeze(2) == classes) & mask.unsqueeze(2)  # (R, V, C)
    hits = truth & (logits.argmax(2) == labels).unsqueeze(2)
    return (hits.sum(1) / truth.sum(1)).nanmean(1)  # classes without nodes are left out


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
