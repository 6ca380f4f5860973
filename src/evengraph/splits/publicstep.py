"""Step imbalance on the public split: the protocol of GraphENS, TAM, UNREAL and BAT."""

from __future__ import annotations

import random
from dataclasses import dataclass

from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.splits.base import (
    check_minority,
    check_ratio,
    class_names,
    class_word,
    count_classes,
    mask_of,
    minority_size,
    need,
    nodes_of_class,
    shuffled,
)


@dataclass(frozen=True, kw_only=True)
class PublicStep:
    """Cut the public training set of the last classes; keep public validation and test whole.

    Classes keep their original ids. Test sets are not balanced here, so accuracy and balanced
    accuracy differ.

    Args:
        minority: Number of minority classes, counted from the last id.
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
                "This protocol needs a public split (train_mask, val_mask, test_mask)."
            )
        num_classes = count_classes(graph)
        check_minority(self.minority, num_classes)
        stream = random.Random(seed)
        pools = [nodes_of_class(graph, c, among=graph.train_mask) for c in range(num_classes)]
        many = minority_size(max(len(pool) for pool in pools), self.ratio)
        train: list[int] = []
        for label, pool in enumerate(pools):
            need(pool, 1, class_word(graph, label), "training")
            minor = label >= num_classes - self.minority
            train += shuffled(pool, stream)[:many] if minor else pool
        names = class_names(graph)
        if self.normalise_features:
            graph = graph.clone("x")
            graph.x = graph.x / graph.x.sum(dim=1, keepdim=True).clamp(min=1)
        return Task(
            graph,
            mask_of(train, graph),
            graph.val_mask,
            graph.test_mask,
            num_classes=num_classes,
            class_names=names,
        )
