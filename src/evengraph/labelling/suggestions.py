"""suggest(): which nodes to label next, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from evengraph.core.errors import unknown
from evengraph.labelling.batch import choose
from evengraph.labelling.evidence import Evidence, disagreement, vote
from evengraph.labelling.hunt import find_hunt
from evengraph.labelling.pool import Pool
from evengraph.labelling.reasons import notes, reasons
from evengraph.labelling.scout import scout
from evengraph.labelling.strategies import STRATEGIES


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A node to label.

    Args:
        id: Its id in the user's table; its row in a graph without ids.
        row: Its row in the graph.
        score: Of the strategy; higher comes first, apart from what makes a batch diverse.
        reason: Why, in words.
        predicted: The name of the most probable class; None without a model.
        probability: Of this class; None without a model.
    """

    id: Any
    row: int
    score: float
    reason: str
    predicted: str | None
    probability: float | None


@dataclass(frozen=True, kw_only=True)
class Suggestions:
    """Nodes to label next, the first first.

    Args:
        nodes: The suggestions.
        strategy: The name of the strategy.
        notes: What to know about all of them, in sentences.
        labelled: Labels of each class so far, by name.
        unlabelled: Nodes that could have been suggested.
        probabilities: What the model predicts for all nodes, (N, C); None without a model.
    """

    nodes: tuple[Suggestion, ...]
    strategy: str
    notes: tuple[str, ...]
    labelled: dict[str, int]
    unlabelled: int
    probabilities: Tensor | None = None

    def as_dict(self) -> dict[str, Any]:
        """Everything but the probabilities, ready for JSON."""
        return {
            "strategy": self.strategy,
            "labelled": self.labelled,
            "unlabelled": self.unlabelled,
            "notes": list(self.notes),
            "nodes": [asdict(node) for node in self.nodes],
        }


def suggest(
    data: Any,
    budget: int = 20,
    strategy: str = "default",
    *,
    seed: int = 0,
    labels: Tensor | None = None,
    exclude: Iterable[int] = (),
    **options: Any,
) -> Suggestions:
    """Choose the nodes to label next.

    A model's own predictions are used; without a model, a quick one is fitted to the labels
    (`scout`). Without labels of two classes, nodes are chosen by the graph and the features alone.

    Args:
        data: A `Pool`, or what `Pool.open` takes: a fitted `TableModel` or its folder, a graph
            with -1 for unlabelled, tables.
        budget: How many nodes.
        strategy: A name in `STRATEGIES`.
        seed: Of everything random.
        labels: Labels that replace those of the data: class numbers, -1 for unlabelled, (N,).
        exclude: Rows that must not be offered, such as those that somebody else is looking at.
        options: What else `Pool.open` takes: edges, known and the columns of tables.
    """
    if budget < 1:
        raise ValueError(f"budget must be at least 1, got {budget}.")
    if strategy not in STRATEGIES:
        raise ValueError(unknown("strategy", strategy, STRATEGIES))
    pool = data if isinstance(data, Pool) else Pool.open(data, **options)
    evidence = gather(pool, labels, exclude, budget=budget, seed=seed)
    chosen, scores = choose_nodes(evidence, strategy)
    return _describe(pool, evidence, strategy, chosen, scores)


def choose_nodes(evidence: Evidence, name: str = "default") -> tuple[Tensor, Tensor]:
    """The nodes to label next, in order, at most (budget,), and the scores of all, (N,)."""
    strategy = STRATEGIES[name]
    if strategy.needs_model and evidence.probabilities is None:
        raise ValueError(
            f"strategy {name} needs labels of at least two classes, got "
            f"{int((evidence.counts > 0).sum())}; default does not."
        )
    scores, hunt = strategy.score(evidence), find_hunt(evidence) if strategy.hunts else None
    groups = [(evidence.candidates, evidence.budget)]
    if hunt is not None and hunt.number:
        groups = [(hunt.likely, hunt.number), (evidence.candidates, evidence.budget - hunt.number)]
    chosen = torch.zeros(0, dtype=torch.int64)
    for candidates, number in groups:
        left = candidates.clone()
        left[chosen] = False
        nodes = choose(scores, evidence.rows, left, number, spread=strategy.spread)
        chosen = torch.cat([chosen, nodes])
    return chosen, scores


def gather(
    pool: Pool,
    labels: Tensor | None = None,
    exclude: Iterable[int] = (),
    *,
    budget: int = 20,
    seed: int = 0,
) -> Evidence:
    """What strategies look at: the pool, with a model's predictions if there are labels."""
    labels = pool.labels if labels is None else _checked(labels, pool)
    candidates = labels < 0
    candidates[list(exclude)] = False
    if not candidates.any():
        raise ValueError("Every node has a label or is excluded; there is nothing to suggest.")
    if pool.method is None:
        committee = scout(pool.rows, labels, pool.num_classes, seed=seed)
    else:
        committee = pool.predictions
    return Evidence(
        graph=pool.graph,
        rows=pool.rows,
        clusters=pool.clusters,
        operator=pool.operator,
        labels=labels,
        candidates=candidates,
        num_classes=pool.num_classes,
        probabilities=None if committee is None else vote(committee),
        disagreement=None if committee is None else disagreement(committee),
        budget=budget,
        seed=seed,
    )


def _checked(labels: Tensor, pool: Pool) -> Tensor:
    labels = torch.as_tensor(labels).cpu().long()
    if labels.shape != pool.labels.shape:
        raise ValueError(f"labels must hold one number for each of the {len(pool.labels)} nodes.")
    if int(labels.max()) >= pool.num_classes:
        raise ValueError(
            f"labels must be below {pool.num_classes}, the number of classes, got "
            f"{int(labels.max())}."
        )
    return labels.clamp(min=-1)


def _describe(
    pool: Pool, evidence: Evidence, strategy: str, chosen: Tensor, scores: Tensor
) -> Suggestions:
    """The chosen nodes with what users want to know of them."""
    texts = reasons(evidence, chosen, pool.class_names)
    tops: list[tuple[str, float] | tuple[None, None]] = [(None, None)] * len(texts)
    if evidence.probabilities is not None:
        values, classes = evidence.probabilities[chosen].max(1)
        names = [pool.class_names[index] for index in classes.tolist()]
        tops = list(zip(names, values.tolist(), strict=True))
    nodes = tuple(
        Suggestion(
            id=pool.ids[row],
            row=row,
            score=float(scores[row]),
            reason=text,
            predicted=name,
            probability=probability,
        )
        for row, text, (name, probability) in zip(chosen.tolist(), texts, tops, strict=True)
    )
    return Suggestions(
        nodes=nodes,
        strategy=strategy,
        notes=notes(evidence, chosen, pool.class_names),
        labelled=dict(zip(pool.class_names, evidence.counts.tolist(), strict=True)),
        unlabelled=int(evidence.candidates.sum()),
        probabilities=evidence.probabilities,
    )
