"""A split that comes with the graph."""

from __future__ import annotations

import random
from dataclasses import dataclass

from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.splits.base import (
    class_names,
    class_word,
    count_classes,
    mask_of,
    need,
    nodes_of_class,
    shuffled,
)


@dataclass(frozen=True, kw_only=True)
class Given:
    """The sets that the graph carries: a split column of a table, or a public split.

    A graph that says nothing of validation gets some: a share of each class's training nodes,
    drawn by the seed. A class keeps at least one node to train on. Nodes without label are in no
    set.

    Args:
        val: Share of the training nodes to choose on, where the graph has no validation set.
    """

    val: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.val < 1:
            raise ValueError(f"val must lie between 0 and 1, got {self.val}.")

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        for name in ("train", "test"):
            if f"{name}_mask" not in graph:
                raise ValueError(
                    f"This protocol needs a split that comes with the graph, and nothing here is "
                    f"marked {name}: name a column that says train, val or test."
                )
        num_classes = count_classes(graph)
        names = class_names(graph)
        labelled = graph.y >= 0
        train, test = graph.train_mask & labelled, graph.test_mask & labelled
        for label in range(num_classes):
            nodes = nodes_of_class(graph, label, among=train)
            need(nodes, 1, class_word(graph, label), "training")
        if "val_mask" in graph:
            val = graph.val_mask & labelled
        else:
            stream = random.Random(seed)
            drawn: list[int] = []
            for label in range(num_classes):
                nodes = shuffled(nodes_of_class(graph, label, among=train), stream)
                drawn += nodes[: min(max(1, round(self.val * len(nodes))), len(nodes) - 1)]
            val = mask_of(drawn, graph)
            train = train & ~val
        for name, mask in (("validation", val), ("test", test)):
            if not mask.any():
                raise ValueError(f"The split leaves no labelled node for {name}; mark some.")
        return Task(graph, train, val, test, num_classes=num_classes, class_names=names)
