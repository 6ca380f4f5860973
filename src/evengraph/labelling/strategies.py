"""Strategies: evidence -> a score per node; the highest are offered for labelling first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from evengraph.core.rng import generator
from evengraph.labelling.evidence import Evidence
from evengraph.ops import personalised_pagerank
from evengraph.ops.sparse import Sparse

FEW = 10  # nodes of a cluster that count half
TELEPORT = 0.2  # walks of five steps on average
WEIGHTS = {"uncertainty": 1.0, "reach": 0.5, "density": 1.0, "rare": 1.0, "novelty": 0.5}
"""Of the ranks in the default; set on other graphs than those of the documentation."""


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A way to choose nodes to label.

    Args:
        name: What users call it.
        meaning: What it prefers, in one sentence.
        score: Evidence -> scores of all nodes, (N,); those of candidates count.
        needs_model: Whether it looks at probabilities, so that it needs labels of two classes.
        spread: How far a batch is spread over unlike nodes; 0 takes the highest scores.
    """

    name: str
    meaning: str
    score: Callable[[Evidence], Tensor]
    needs_model: bool = False
    spread: float = 1.0


def random_scores(evidence: Evidence) -> Tensor:
    """A random order."""
    return torch.rand(len(evidence.labels), generator=generator(evidence.seed))


def uncertainty(evidence: Evidence) -> Tensor:
    """One less the gap between the two most probable classes."""
    top = _probabilities(evidence).topk(2, dim=1).values
    return 1 - (top[:, 0] - top[:, 1])


def committee_disagreement(evidence: Evidence) -> Tensor:
    """How far the members of the committee contradict one another; uncertainty without one."""
    return uncertainty(evidence) if evidence.disagreement is None else evidence.disagreement


def reach(evidence: Evidence) -> Tensor:
    """How often walks that start at nodes far from every label end at a node.

    It is PageRank with such nodes as starting points: a label there would reach them.
    """
    walk = evidence.operator
    known = torch.zeros(len(evidence.labels), 1)
    known[evidence.known] = 1
    near = personalised_pagerank(walk, known, TELEPORT)  # share of walks that end at a label
    back = Sparse(walk.transpose, walk.matrix)
    return personalised_pagerank(back, (1 - near).clamp(min=0), TELEPORT).squeeze(1)


def density(evidence: Evidence) -> Tensor:
    """Typical nodes of large clusters with few labels; every label makes the next worth less."""
    clusters = evidence.clusters
    sizes, labels = clusters.sizes(evidence.candidates), clusters.sizes(evidence.labels >= 0)
    return sizes[clusters.of] / (1 + labels[clusters.of] + clusters.turns(evidence.candidates))


def rare(evidence: Evidence) -> Tensor:
    """The expected worth of a label, where a label of a class is worth one over those it has."""
    return _probabilities(evidence) @ (1 / (1 + evidence.counts.float()))


def novelty(evidence: Evidence) -> Tensor:
    """Typical nodes of clusters that are unlike every labelled node; a few nodes are none."""
    clusters = evidence.clusters
    sizes = clusters.sizes(evidence.candidates)
    groups = sizes / (sizes + FEW)
    if len(evidence.known):
        groups *= torch.cdist(clusters.means, evidence.rows[evidence.known]).amin(1)
    return groups[clusters.of] / (1 + clusters.turns(evidence.candidates))


def combined(evidence: Evidence) -> Tensor:
    """The weighted mean of the ranks by several strategies; without a model, by those without."""
    total = torch.zeros(len(evidence.labels))
    for name, weight in WEIGHTS.items():
        strategy = STRATEGIES[name]
        if evidence.probabilities is not None or not strategy.needs_model:
            total += weight * ranks(strategy.score(evidence), evidence.candidates)
    return total / sum(WEIGHTS.values())


def ranks(scores: Tensor, candidates: Tensor) -> Tensor:
    """The share of candidates with a lower score, (N,)."""
    ordered = scores[candidates].sort().values
    return torch.searchsorted(ordered, scores.contiguous()) / len(ordered)


def _probabilities(evidence: Evidence) -> Tensor:
    if evidence.probabilities is None:
        raise ValueError("This strategy needs a model, and so labels of at least two classes.")
    return evidence.probabilities


STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Strategy(
            name="default",
            meaning="What several of the others agree on, by weighted ranks.",
            score=combined,
        ),
        Strategy(
            name="random",
            meaning="Every unlabelled node alike.",
            score=random_scores,
            spread=0.0,
        ),
        Strategy(
            name="uncertainty",
            meaning="Nodes that the model places between two classes.",
            score=uncertainty,
            needs_model=True,
        ),
        Strategy(
            name="disagreement",
            meaning="Nodes on which the members of the committee contradict one another.",
            score=committee_disagreement,
            needs_model=True,
        ),
        Strategy(
            name="reach",
            meaning="Nodes from which a label reaches many that are far from every label.",
            score=reach,
        ),
        Strategy(
            name="density",
            meaning="Typical nodes of large clusters with few labels.",
            score=density,
        ),
        Strategy(
            name="rare",
            meaning="Nodes that probably are of a class with few labels.",
            score=rare,
            needs_model=True,
        ),
        Strategy(
            name="novelty",
            meaning="Typical nodes of clusters unlike every labelled node.",
            score=novelty,
        ),
    )
}
