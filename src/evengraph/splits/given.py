"""A split that comes with the graph."""

from __future__ import annotations

import random
from dataclasses import dataclass

from torch_geometric.data import Data

from evengraph.core.errors import ArgumentError
from evengraph.core.task import Task
from evengraph.splits.base import (
    check_class_size,
    check_shares,
    class_nodes,
    count_classes,
    make_task,
    mask_of,
    shuffled_nodes,
)


@dataclass(frozen=True, kw_only=True)
class Given:
    """The split of the graph: a split column of a table, or a public split.

    Without a validation set, a share of each class's training nodes is drawn for it by the seed;
    a class keeps at least one training node. Nodes without a label are in no set.

    Args:
        val: Share of the training nodes to validate on, if the graph has no validation set.
    """

    val: float = 0.2

    def __post_init__(self) -> None:
        check_shares(val=self.val)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        for name in ("train", "test"):
            if f"{name}_mask" not in graph:
                raise ArgumentError(
                    f"The split protocol given needs a graph with a split, and no node is marked "
                    f"{name}; name a column that holds train, val or test.",
                    argument="split",
                )
        labels = range(count_classes(graph))
        labelled = graph.y >= 0
        train, test = graph.train_mask & labelled, graph.test_mask & labelled
        for label in labels:
            check_class_size(graph, label, class_nodes(graph, label, train), 1, "training")
        if "val_mask" in graph:
            val = graph.val_mask & labelled
        else:
            stream = random.Random(seed)
            val_nodes: list[int] = []
            for label in labels:
                nodes = shuffled_nodes(graph, label, stream, among=train)
                val_nodes += nodes[: min(max(1, round(self.val * len(nodes))), len(nodes) - 1)]
            val = mask_of(val_nodes, graph)
            train = train & ~val
        for name, mask in (("validation", val), ("test", test)):
            if not mask.any():
                raise ValueError(f"The split has no labelled node for {name}; mark some.")
        return make_task(graph, train, val, test)
