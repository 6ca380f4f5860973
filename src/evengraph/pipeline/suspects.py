"""suspects(): the nodes that are most likely positive, each with what speaks for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch_geometric.data import Data

from evengraph.methods import Method
from evengraph.pipeline.explanation import ColumnPart, Explanation, explain
from evengraph.pipeline.new_nodes import NewNodes

REASONS = 3  # per node
SHARE = 0.05  # of the largest reason; smaller ones are not worth the room


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """A node with a high probability of the positive class.

    Args:
        id: The id of the node.
        probability: Of the positive class.
        reasons: Columns and labelled nodes that speak for the class, the strongest first.
    """

    id: str
    probability: float
    reasons: tuple[str, ...]


def suspects(
    method: Method,
    nodes: NewNodes,
    probabilities: np.ndarray,
    *,
    positive: int,
    count: int,
    graph: Data | None = None,
) -> list[Suspect]:
    """Rank nodes by their probability of a class and explain the first.

    Args:
        method: The fitted method that predicted them.
        nodes: The nodes that were predicted.
        probabilities: Of the positive class, (M,).
        positive: Index of the class.
        count: How many to return at most.
        graph: The graph that was predicted, if not that of the nodes as they came.
    """
    if count < 1:
        raise ValueError(f"top must be at least 1, got {count}.")
    tables = nodes.tables
    graph = tables.graph if graph is None else graph
    indices = np.arange(graph.num_nodes)[nodes.rows]
    ids, names = tuple(map(str, tables.ids.tolist())), tables.encoder.names
    found = []
    for place in np.argsort(-probabilities, kind="stable")[:count].tolist():
        node = int(indices[place])
        explanation = explain(method, graph, node, ids=ids, feature_names=names)
        reasons = tuple(reasons_for(explanation, positive))
        found.append(Suspect(id=ids[node], probability=probabilities[place], reasons=reasons))
    return found


def reasons_for(explanation: Explanation, positive: int) -> list[str]:
    """What speaks for a class, in a few words each: columns, then a labelled node of the class."""
    sign = 1 if explanation.predicted == positive else -1
    parts = {column_words(part): sign * part.contribution for part in explanation.columns}
    largest = max(parts.values(), default=0.0)
    strong = [name for name, value in parts.items() if value > max(SHARE * largest, 0.0)]
    reasons = sorted(strong, key=lambda name: -parts[name])[:REASONS]
    near = [
        one
        for one in explanation.labelled
        if one.label == positive and sign * one.contribution > 0 and one.distance
    ]
    if near:
        first = max(near, key=lambda one: sign * one.contribution)
        steps = "neighbour" if first.distance == 1 else f"{first.distance} steps away"
        known = explanation.class_names[positive] if explanation.class_names else str(positive)
        reasons.append(f"{explanation.ids[first.node]} ({known}, {steps})")
    return reasons


def column_words(part: ColumnPart) -> str:
    """A column, and whose it is unless it is the node's own."""
    if part.origin == "own":
        return part.name
    return f"{part.name} ({'neighbourhood' if part.origin == 'others' else part.origin})"
