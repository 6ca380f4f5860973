"""A split that comes with the graph."""

from __future__ import annotations

from dataclasses import dataclass

from torch_geometric.data import Data

from evengraph.core.errors import ArgumentError
from evengraph.core.masks import hold_out, node_mask
from evengraph.core.task import Task
from evengraph.splits.base import (
    check_class_size,
    check_shares,
    class_nodes,
    count_classes,
    make_task,
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
        masks = {name: node_mask(graph, name) for name in ("train", "val", "test")}
        for name in ("train", "test"):
            if masks[name] is None:
                raise ArgumentError(
                    f"The split protocol given needs a graph with a split, and no node is marked "
                    f"{name}; name a column that holds train, val or test.",
                    argument="split",
                )
        labels = range(count_classes(graph))
        labelled = graph.y >= 0
        train, test = masks["train"] & labelled, masks["test"] & labelled
        for label in labels:
            check_class_size(graph, label, class_nodes(graph, label, train), 1, "training")
        if masks["val"] is not None:
            val = masks["val"] & labelled
        else:
            val = hold_out(graph.y, train, self.val, seed)
            train = train & ~val
        for name, mask in (("validation", val), ("test", test)):
            if not mask.any():
                raise ValueError(f"The split has no labelled node for {name}; mark some.")
        return make_task(graph, train, val, test)
