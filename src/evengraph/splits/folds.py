"""Cross-validation: the class sizes of the graph, every labelled node tested once."""

from __future__ import annotations

import random
from dataclasses import dataclass

from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.splits.base import count_classes, display_name, join_classes, shuffled_nodes


@dataclass(frozen=True, kw_only=True)
class Folds:
    """Stratified cross-validation: test on one fold, validate on part of the others.

    Seed s is fold s % folds of partition s // folds: seeds 0 to folds - 1 are the folds of one
    partition, the next seeds those of another.

    Args:
        folds: Number of folds; each class needs as many nodes.
        val: Share of the labelled nodes to validate on, taken from the nodes that are not tested.
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
        partition, fold = divmod(seed, self.folds)
        stream = random.Random(partition)
        parts = []
        start = 0  # fold of the first node of a class; it moves on, so that folds have equal sizes
        for label in range(count_classes(graph)):
            nodes = shuffled_nodes(graph, label, stream)
            least = max(self.folds, 3 if self.folds > 2 else 4)  # one to test and two others
            if len(nodes) < least:
                raise ValueError(
                    f"Class {display_name(graph, label)} has {len(nodes)} nodes, {least} are "
                    f"needed for {self.folds} folds; use fewer folds, or repeated splits."
                )
            test = nodes[(fold - start) % self.folds :: self.folds]
            others = [node for i, node in enumerate(nodes) if (start + i) % self.folds != fold]
            start += len(nodes)
            # otherwise the first nodes would validate in every fold
            random.Random(f"{seed} {label}").shuffle(others)
            count = min(max(1, round(self.val * len(nodes))), len(others) - 1)
            parts.append((others[count:], others[:count], test))
        return join_classes(graph, parts)
