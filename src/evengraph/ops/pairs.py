"""Pairs of labelled nodes to mix into new ones."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Pairs(NamedTuple):
    """Source and target of each new node.

    Shapes:
        sources, targets: int64, (M,), indices into the labelled nodes
        labels: int64, (M,), the class of the source
        shares: (M,), the source's share of the features
    """

    sources: Tensor
    targets: Tensor
    labels: Tensor
    shares: Tensor


def draw_pairs(labels: Tensor, class_counts: Tensor) -> Pairs:
    """Draw pairs that fill every class up to the size of the largest.

    A source is any labelled node of the class. A target is any labelled node with probability
    proportional to log(n) / n for a class of n, so a class is drawn in proportion to log(n) and
    a class of one never. Shares follow Beta(2, 2), the distribution of the median of three
    uniform numbers.

    Shapes:
        labels: (n,)
        class_counts: (C,)
    """
    missing = class_counts.max() - class_counts
    classes = torch.repeat_interleave(missing)  # (M,)
    count, device = classes.numel(), labels.device
    members = torch.argsort(labels, stable=True)
    first = class_counts.cumsum(0) - class_counts
    ranks = (torch.rand(count, device=device) * class_counts[classes]).long()
    sources = members[first[classes] + torch.minimum(ranks, class_counts[classes] - 1)]
    weights = (class_counts.log() / class_counts)[labels]
    targets = torch.multinomial(weights, count, replacement=True) if count else classes
    return Pairs(sources, targets, classes, torch.rand(3, count, device=device).median(0).values)


def draw_members(weights: Tensor, groups: Tensor, draws: Tensor) -> Tensor:
    """Draw one member per entry of `draws`, in proportion to the weights within its group.

    Members of a group whose weights are all zero are drawn uniformly. Linear in memory: members
    are sorted by group, and a uniform number is looked up in their running sum.

    Shapes:
        weights, groups: (n,), of each member; weights are not negative
        draws: (M,), groups, repeats allowed; each has a member
        returns: int64, (M,), indices of members
    """
    order = torch.argsort(groups, stable=True)
    sizes = torch.bincount(groups)
    ends = sizes.cumsum(0)
    # sums are not deterministic on a GPU; the constant makes members of weight zero equally likely
    mass = (weights[order].double() + 1e-12).cpu().cumsum(0).to(weights.device)
    upper = mass[(ends - 1).clamp(min=0)]
    first = (ends - sizes)[draws]
    lower = torch.where(first > 0, mass[(first - 1).clamp(min=0)], 0.0)
    uniform = torch.rand(draws.numel(), dtype=torch.float64, device=weights.device)
    index = torch.searchsorted(mass, lower + uniform * (upper[draws] - lower), right=True)
    return order[torch.minimum(torch.maximum(index, first), ends[draws] - 1)]
