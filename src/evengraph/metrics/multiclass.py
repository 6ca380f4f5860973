"""Metrics for any number of classes, and the validation score: what early stopping maximises.

Computed on the device of the tensors. All but the ranking metrics are functions of the confusion
matrix. Values are fractions, as in scikit-learn; an undefined value is NaN.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from evengraph.core.task import Task
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
    columns = probabilities.t().contiguous()
    ordered = columns.sort(dim=1).values
    below, up_to = (torch.searchsorted(ordered, columns, right=end) for end in (False, True))
    ranks = ((below + up_to + 1).double() / 2).t()  # (M, C), from 1; equal scores share theirs
    member = torch.nn.functional.one_hot(labels, probabilities.shape[1]).double()
    positives = member.sum(0)
    negatives = labels.numel() - positives
    wins = (ranks * member).sum(0) - positives * (positives + 1) / 2
    area = wins / (positives * negatives)
    return area[positives > 0].mean()


def batched_macro_f1(labels: Tensor, predictions: Tensor, mask: Tensor, num_classes: int) -> Tensor:
    """Macro-F1 of several replicas at once, without a device synchronisation, (R,).

    Labels, predictions and the mask of nodes that count are (R, V).
    """
    # A product of one-hot rows, since bincount on a GPU adds in no fixed order.
    classes = torch.arange(num_classes, device=labels.device)
    truth = (labels.unsqueeze(2) == classes).float() * mask.unsqueeze(2)
    guess = (predictions.unsqueeze(2) == classes).float()
    confusion = truth.transpose(1, 2) @ guess  # (R, C, C)
    right = confusion.diagonal(dim1=1, dim2=2)
    return (2 * right / (confusion.sum(1) + confusion.sum(2))).nanmean(1)


def macro_f1_score(labels: Tensor, predictions: Tensor, num_classes: int) -> Tensor:
    """Macro-F1 from predictions, (M,), without a device synchronisation."""
    if labels.is_cuda:  # bincount would synchronise to find the largest index
        mask = torch.ones_like(labels, dtype=torch.bool)
        return batched_macro_f1(labels[None], predictions[None], mask[None], num_classes)[0]
    return macro_f1(confusion_matrix(labels, predictions, num_classes))


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

    Macro-F1 of the argmax. With two classes, one of them rare among the validation nodes, the mean
    of the rare class's average precision and balanced accuracy: Macro-F1 would prefer a model that
    never predicts the rare class to one that finds half of it at low precision.

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


def validation_likelihood(logits: Tensor, task: Task) -> Tensor:
    """Mean log-likelihood of the validation labels: smoother than rankings of few nodes."""
    return -cross_entropy(logits[task.val_nodes], task.graph.y[task.val_nodes])


def batched_validation_scores(labels: Tensor, logits: Tensor, mask: Tensor, rare: Tensor) -> Tensor:
    """The validation score of several replicas at once, without a device synchronisation, (R,).

    Labels of the validation nodes and the mask of those that count are (R, V), logits (R, V, C);
    `rare`, (R,), is the rare class of two, -1 without one.
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

    Every positive node, all of the mask, adds the precision at the end of its tie.
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
    """What early stopping maximises, on the validation nodes; a GPU is not synchronised."""
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
