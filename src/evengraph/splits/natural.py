"""Natural imbalance: the graph's own class sizes."""

from __future__ import annotations

import random
from dataclasses import dataclass

from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.splits.base import (
    check_shares,
    class_names,
    class_word,
    count_classes,
    mask_of,
    need,
    nodes_of_class,
    shuffled,
)


@dataclass(frozen=True, kw_only=True)
class Natural:
    """A stratified split: the same share of every class, and at least a node in each set.

    What neither trains nor validates is test.

    Args:
        train: Share of the labelled nodes to train on.
        val: Share of the labelled nodes to choose on.
    """

    train: float = 0.1
    val: float = 0.1

    def __post_init__(self) -> None:
        check_shares(self.train, self.val)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        num_classes = count_classes(graph)
        stream = random.Random(seed)
        train: list[int] = []
        val: list[int] = []
        test: list[int] = []
        for label in range(num_classes):
            nodes = shuffled(nodes_of_class(graph, label), stream)
            need(nodes, 3, class_word(graph, label), "train, validation and test")
            first = min(max(1, round(self.train * len(nodes))), len(nodes) - 2)
            second = min(first + max(1, round(self.val * len(nodes))), len(nodes) - 1)
            train += nodes[:first]
            val += nodes[first:second]
            test += nodes[second:]
        return Task(
            graph,
            mask_of(train, graph),
            mask_of(val, graph),
            mask_of(test, graph),
            num_classes=num_classes,
            class_names=class_names(graph),
        )
