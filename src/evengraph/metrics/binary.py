"""Metrics and thresholds for two classes, one of them positive.

All are read off one curve with an entry per distinct score: nodes of equal score are flagged
together or not at all. Values are fractions; an undefined value is NaN.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Curve(NamedTuple):
    """True and false positives at each threshold, the highest threshold first.

    Shapes:
        thresholds, true_positives, false_positives: float64, (T,), one entry per distinct score
    """

    thresholds: Tensor
    true_positives: Tensor
    false_positives: Tensor

    @property
    def positives(self) -> Tensor:
        return self.true_positives[-1]

    @property
    def negatives(self) -> Tensor:
        return self.false_positives[-1]


def curve(positive: Tensor, scores: Tensor) -> Curve:
    """Count true and false positives at every threshold.

    Args:
        positive: Which nodes are positive.
        scores: Higher means more likely positive.

    Shapes:
        positive: bool, (M,)
        scores: (M,)
    """
    if positive.shape != scores.shape or positive.dim() != 1 or not positive.numel():
        raise ValueError(
            "positive and scores must be vectors of the same length, at least 1, "
            f"got shapes {tuple(positive.shape)} and {tuple(scores.shape)}."
        )
    if not torch.isfinite(scores).all():
        raise ValueError("scores must be finite; some are NaN or infinite.")
    thresholds, index = scores.double().unique(return_inverse=True)  # ascending
    hits = torch.bincount(index[positive.bool()], minlength=len(thresholds)).flip(0)
    nodes = torch.bincount(index, minlength=len(thresholds)).flip(0)
    return Curve(thresholds.flip(0), hits.cumsum(0).double(), (nodes - hits).cumsum(0).double())


def precision_gains(positive: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Steps of the precision-recall curve.

    Returns:
        The rank at which each tie of scores ends, and precision there times positives gained.
        Average precision is the sum of the gains over the number of positives.
    """
    _, hits, false_alarms = curve(positive, scores)
    ranks = hits + false_alarms
    return ranks.long(), torch.diff(hits, prepend=hits.new_zeros(1)) * hits / ranks


def average_precision(positive: Tensor, scores: Tensor) -> float:
    """Area under the precision-recall curve of the positive class, as a step function."""
    _, gains = precision_gains(positive, scores)
    return float(gains.sum() / positive.sum())


AT_ONCE = 2**20  # nodes of samples


def resampled_average_precision(
    positive: Tensor, scores: Tensor, samples: Sequence[Tensor]
) -> Tensor:
    """Average precision of samples of the nodes, which are sorted once, float64, (R,)."""
    levels, place = (-scores.double()).unique(return_inverse=True)  # the highest score is first
    found, step = [], max(AT_ONCE // max(len(scores), 1), 1)
    for start in range(0, len(samples), step):
        some = torch.stack(list(samples[start : start + step]))
        size = len(some), len(levels)
        rows = torch.arange(size[0], device=place.device).unsqueeze(1)
        index = (place[some] + size[1] * rows).flatten()
        weights = positive[some].double().flatten()
        hits = torch.bincount(index, weights, minlength=size[0] * size[1]).view(size)
        nodes = torch.bincount(index, minlength=size[0] * size[1]).view(size)
        precision = hits.cumsum(1) / nodes.cumsum(1).clamp(min=1)
        found.append((hits * precision).sum(1) / hits.sum(1))
    return torch.cat(found).nan_to_num(0.0)


def precision_recall_points(positive: Tensor, scores: Tensor, limit: int = 60) -> list[list[float]]:
    """Recall and precision at thresholds that fall, at most `limit`, in equal steps of recall.

    Between two points precision may vary; the last point has all positives. Empty without any.
    """
    _, hits, false_alarms = curve(positive, scores)
    if not hits[-1]:
        return []
    first = torch.diff(hits, prepend=hits.new_zeros(1)) > 0  # others find no further positive
    precision, recall = (hits / (hits + false_alarms))[first], (hits / hits[-1])[first]
    rows = torch.linspace(0, len(recall) - 1, min(limit, len(recall))).round().long()
    pairs = torch.stack([recall, precision], 1)[rows.to(recall.device)].tolist()
    return [[round(value, 4) for value in pair] for pair in pairs]


def precision_at(positive: Tensor, scores: Tensor, k: int) -> float:
    """Share of positives among the k highest scores; averaged over all orders of a tie at k."""
    if not 1 <= k <= positive.numel():
        raise ValueError(f"k must lie between 1 and the {positive.numel()} nodes, got {k}.")
    _, hits, false_alarms = curve(positive, scores)
    ranks = torch.cat([hits.new_zeros(1), hits + false_alarms])
    hits = torch.cat([hits.new_zeros(1), hits])
    tie = int(torch.searchsorted(ranks, float(k)))  # the tie that holds rank k
    share = (k - ranks[tie - 1]) / (ranks[tie] - ranks[tie - 1])
    return float((hits[tie - 1] + share * (hits[tie] - hits[tie - 1])) / k)


def recall_at(positive: Tensor, scores: Tensor, budget: float) -> float:
    """Highest recall at a false positive rate of at most `budget`."""
    if not 0 <= budget <= 1:
        raise ValueError(f"budget must lie in [0, 1], got {budget}.")
    points = curve(positive, scores)
    if points.negatives == 0 or points.positives == 0:
        return math.nan
    allowed = points.false_positives / points.negatives <= budget
    return float(torch.where(allowed, points.true_positives, 0).max() / points.positives)


def best_threshold(positive: Tensor, scores: Tensor) -> float:
    """The score with the best F1 from which on nodes are flagged; use validation nodes.

    Of equally good thresholds the highest, which flags the fewest nodes. NaN where one of the two
    classes has no node. Shapes are those of `curve`.
    """
    points = curve(positive, scores)
    if points.positives == 0 or points.negatives == 0:
        return math.nan
    value = 2 * points.true_positives
    value = value / (points.true_positives + points.false_positives + points.positives)
    # the first of equal values, up to rounding
    return float(points.thresholds[int((value >= value.max() - 1e-12).nonzero()[0])])


def flagged(scores: Tensor, threshold: float) -> Tensor:
    """Which scores reach the threshold, (M,); compared in double precision, as it was chosen."""
    return scores.double() >= threshold


def f1_at(positive: Tensor, scores: Tensor, threshold: float) -> float:
    if math.isnan(threshold):
        return math.nan
    chosen, positive = flagged(scores, threshold), positive.bool()
    both, either = (chosen & positive).sum(), chosen.sum() + positive.sum()
    return float(2 * both / either)


def positive_class(class_counts: Tensor) -> int:
    """The rarer of two classes; the second if they are equal."""
    if class_counts.numel() != 2:
        raise ValueError(f"There must be two classes, got {class_counts.numel()}.")
    first, second = class_counts.tolist()
    return 0 if first < second else 1
