"""Strategies: evidence -> a score per node; the highest are offered for labelling first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.nn.functional import one_hot

from evengraph.core.rng import generator
from evengraph.desk.evidence import Evidence, find_clusters, unlike_labels
from evengraph.methods.bases.method import Committee
from evengraph.ops.sparse import Sparse, diffuse

UNLIKE = 10  # one node in so many is unlike every label, where there are any
CERTAIN = 0.75  # share of its worth that a label loses where the class is certain
LEAST = 1e-3  # share of the nodes that a class has at least
SAMPLE = 600  # nodes that stand for all in `representative`
SURE = 0.05  # weight of a node whose class is certain, against 1 of one between two classes
BLOCK = 4_000  # rows compared at a time, whose distances stay in the cache
FEW = 10  # nodes of a cluster that count half
STEPS, TELEPORT = 20, 0.2  # of walks, of five steps on average
WEIGHTS = {"uncertainty": 1.0, "rare": 0.5, "representative": 1.0, "coverage": 0.5, "reach": 0.5}
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
        hunts: Whether a part of a batch goes to the rarest class; see `find_hunt`.
    """

    name: str
    meaning: str
    score: Callable[[Evidence], Tensor]
    needs_model: bool = False
    spread: float = 1.0
    hunts: bool = False


def random_scores(evidence: Evidence) -> Tensor:
    """A random order."""
    return torch.rand(len(evidence.labels), generator=generator(evidence.seed))


def uncertainty(evidence: Evidence) -> Tensor:
    """One less the gap between the two most probable classes."""
    top = _probabilities(evidence).topk(2, dim=1).values
    return 1 - (top[:, 0] - top[:, 1])


def reach(evidence: Evidence) -> Tensor:
    """How often walks that start at nodes far from every label end at a node.

    It is PageRank with such nodes as starting points: a label there would reach them.
    """
    walk = evidence.operator
    known = torch.zeros(len(evidence.labels), 1)
    known[evidence.known] = 1
    near = diffuse(walk, known, STEPS, TELEPORT)  # share of walks that end at a label
    return _walked_to(evidence, (1 - near).clamp(min=0))


def coverage(evidence: Evidence) -> Tensor:
    """The most typical node of every cluster, then the second, by the size of the cluster."""
    clusters = evidence.clusters
    sizes, labels = clusters.sizes(evidence.candidates), clusters.sizes(evidence.labels >= 0)
    return sizes[clusters.of] / (1 + labels[clusters.of] + clusters.turns(evidence.candidates))


def rare(evidence: Evidence) -> Tensor:
    """The worth of a label: high for classes with few labels and few nodes, less if it is certain.

    The worth of a class falls with its share of the labels and with its share of the nodes, as
    predicted. A node that surely is of a rare class adds to its labels but teaches little.
    """
    found, counts = _probabilities(evidence), 1 + evidence.counts.float()
    labels, nodes = counts / counts.sum(), found.mean(0).clamp(min=LEAST)
    return (found * (1 - CERTAIN * found)) @ (1 / (labels * nodes))


def representative(evidence: Evidence) -> Tensor:
    """How many nodes are like a node that are like no labelled one, (N,).

    Those count for more whose class is uncertain, or rare. A sample stands for all of them.
    """
    unlabelled = (evidence.labels < 0).nonzero().squeeze(1)
    order = torch.randperm(len(unlabelled), generator=generator(evidence.seed))
    nodes = unlabelled[order[:SAMPLE]]
    others, clusters = evidence.rows[nodes], evidence.clusters
    usual = (others - clusters.means[clusters.of[nodes]]).square().sum(1).mean().clamp(min=1e-12)

    def likeness(rows: Tensor) -> Tensor:
        return torch.cdist(rows, others).square_().div_(-2 * usual).exp_()

    covered = torch.zeros(len(nodes))
    for part in evidence.known.split(BLOCK) if len(evidence.known) else ():
        covered = torch.maximum(covered, likeness(evidence.rows[part]).amax(0))
    weights = _urgency(evidence, nodes)
    parts = evidence.rows.split(BLOCK)
    return torch.cat([likeness(part).sub_(covered).clamp_(min=0) @ weights for part in parts])


def _urgency(evidence: Evidence, nodes: Tensor) -> Tensor:
    """How much it matters to know more of some nodes, (n,); the same for all without a model."""
    if evidence.probabilities is None:
        return torch.ones(len(nodes))
    found = evidence.probabilities[nodes]
    shares = found.mean(0).clamp(min=LEAST)
    return (SURE + uncertainty(evidence)[nodes]) * (found @ (1 / shares))


def novelty(evidence: Evidence) -> Tensor:
    """Typical nodes of clusters that are unlike every labelled node; a few nodes are none."""
    clusters = evidence.clusters
    sizes = clusters.sizes(evidence.candidates)
    groups = sizes / (sizes + FEW)
    if len(evidence.known):
        groups *= torch.cdist(clusters.means, evidence.rows[evidence.known]).amin(1)
    return groups[clusters.of] * clusters.typical


