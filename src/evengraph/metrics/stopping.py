"""Other criteria of early stopping than `validation_score`."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from evengraph.core.task import Task
from evengraph.metrics.selection import batched_validation_scores, validation_score

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
