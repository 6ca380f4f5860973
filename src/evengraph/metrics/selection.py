"""The criterion of early stopping, and of every other choice made on validation nodes.

Macro-F1 of the argmax. With two classes, one of them rare among the validation nodes, it is the
mean of the rare class's average precision and balanced accuracy: Macro-F1 would prefer a model
that never predicts the rare class to one that finds half of it at low precision.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from evengraph.core.ranks import ALONE, Ranks
from evengraph.core.task import Task
from evengraph.metrics.multiclass import batched_macro_f1, macro_f1_score

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


def batched_validation_scores(
    labels: Tensor, logits: Tensor, mask: Tensor, rare: Tensor, ranks: Ranks = ALONE
) -> Tensor:
    """The validation score of several replicas at once, without a device synchronisation, (R,).

    Of several processes each has some of the nodes; all get the scores that the first computes.

    Shapes:
        labels: int64, (R, V), of the validation nodes
        logits: (R, V, C)
        mask: bool, (R, V), which nodes count
        rare: int64, (R,), the rare class of two, -1 without one
    """
    scores = batched_macro_f1(labels, logits.argmax(2), mask, logits.shape[2], ranks)
    if logits.shape[2] == 2:
        labels, logits, mask = (ranks.gather(part, 1) for part in (labels, logits, mask))
        ranked = _rare_scores(labels, logits, mask, rare.clamp(min=0))
        scores = torch.where(rare < 0, scores, ranked)
    return ranks.sum(scores if ranks.rank == 0 else torch.zeros_like(scores))


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
