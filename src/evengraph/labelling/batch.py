"""A batch of nodes with high scores that are unlike one another."""

from __future__ import annotations

import torch
from torch import Tensor

CHOICE = 10  # times the budget: so many of the highest scores are compared


def choose(
    scores: Tensor,
    rows: Tensor,
    candidates: Tensor,
    budget: int,
    *,
    spread: float = 1.0,
) -> Tensor:
    """Take nodes one by one: the highest score, less what it shares with those taken before.

    Args:
        spread: What a copy of a chosen node loses, relative to the range of scores.

    Shapes:
        scores: (N,), rows: (N, d), candidates: bool, (N,)
        returns: int64, at most (budget,), in order of choice
    """
    nodes = candidates.nonzero().squeeze(1)
    budget = min(budget, len(nodes))
    if not budget:
        return nodes[:0]
    order = scores[nodes].argsort(descending=True, stable=True)
    nodes = nodes[order[: CHOICE * budget]]
    values, rows = _unit(scores[nodes]), rows[nodes]
    width = _typical_distance(rows)
    taken: list[int] = []
    shared = torch.zeros_like(values)
    for _ in range(budget):
        value = values - spread * shared
        value[taken] = -torch.inf
        taken.append(int(value.argmax()))
        distance = (rows - rows[taken[-1]]).square().sum(1)
        shared = shared.maximum(torch.exp(-distance / width))
    return nodes[taken]


def _unit(scores: Tensor) -> Tensor:
    """Scores between 0 and 1."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else torch.zeros_like(scores)


def _typical_distance(rows: Tensor) -> Tensor:
    """Mean squared distance between two rows, never 0."""
    return (2 * (rows - rows.mean(0)).square().sum(1).mean()).clamp(min=1e-12)
