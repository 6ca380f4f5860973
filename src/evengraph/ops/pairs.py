"""Who is mixed with whom: pairs of labelled nodes that new ones are made of."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Pairs(NamedTuple):
    """Whom each new node is made of.

    Shapes:
        sources, targets: int64, (M,), places in the list of labelled nodes
        labels: int64, (M,), the class of the source
        shares: (M,), the source's part in the features
    """

    sources: Tensor
    targets: Tensor
    labels: Tensor
    shares: Tensor


def draw_pairs(labels: Tensor, class_counts: Tensor) -> Pairs:
    """Fill every class up to the largest with pairs of a source and a target.

    A source is any labelled node of the class. A target is any labelled node with probability
    proportional to log(n) / n for a class of n, so that each class is drawn log(n) times as
    often and a class of one never. Shares follow Beta(2, 2), the law of the middle one of three
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
    luck = (torch.rand(count, device=device) * class_counts[classes]).long()
    sources = members[first[classes] + torch.minimum(luck, class_counts[classes] - 1)]
    chance = (class_counts.log() / class_counts)[labels]
    targets = torch.multinomial(chance, count, replacement=True) if count else classes
    return Pairs(sources, targets, classes, torch.rand(3, count, device=device).median(0).values)


def draw_members(chances: Tensor, groups: Tensor, wanted: Tensor) -> Tensor:
    """Draw, for each group asked for, one of its members in proportion to their chances.

    Members of a group whose chances are all zero are drawn evenly. Linear in memory: members
    stand one group after the other, and a uniform number is looked up in their running sum.

    Args:
        chances: Of each member, not negative.
        groups: The group of each member.
        wanted: The groups to draw from, repeats allowed; each has a member.

    Shapes:
        chances, groups: (n,)
        wanted: (M,)
        returns: int64, (M,), places in the list of members
    """
    order = torch.argsort(groups, stable=True)
    sizes = torch.bincount(groups)
    ends = sizes.cumsum(0)
    # on a card, sums come out in any order; a little for everybody keeps a group from nothing
    mass = (chances[order].double() + 1e-12).cpu().cumsum(0).to(chances.device)
    upper = mass[(ends - 1).clamp(min=0)]
    first = (ends - sizes)[wanted]
    lower = torch.where(first > 0, mass[(first - 1).clamp(min=0)], 0.0)
    luck = torch.rand(wanted.numel(), dtype=torch.float64, device=chances.device)
    place = torch.searchsorted(mass, lower + luck * (upper[wanted] - lower), right=True)
    return order[torch.minimum(torch.maximum(place, first), ends[wanted] - 1)]
