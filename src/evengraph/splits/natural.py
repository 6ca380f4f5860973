"""Natural imbalance: the class sizes of the graph."""

from __future__ import annotations

import random
from dataclasses import dataclass

from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.splits.base import (
    check_class_size,
    check_shares,
    count_classes,
    join_classes,
    shuffled_nodes,
)


@dataclass(frozen=True, kw_only=True)
class Natural:
    """A stratified split: the same share of every class, and at least one node in each set.

    All other labelled nodes are test nodes.

    Args:
        train: Share of the labelled nodes to train on.
        val: Share of the labelled nodes to validate on.
    """

    train: float = 0.1
    val: float = 0.1

    def __post_init__(self) -> None:
        check_shares(train=self.train, val=self.val)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        stream = random.Random(seed)
        parts = []
        for label in range(count_classes(graph)):
            nodes = shuffled_nodes(graph, label, stream)
            check_class_size(graph, label, nodes, 3, "train, validation and test")
            first = min(max(1, round(self.train * len(nodes))), len(nodes) - 2)
            second = min(first + max(1, round(self.val * len(nodes))), len(nodes) - 1)
            parts.append((nodes[:first], nodes[first:second], nodes[second:]))
        return join_classes(graph, parts)
