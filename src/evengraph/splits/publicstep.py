"""Step imbalance on the public split: the protocol of GraphENS, TAM, UNREAL and BAT."""

from __future__ import annotations

import random
from dataclasses import dataclass

from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.splits.base import (
    check_class_size,
    check_minority,
    check_ratio,
    class_nodes,
    count_classes,
    make_task,
    minority_size,
)


@dataclass(frozen=True, kw_only=True)
class PublicStep:
    """Reduce the public training set of the last classes; keep public validation and test sets.

    Classes keep their labels. Test sets are not balanced here, so accuracy and balanced accuracy
    differ.

    Args:
        minority: Number of minority classes, counted from the last label.
        ratio: Labelled nodes of a minority class over those of a majority class.
        normalise_features: Scale the features of each node to sum to one, as those papers do.

    Reference:
        Park, Song and Yang, "GraphENS", ICLR 2022; Song, Park and Yang, "TAM", ICML 2022.
    """

    minority: int = 3
    ratio: float = 0.1
    normalise_features: bool = True

    def __post_init__(self) -> None:
        check_ratio(self.ratio)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        if "train_mask" not in graph:
            raise ValueError(
                "The split protocol publicstep needs a public split (train_mask, val_mask, "
                "test_mask)."
            )
        num_classes = count_classes(graph)
        check_minority(self.minority, num_classes)
        stream = random.Random(seed)
        pools = [class_nodes(graph, c, among=graph.train_mask) for c in range(num_classes)]
        size = minority_size(max(len(pool) for pool in pools), self.ratio)
        train: list[int] = []
        for label, pool in enumerate(pools):
            check_class_size(graph, label, pool, 1, "training")
            if label >= num_classes - self.minority:
                stream.shuffle(pool)
                pool = pool[:size]
            train += pool
        if self.normalise_features:
            graph = graph.clone("x")
            graph.x = graph.x / graph.x.sum(dim=1, keepdim=True).clamp(min=1)
        return make_task(graph, train, graph.val_mask, graph.test_mask)
