"""Metrics for unequal classes, computed on the device where the tensors are.

All but the two ranking metrics come from one confusion matrix, which is a single `bincount`.
Fractions, as in scikit-learn; a figure that is undefined is NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor

from evengraph.core.task import Task


def confusion_matrix(labels: Tensor, predictions: Tensor, num_classes: int) -> Tensor:
    """How often a node of class i is taken for class j.

    Shapes:
        labels, predictions: int64, (M,)
        returns: int64, (C, C), rows are true classes
    """
    pairs = torch.bincount(labels * num_classes + predictions, minlength=num_classes**2)
    return pairs.reshape(num_classes, num_classes)


def recalls(confusion: Tensor) -> Tensor:
    """Recall of each class, NaN for a class without a node, (C,)."""
    return confusion.diagonal() / confusion.sum(1)


def f1_scores(confusion: Tensor) -> Tensor:
    """F1 of each class, NaN for one that is neither present nor predicted, (C,)."""
    return 2 * confusion.diagonal() / (confusion.sum(0) + confusion.sum(1))


def specificities(confusion: Tensor) -> Tensor:
    """Share of the other classes' nodes that are kept out of each class, (C,)."""
    others = confusion.sum() - confusion.sum(1)
    wrongly_in = confusion.sum(0) - confusion.diagonal()
    return 1 - wrongly_in / others


def accuracy(confusion: Tensor) -> Tensor:
    """Share of nodes that are right."""
    return confusion.diagonal().sum() / confusion.sum()


def balanced_accuracy(confusion: Tensor) -> Tensor:
    """Mean recall of the classes that are present."""
    return recalls(confusion).nanmean()


def macro_f1(confusion: Tensor) -> Tensor:
    """Mean F1 of the classes that are present or predicted."""
    return f1_scores(confusion).nanmean()


def replica_macro_f1(
    labels: Tensor, predictions: Tensor, counted: Tensor, num_classes: int
) -> Tensor:
    """Macro-F1 of several replicas at once, on the device and without waiting for it, (R,).

    Shapes:
        labels, predictions: int64, (R, V)
        counted: bool, (R, V), which of them count
    """
    # One-hot rows, since counting by index sums in any order on a card.
    classes = torch.arange(num_classes, device=labels.device)
    truth = (labels.unsqueeze(2) == classes).float() * counted.unsqueeze(2)
    guess = (predictions.unsqueeze(2) == classes).float()
    confusion = truth.transpose(1, 2) @ guess  # (R, C, C)
    right = confusion.diagonal(dim1=1, dim2=2)
    return (2 * right / (confusion.sum(1) + confusion.sum(2))).nanmean(1)


def g_mean(confusion: Tensor) -> Tensor:
    """Root of mean recall times mean specificity, over the classes present or predicted.

    This is imbalanced-learn's macro variant, the one in the paper's tables, and not the
    geometric mean of the recalls.
    """
    seen = (confusion.sum(0) + confusion.sum(1)) > 0
    recall = recalls(confusion).nan_to_num(0.0)[seen].mean()
    return (recall * specificities(confusion)[seen].mean()).sqrt()


def average_precision(labels: Tensor, probabilities: Tensor) -> Tensor:
    """Mean over classes of the area under precision and recall, one class against the rest.

    Classes without a node are left out.
    """
    hit, positives = _ranked(labels, probabilities)
    last = _last_of_tie(probabilities)
    true_positives = hit.cumsum(0)  # (M, C), best first
    rank = torch.arange(1, hit.shape[0] + 1, device=hit.device).unsqueeze(1)
    # Nodes of equal score enter together: a step counts at the end of its tie.
    before = torch.where(last, true_positives, 0).cummax(0).values.roll(1, 0)
    before[:1] = 0
    gained = torch.where(last, true_positives - before, 0)
    area = (gained * true_positives / rank).sum(0) / positives
    return area[positives > 0].mean()


def auroc(labels: Tensor, probabilities: Tensor) -> Tensor:
    """Mean over classes of the area under the ROC curve, one class against the rest.

    Classes that hold no node, or all of them, are left out.
    """
    ranks = _mean_ranks(probabilities)  # (M, C), from 1, ties share
    member = torch.nn.functional.one_hot(labels, probabilities.shape[1]).double()
    positives = member.sum(0)
    negatives = labels.numel() - positives
    wins = (ranks * member).sum(0) - positives * (positives + 1) / 2
    area = wins / (positives * negatives)
    return area[(positives > 0) & (negatives > 0)].mean()


def _ranked(labels: Tensor, probabilities: Tensor) -> tuple[Tensor, Tensor]:
    """Whether each node belongs to the class, best score first, and the class sizes."""
    member = torch.nn.functional.one_hot(labels, probabilities.shape[1]).double()
    order = probabilities.argsort(dim=0, descending=True, stable=True)
    return member.gather(0, order), member.sum(0)


def _last_of_tie(probabilities: Tensor) -> Tensor:
    """Whether a score, sorted best first, is the last of its equals, (M, C)."""
    scores = probabilities.sort(dim=0, descending=True, stable=True).values
    last = torch.ones_like(scores, dtype=torch.bool)
    last[:-1] = scores[:-1] != scores[1:]
    return last


def _mean_ranks(scores: Tensor) -> Tensor:
    """Rank of each score in its column, from 1, equal scores sharing their mean rank."""
    columns = scores.t().contiguous()
    ordered = columns.sort(dim=1).values
    below = torch.searchsorted(ordered, columns)
    up_to = torch.searchsorted(ordered, columns, right=True)
    return ((below + up_to + 1).double() / 2).t()


def validation_score(logits: Tensor, task: Task) -> Tensor:
    """Macro-F1 on the validation nodes, as a tensor: what early stopping looks at."""
    nodes = task.val_nodes
    return score_of(task.graph.y[nodes], logits[nodes].argmax(1), task.num_classes)


def score_of(labels: Tensor, predictions: Tensor, num_classes: int) -> Tensor:
    """Macro-F1 as a tensor, without waiting for the device.

    Shapes:
        labels, predictions: int64, (M,)
    """
    if labels.is_cuda:  # counting by index waits there for the largest
        everyone = torch.ones_like(labels, dtype=torch.bool)
        return replica_macro_f1(labels[None], predictions[None], everyone[None], num_classes)[0]
    return macro_f1(confusion_matrix(labels, predictions, num_classes))