def combined(evidence: Evidence) -> Tensor:
    """The weighted mean of the ranks by several strategies; without a model, by those without.

    A few of each batch come first that are unlike every label: a class may be hidden there, and
    a model is often sure of what it has never seen. Without a model, one of every group does.
    """
    total = torch.zeros(len(evidence.labels))
    for name, weight in WEIGHTS.items():
        strategy = STRATEGIES[name]
        if evidence.probabilities is not None or not strategy.needs_model:
            total += weight * ranks(strategy.score(evidence), evidence.candidates)
    total /= sum(WEIGHTS.values())
    blind = evidence.probabilities is None
    total[_pioneers(evidence) if blind else _strangers(evidence)] += 1
    return total


def _pioneers(evidence: Evidence) -> Tensor:
    """The most typical node of every group without a label; as many groups as there will be labels.

    Ranks alone would take the first batch from a few large groups, and so from a few classes.
    """
    clusters = find_clusters(evidence.rows, len(evidence.known) + evidence.budget)
    empty = clusters.sizes(evidence.labels >= 0) == 0
    first = evidence.candidates & (clusters.turns(evidence.candidates) == 0)
    nodes = (first & empty[clusters.of]).nonzero().squeeze(1)
    order = clusters.sizes(evidence.candidates)[clusters.of[nodes]].argsort(descending=True)
    return nodes[order[: evidence.budget]]


