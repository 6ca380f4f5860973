"""Strategies: evidence -> a score per node; the highest are offered for labelling first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from evengraph.core.rng import generator
from evengraph.labelling.evidence import Evidence


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A way to choose nodes to label.

    Args:
        name: What users call it.
        meaning: What it prefers, in one sentence.
        score: Evidence -> scores of all nodes, (N,); those of candidates count.
        needs_model: Whether it looks at probabilities, so that it needs labels of two classes.
        diverse: Whether a batch is spread over unlike nodes.
    """

    name: str
    meaning: str
    score: Callable[[Evidence], Tensor]
    needs_model: bool = False
    diverse: bool = True


def random_scores(evidence: Evidence) -> Tensor:
    """A random order."""
    return torch.rand(len(evidence.labels), generator=generator(evidence.seed))


def uncertainty(evidence: Evidence) -> Tensor:
    """One less the gap between the two most probable classes."""
    top = _probabilities(evidence).topk(2, dim=1).values
    return 1 - (top[:, 0] - top[:, 1])


def _probabilities(evidence: Evidence) -> Tensor:
    if evidence.probabilities is None:
        raise ValueError("This strategy needs a model, and so labels of at least two classes.")
    return evidence.probabilities


STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Strategy(
            name="default",
            meaning="Not yet: uncertainty, or a random order without labels.",
            score=lambda e: random_scores(e) if e.probabilities is None else uncertainty(e),
        ),
        Strategy(
            name="random",
            meaning="Every unlabelled node alike.",
            score=random_scores,
            diverse=False,
        ),
        Strategy(
            name="uncertainty",
            meaning="Nodes that the model places between two classes.",
            score=uncertainty,
            needs_model=True,
        ),
    )
}
