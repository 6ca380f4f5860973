"""Metrics for any number of classes, computed on the device of the tensors.

All but the two ranking metrics are functions of the confusion matrix. Values are fractions, as in
scikit-learn; an undefined value is NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor

from evengraph.metrics.binary import precision_gains


def confusion_matrix(labels: Tensor, predictions: Tensor, num_classes: int) -> Tensor:
    """Count how often a node of class i is predicted as class j.

    Shapes:
        labels, predictions: int64, (M,)
        returns: int64, (C, C), rows are true classes
    """
    pairs = torch.bincount(labels * num_classes + predictions, minlength=num_classes**2)
    return pairs.reshape(num_classes, num_classes)


def recalls(confusion: Tensor) -> Tensor:
    """Recall of each class, (C,); NaN for a class without nodes."""
    return confusion.diagonal() / confusion.sum(1)


def f1_scores(confusion: Tensor) -> Tensor:
    """F1 of each class, (C,); NaN for a class neither present nor predicted."""
    return 2 * confusion.diagonal() / (confusion.sum(0) + confusion.sum(1))


def specificities(confusion: Tensor) -> Tensor:
    """True negative rate of each class, (C,)."""
    negatives = confusion.sum() - confusion.sum(1)
    false_positives = confusion.sum(0) - confusion.diagonal()
    return 1 - false_positives / negatives


def accuracy(confusion: Tensor) -> Tensor:
    """Share of nodes predicted correctly."""
    return confusion.diagonal().sum() / confusion.sum()


def balanced_accuracy(confusion: Tensor) -> Tensor:
    """Mean recall of the classes present."""
    return recalls(confusion).nanmean()


def macro_f1(confusion: Tensor) -> Tensor:
    """Mean F1 of the classes present or predicted."""
    return f1_scores(confusion).nanmean()


def g_mean(confusion: Tensor) -> Tensor:
    """Square root of mean recall times mean specificity, over the classes present or predicted.

    This is imbalanced-learn's macro variant, which the paper's tables report, and not the
    geometric mean of the recalls.
    """
    seen = (confusion.sum(0) + confusion.sum(1)) > 0
    recall = recalls(confusion).nan_to_num(0.0)[seen].mean()
    return (recall * specificities(confusion)[seen].mean()).sqrt()


def average_precision(labels: Tensor, probabilities: Tensor) -> Tensor:
    """Mean over the classes present of the area under the precision-recall curve, one-vs-rest."""
    gains = torch.zeros_like(probabilities, dtype=torch.double)  # (M, C), row n is rank n + 1
    for label in labels.unique().tolist():
        ranks, values = precision_gains(labels == label, probabilities[:, label])
        gains[ranks - 1, label] = values
    positives = labels.bincount(minlength=probabilities.shape[1])
    return (gains.sum(0) / positives)[positives > 0].mean()


def auroc(labels: Tensor, probabilities: Tensor) -> Tensor:
    """Mean over classes of the area under the ROC curve, one-vs-rest.

    Classes that hold no node are left out. NaN if one class holds all of them.
    """
    ranks = _mean_ranks(probabilities)  # (M, C), from 1
    member = torch.nn.functional.one_hot(labels, probabilities.shape[1]).double()
    positives = member.sum(0)
    negatives = labels.numel() - positives
    wins = (ranks * member).sum(0) - positives * (positives + 1) / 2
    area = wins / (positives * negatives)
    return area[positives > 0].mean()


def _mean_ranks(scores: Tensor) -> Tensor:
    """Rank of each score in its column, from 1; equal scores share their mean rank."""
    columns = scores.t().contiguous()
    ordered = columns.sort(dim=1).values
    below = torch.searchsorted(ordered, columns)
    up_to = torch.searchsorted(ordered, columns, right=True)
    return ((below + up_to + 1).double() / 2).t()


def batched_macro_f1(labels: Tensor, predictions: Tensor, mask: Tensor, num_classes: int) -> Tensor:
    """Macro-F1 of several replicas at once, without a device synchronisation, (R,).

    Shapes:
        labels, predictions: int64, (R, V)
        mask: bool, (R, V), which nodes count
    """
    # A product of one-hot rows, since bincount on a GPU adds in no fixed order.
    classes = torch.arange(num_classes, device=labels.device)
    truth = (labels.unsqueeze(2) == classes).float() * mask.unsqueeze(2)
    guess = (predictions.unsqueeze(2) == classes).float()
    confusion = truth.transpose(1, 2) @ guess  # (R, C, C)
    right = confusion.diagonal(dim1=1, dim2=2)
    return (2 * right / (confusion.sum(1) + confusion.sum(2))).nanmean(1)


def macro_f1_score(labels: Tensor, predictions: Tensor, num_classes: int) -> Tensor:
    """Macro-F1 from predictions, without a device synchronisation.

    Shapes:
        labels, predictions: int64, (M,)
    """
    if labels.is_cuda:  # bincount would synchronise to find the largest index
        mask = torch.ones_like(labels, dtype=torch.bool)
        return batched_macro_f1(labels[None], predictions[None], mask[None], num_classes)[0]
    return macro_f1(confusion_matrix(labels, predictions, num_classes))