def _strangers(evidence: Evidence) -> Tensor:
    """The most typical nodes of some clusters unlike every label, one of each."""
    clusters = evidence.clusters
    first = evidence.candidates & (clusters.turns(evidence.candidates) == 0)
    nodes = (first & unlike_labels(evidence)).nonzero().squeeze(1)
    order = novelty(evidence)[nodes].argsort(descending=True, stable=True)
    return nodes[order[: evidence.budget // UNLIKE]]


def ranks(scores: Tensor, candidates: Tensor) -> Tensor:
    """The share of candidates with a lower score, (N,)."""
    ordered = scores[candidates].sort().values
    return torch.searchsorted(ordered, scores.contiguous()) / len(ordered)


def _walked_to(evidence: Evidence, starts: Tensor) -> Tensor:
    """How often walks end at each node, that start at nodes as often as given, (N, 1)."""
    back = Sparse(evidence.operator.transpose, evidence.operator.matrix)
    return diffuse(back, starts, STEPS, TELEPORT).squeeze(1)


def _probabilities(evidence: Evidence) -> Tensor:
    if evidence.probabilities is None:
        raise ValueError("This strategy needs a model, and so labels of at least two classes.")
    return evidence.probabilities


_ALL = (
    Strategy(
        name="default",
        meaning="What several of the others agree on, and enough of the rarest class.",
        score=combined,
        hunts=True,
    ),
    Strategy(
        name="random", meaning="Every unlabelled node alike.", score=random_scores, spread=0.0
    ),
    Strategy(
        name="uncertainty",
        meaning="Nodes that the model places between two classes.",
        score=uncertainty,
        needs_model=True,
    ),
    Strategy(
        name="rare",
        meaning="Nodes that probably are of a class with few labels or few nodes.",
        score=rare,
        needs_model=True,
    ),
    Strategy(
        name="representative",
        meaning="Nodes that many uncertain ones are like, which are like no labelled node.",
        score=representative,
    ),
    Strategy(
        name="coverage",
        meaning="The most typical node of every cluster first, then the second.",
        score=coverage,
    ),
    Strategy(
        name="reach",
        meaning="Nodes from which a label reaches many that are far from every label.",
        score=reach,
    ),
)
STRATEGIES = {strategy.name: strategy for strategy in _ALL}


MEMBERS = 8
PENALTY = 0.1  # L2, per labelled node
ITERATIONS = 30  # of L-BFGS
PRECISION = 1e-6  # of the loss, relative; it is computed in 32 bits
LEVEL_PENALTY = 0.01  # L2 of the last change of the intercepts
PREDICTED = 100_000  # rows predicted at a time
DISTANCES = 200_000_000  # between rows and labels at a time, 800 MB


def scout(rows: Tensor, labels: Tensor, num_classes: int, *, seed: int = 0) -> Committee | None:
    """Fit the committee to all labels and predict every node; None with fewer than two classes.

    Every member sees the labels with random weights of its own (the Bayesian bootstrap), so that
    members differ where the labels do not decide. Classes weigh the same, however many labels they
    have; a class without any gets the probability 0. Labels that were chosen crowd where classes
    meet, so a label weighs the square root of the number of nodes that it is the nearest one of;
    for the intercepts, which decide where one class ends and the next begins, the number itself.

    Args:
        rows: Of all nodes.
        labels: -1 for unlabelled.
        num_classes: Including those without labels.
        seed: Of the weights.

    Shapes:
        rows: (N, d), labels: int64, (N,)
    """
    nodes = (labels >= 0).nonzero().squeeze(1)
    classes, targets = labels[nodes].unique(return_inverse=True)
    if len(classes) < 2:
        return None
    draws = torch.rand(MEMBERS, len(nodes), generator=generator(seed)).clamp(min=1e-6)
    weights, nodes_each = -draws.log(), stood_for(rows, rows[nodes])
    model = fit_members(rows[nodes], targets, weights * nodes_each.sqrt())
    model = level(model, rows[nodes], targets, weights * nodes_each)
    result = rows.new_zeros(MEMBERS, len(rows), num_classes)
    for start in range(0, len(rows), PREDICTED):
        part = slice(start, start + PREDICTED)
        result[:, part, classes] = predict_members(rows[part], model)
    return Committee.even(result)


def stood_for(rows: Tensor, labelled: Tensor) -> Tensor:
    """The number of rows that each of the labelled ones is the nearest of, at least 1, (n,)."""
    parts = rows.split(min(PREDICTED, max(1, DISTANCES // len(labelled))))
    nearest = torch.cat([torch.cdist(part, labelled).argmin(1) for part in parts])
    return torch.bincount(nearest, minlength=len(labelled)).clamp(min=1).to(rows)


def fit_members(rows: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Fit one softmax regression per row of weights; a label of weight 0 is not seen.

    All are one problem for the solver, since members share nothing.

    Shapes:
        rows: (n, d); targets: int64, (n,), every class at least once; weights: (M, n)
        returns: (M, d + 1, C)
    """
    weights, rows = _balanced(weights, targets), _with_bias(rows)
    shape = rows.shape[1], len(weights), int(targets.max()) + 1
    penalty = (PENALTY / (weights > 0).sum(1))[:, None].repeat(shape[0], 1, 1)
    penalty[-1] = 0  # intercepts are free

    def loss(model: Tensor) -> tuple[Tensor, Tensor]:
        logits = (rows @ model.flatten(1)).view(-1, *shape[1:])
        value, slope = _loss(logits, targets, weights)
        decay = penalty * model
        return value + (decay * model).sum(), (rows.T @ slope.flatten(1)).view(shape) + 2 * decay

    return _minimise(loss, rows.new_zeros(shape)).transpose(0, 1)


def level(model: Tensor, rows: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Fit the intercepts again, with other weights of the labels; the slopes stay.

    Shapes:
        As in `fit_members`.
    """
    weights, logits = _balanced(weights, targets), _logits(rows, model)

    def loss(change: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = _loss(logits + change, targets, weights)
        decay = LEVEL_PENALTY * change
        return value + (decay * change).sum(), slope.sum(0) + 2 * decay

    change = _minimise(loss, torch.zeros_like(model[:, -1]))
    return torch.cat([model[:, :-1], (model[:, -1] + change).unsqueeze(1)], dim=1)


def _loss(logits: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted cross-entropy, summed over members, and its gradient.

    Shapes:
        logits and gradient: (n, M, C)
    """
    aims = one_hot(targets, logits.shape[2]).to(logits).unsqueeze(1)
    logs, each = logits.log_softmax(2), weights.T.unsqueeze(2)
    return -(each * aims * logs).sum(), each * (logs.exp() - aims)


def _minimise(loss: Callable[[Tensor], tuple[Tensor, Tensor]], start: Tensor) -> Tensor:
    """By L-BFGS, of a function that gives its value and gradient."""

    def flat(values: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = loss(torch.from_numpy(values).to(start).view_as(start))
        return float(value), slope.double().numpy().ravel()

    options = {"maxiter": ITERATIONS, "ftol": PRECISION}
    first = start.double().numpy().ravel()
    found = minimize(flat, first, jac=True, method="L-BFGS-B", options=options)
    return torch.from_numpy(found.x).to(start).view_as(start)


def predict_members(rows: Tensor, model: Tensor) -> Tensor:
    """Probabilities by every member, (M, n, C)."""
    return _logits(rows, model).softmax(2).transpose(0, 1)


def _logits(rows: Tensor, model: Tensor) -> Tensor:
    """Of every member, (n, M, C), in one multiplication."""
    slopes = model[:, :-1].transpose(0, 1).flatten(1)
    return torch.addmm(model[:, -1].flatten(), rows, slopes).view(-1, len(model), model.shape[2])


def _balanced(weights: Tensor, targets: Tensor) -> Tensor:
    """Weights of labels that sum to the same in each class, and to one in all, (M, n)."""
    number = int(targets.max()) + 1
    sums = weights.new_zeros(len(weights), number).index_add_(1, targets, weights)
    present = (sums > 0).sum(1, keepdim=True)
    return weights / sums.clamp(min=1e-12)[:, targets] / present


def _with_bias(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows.new_ones(len(rows), 1)], dim=1)
