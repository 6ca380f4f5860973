"""Figures for two classes of which one matters: ranking, false alarms, a threshold.

Every figure comes from one curve, counted where a tie of scores ends: nodes of equal score are
flagged together or not at all. Fractions; a figure that is undefined is NaN.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

Goal = Literal["f1", "balanced_accuracy", "false_positives"]


class Curve(NamedTuple):
    """What is flagged at each threshold, the highest first.

    Shapes:
        thresholds, true_positives, false_positives: float64, (T,), one entry a distinct score
    """

    thresholds: Tensor
    true_positives: Tensor
    false_positives: Tensor

    @property
    def positives(self) -> Tensor:
        """How many there are to find."""
        return self.true_positives[-1]

    @property
    def negatives(self) -> Tensor:
        """How many false alarms are possible."""
        return self.false_positives[-1]


def curve(positive: Tensor, scores: Tensor) -> Curve:
    """Count what is right and what is wrong at every threshold.

    Args:
        positive: Which nodes are of the class that matters.
        scores: The higher, the likelier.

    Shapes:
        positive: bool, (M,)
        scores: (M,)
    """
    if positive.shape != scores.shape or positive.dim() != 1 or not positive.numel():
        raise ValueError(
            "positive and scores must be of one length, at least 1, "
            f"got shapes {tuple(positive.shape)} and {tuple(scores.shape)}."
        )
    if not torch.isfinite(scores).all():
        raise ValueError("scores must be finite; some are NaN or infinite.")
    thresholds, place = scores.double().unique(return_inverse=True)  # ascending
    found = torch.bincount(place[positive.bool()], minlength=len(thresholds)).flip(0)
    all_nodes = torch.bincount(place, minlength=len(thresholds)).flip(0)
    return Curve(
        thresholds.flip(0), found.cumsum(0).double(), (all_nodes - found).cumsum(0).double()
    )


def average_precision(positive: Tensor, scores: Tensor) -> float:
    """Area under precision and recall of the positive class, as a step function."""
    _, found, alarms = curve(positive, scores)
    gained = torch.diff(found, prepend=found.new_zeros(1))
    return float((gained * found / (found + alarms)).sum() / found[-1])


def precision_at(positive: Tensor, scores: Tensor, k: int) -> float:
    """Share of the k highest scores that are right.

    Where the k-th place cuts through a tie, the mean over all orders of the tie.
    """
    if not 1 <= k <= positive.numel():
        raise ValueError(f"k must lie between 1 and the {positive.numel()} nodes, got {k}.")
    _, found, alarms = curve(positive, scores)
    ends = torch.cat([found.new_zeros(1), found + alarms])
    hits = torch.cat([found.new_zeros(1), found])
    tie = int(torch.searchsorted(ends, float(k)))  # the tie that holds the k-th place
    share = (k - ends[tie - 1]) / (ends[tie] - ends[tie - 1])
    return float((hits[tie - 1] + share * (hits[tie] - hits[tie - 1])) / k)


def recall_at(positive: Tensor, scores: Tensor, budget: float) -> float:
    """Largest share of the positive nodes found with at most this share of false alarms.

    Args:
        positive: Which nodes are of the class that matters.
        scores: The higher, the likelier.
        budget: Flagged negative nodes over all negative nodes, at most.
    """
    _check_budget(budget)
    points = curve(positive, scores)
    allowed = points.false_positives / points.negatives <= budget
    if points.negatives == 0 or points.positives == 0:
        return math.nan
    return float(torch.where(allowed, points.true_positives, 0).max() / points.positives)


def best_threshold(
    positive: Tensor, scores: Tensor, goal: Goal = "f1", *, budget: float = 0.01
) -> float:
    """The score from which on a node is to be flagged; choose it on validation nodes.

    Of thresholds that are equally good the highest, which flags the fewest. NaN where one of
    the two classes has no node.

    Args:
        positive: Which nodes are of the class that matters.
        scores: The higher, the likelier.
        goal: `f1` and `balanced_accuracy` are made as large as they can be; `false_positives`
            finds as many as a budget of false alarms allows.
        budget: For `false_positives`: flagged negative nodes over all, at most.
    """
    if goal not in get_args(Goal):
        raise ValueError(f"goal must be one of {', '.join(get_args(Goal))}, got {goal!r}.")
    _check_budget(budget)
    points = curve(positive, scores)
    thresholds, found, alarms = points
    if points.positives == 0 or points.negatives == 0:
        return math.nan
    if goal == "f1":
        value = 2 * found / (found + alarms + points.positives)
    elif goal == "balanced_accuracy":
        value = found / points.positives - alarms / points.negatives
    else:
        within = alarms / points.negatives <= budget
        if not within.any():  # the very first tie is too much: flag nothing
            return math.nextafter(float(thresholds[0]), math.inf)
        value = torch.where(within, found, -1.0)
    return float(thresholds[_first_largest(value)])


def flagged(scores: Tensor, threshold: float) -> Tensor:
    """Which scores reach a threshold, (M,); in double precision, as it was found."""
    return scores.double() >= threshold


def f1_at(positive: Tensor, scores: Tensor, threshold: float) -> float:
    """F1 of the positive class when all from a threshold on are flagged."""
    if math.isnan(threshold):
        return math.nan
    chosen, positive = flagged(scores, threshold), positive.bool()
    both, either = (chosen & positive).sum(), chosen.sum() + positive.sum()
    return float(2 * both / either)


def positive_class(class_counts: Tensor) -> int:
    """The rarer of two classes; of equal ones the second, as is usual."""
    if class_counts.numel() != 2:
        raise ValueError(f"There must be two classes, got {class_counts.numel()}.")
    first, second = class_counts.tolist()
    return 0 if first < second else 1


def _first_largest(values: Tensor) -> int:
    """Place of the largest; of equal ones the first, whatever rounding made of them."""
    return int((values >= values.max() - 1e-12).nonzero()[0])


def _check_budget(budget: float) -> None:
    if not 0 <= budget <= 1:
        raise ValueError(f"budget must lie in [0, 1], got {budget}.")
