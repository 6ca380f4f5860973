"""Hunt: a part of each batch goes to the rarest class, until it has its share of the labels."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.labelling.evidence import Evidence

TIMES = 2.0  # share of the labels over share of the nodes
MOST = 0.5  # of the labels
PART = 3  # of ten nodes; more cost the other classes
RARE = 0.9  # of an equal share of the nodes: a class with more is not rare


class Hunt(NamedTuple):
    """The class to look for.

    Args:
        label: Its number.
        likely: Candidates that are predicted to be of it, bool, (N,).
        number: How many of them belong to the next batch.
    """

    label: int
    likely: Tensor
    number: int


def find_hunt(evidence: Evidence) -> Hunt | None:
    """The rarest class and how many nodes it still needs; None if no class is rare.

    Of the classes that have labels and are predicted for a candidate, it is the one with the fewest
    nodes by the model. It should have as many labels as the others on average, or twice its share
    of the nodes if that is more, but at most half of all.
    """
    found = evidence.probabilities
    if found is None:
        return None
    predicted, seen = found.argmax(1), evidence.counts > 0
    usable = torch.bincount(predicted[evidence.candidates], minlength=evidence.num_classes) > 0
    shares = torch.where(usable & seen, found.mean(0), torch.inf)
    label, equal = int(shares.argmin()), 1 / max(1, int(seen.sum()))
    share = float(shares[label])
    if share >= RARE * equal or equal == 1:
        return None
    before, after = len(evidence.known), len(evidence.known) + evidence.budget
    goal = min(MOST, max(equal, TIMES * share)) * after
    likely = evidence.candidates & (predicted == label)
    lacking = math.ceil(goal - int(evidence.counts[label]))
    allowed = PART * after // 10 - PART * before // 10  # the same however batches are cut
    number = min(lacking, allowed, int(likely.sum()))
    return Hunt(label, likely, max(0, number))
