"""Cross-validation: the graph's own class sizes, every labelled node tested once."""

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
    nodes_of_class,
    shuffled,
)


@dataclass(frozen=True, kw_only=True)
class Folds:
    """Stratified cross-validation: one fold is test, part of the others validates.

    Seeds 0 to folds - 1 are the folds of one partition, the next as many those of another: seed
    s is fold s % folds of partition s // folds.

    Args:
        folds: How many parts; each class needs as many nodes.
        val: Share of the labelled nodes to choose on, out of those that are not tested.
    """

    folds: int = 5
    val: float = 0.1

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise ValueError(f"folds must be at least 2, got {self.folds}.")
        if not 0 < self.val < 1 - 1 / self.folds:
            most = f"{1 - 1 / self.folds:.3g}"
            raise ValueError(
                f"val must lie between 0 and {most} with {self.folds} folds, got {self.val}."
            )

    def __call__(self, graph: Data, *, seed: int) -> Task:
        """Split the graph."""
        num_classes = count_classes(graph)
        partition, fold = divmod(seed, self.folds)
        stream = random.Random(partition)
        train: list[int] = []
        val: list[int] = []
        test: list[int] = []
        start = 0  # where a class begins to be dealt, so that folds stay equal in size
        for label in range(num_classes):
            nodes = shuffled(nodes_of_class(graph, label), stream)
            self._need(len(nodes), class_word(graph, label))
            dealt = [(start + place) % self.folds for place in range(len(nodes))]
            start += len(nodes)
            test += [node for node, part in zip(nodes, dealt, strict=True) if part == fold]
            others = [node for node, part in zip(nodes, dealt, strict=True) if part != fold]
            # Else the first nodes would validate in every fold.
            others = shuffled(others, random.Random(f"{seed} {label}"))
            count = min(max(1, round(self.val * len(nodes))), len(others) - 1)
            val += others[:count]
            train += others[count:]
        return Task(
            graph,
            mask_of(train, graph),
            mask_of(val, graph),
            mask_of(test, graph),
            num_classes=num_classes,
            class_names=class_names(graph),
        )

    def _need(self, size: int, called: str) -> None:
        """Every fold needs a node of each class to test, and two that are left."""
        least = max(self.folds, 3 if self.folds > 2 else 4)
        if size < least:
            raise ValueError(
                f"Class {called} has {size} nodes, {least} are needed for {self.folds} folds; take "
                "fewer folds, or repeated splits."
            )
