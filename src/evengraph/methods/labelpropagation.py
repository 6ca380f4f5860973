"""Label propagation: labels spread over the graph, and nothing is learnt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.method import Method
from evengraph.metrics import validation_score
from evengraph.nn.tracing import Contributions
from evengraph.ops import Sparse, matching_signatures, propagation_matrix, undirected_adjacency
from evengraph.ops.signature import feature_signatures

LEAST = 1e-30  # of a class that did not reach a node: its logarithm is finite


@final
@dataclass(kw_only=True)
class LabelPropagation(Method):
    """Spread labels over the graph step by step; features are not used.

    Every labelled node starts with its class. In each step a node takes the mean of its
    neighbours and keeps some of its start. How many steps, is chosen on the validation nodes,
    as epochs are. In another graph, labelled nodes are those that are known again by place and
    features; where no label reaches, all classes are as likely.

    Args:
        restart: Share of a node's start in each step.
        balance: Start classes with the same weight in all, however many nodes they have.

    Cost:
        O(E C) a step.

    Departs:
        Nodes also receive their own class, and neighbours are averaged instead of divided by
        roots of degrees; the paper runs until nothing changes. `learning_rate` and `weight_decay`
        have no meaning here, seeds change nothing, and `explain` is not possible.

    Reference:
        Zhou, Bousquet, Lal, Weston and Schoelkopf, "Learning with Local and Global Consistency",
        NeurIPS 2003.
    """

    title = "Label propagation"
    search_space = {
        "learning_rate": (),  # has no effect: other values would repeat the same setting
        "weight_decay": (),
        "restart": (0.01, 0.03, 0.1, 0.2, 0.4, 0.7),
        "balance": (False, True),
    }

    max_epochs: int = 200
    patience: int = 50
    restart: float = 0.1
    balance: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.restart <= 1:
            raise ValueError(f"restart must lie in (0, 1], got {self.restart}.")

    def _fit(self, task: Task) -> None:
        history = self._train_in_steps(self._rounds(task))
        self.steps_ = torch.tensor(history.best_epoch)

    def _rounds(self, task: Task) -> Iterator[tuple[Tensor, Tensor]]:
        """Loss and score before any step, after one, after two and so on."""
        labels = task.graph.y[task.train].unsqueeze(1)
        for spread in self._spreading(task.graph):
            logits = _logits_of(spread)
            chances = logits.log_softmax(1)[task.train].gather(1, labels)
            yield -chances.mean(), validation_score(logits, task)

    def _logits(self, graph: Data) -> Tensor:
        steps = self._spreading(graph)
        for _ in range(int(self.steps_)):
            next(steps)
        return _logits_of(next(steps))

    def _spreading(self, graph: Data) -> Iterator[Tensor]:
        """How much of each class has reached each node after 0, 1, 2, ... steps, (N, C)."""
        start = self._start(graph)
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        propagation: Sparse = propagation_matrix(matrix, graph.x.device, how="row")
        spread = start
        while True:
            yield spread
            spread = (1 - self.restart) * (propagation @ spread) + self.restart * start

    def _start(self, graph: Data) -> Tensor:
        """Labels of the nodes that were learnt from, where they stand as they stood, (N, C)."""
        nodes, labels, signatures = self.labelled_
        known = one_hot(labels, self.num_classes_).float()
        if self.balance:
            known = known / known.sum(0)
        here = (nodes < graph.num_nodes).nonzero().squeeze(1)
        same = matching_signatures(feature_signatures(graph.x[nodes[here]]), signatures[here])
        here = here[same]
        start = torch.zeros(graph.num_nodes, self.num_classes_, device=graph.x.device)
        return start.index_copy(0, nodes[here], known[here])

    def contributions(self, graph: Data, node: int, direction: Tensor) -> Contributions:
        """Not possible: features are not used."""
        raise ValueError("Label propagation cannot be explained: it does not use features.")

    def _state(self) -> dict[str, Tensor]:
        return {"steps": self.steps_}

    def _load_state(self, kept: Mapping[str, Tensor]) -> None:
        self.steps_ = kept["steps"]


def _logits_of(spread: Tensor) -> Tensor:
    return spread.clamp(min=LEAST).log()
