"""Label propagation: labels spread over the graph, and nothing is learnt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.method import Method
from evengraph.metrics.multiclass import validation_score
from evengraph.ops.sparse import propagation_matrix, weighted_adjacency

MOST_STEPS = 100_000  # that a saved model may take
LEAST = 1e-30  # keeps the logarithm finite where a class does not reach a node


@final
@dataclass(kw_only=True)
class LabelPropagation(Method):
    """Spread labels over the graph step by step; features are not used.

    Every labelled node starts with its class. In each step a node takes the mean of its
    neighbours, plus a share of its start. The number of steps is selected on the validation nodes.
    In another graph, labelled nodes are recognised by row and features; where no label reaches,
    all classes are equally likely.

    Args:
        restart: Share of a node's start in each step.
        balance: Start all classes with the same total weight.

    Cost:
        O(E C) per step.

    Departs:
        Self-loops are added and neighbours are averaged, without the symmetric normalisation; the
        paper runs until convergence. `learning_rate`, `weight_decay` and seeds have no effect.

    Reference:
        Zhou, Bousquet, Lal, Weston and Schoelkopf, "Learning with Local and Global Consistency",
        NeurIPS 2003.
    """

    _weighted_edges = True
    title = "Label propagation"
    portfolio = ({},)
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

    @property
    def uses_labels(self) -> bool:
        return True

    def _fit(self, task: Task) -> None:
        history = self._train_in_steps(self._rounds(task))
        self.rewind(history.best_epoch)

    def rewind(self, step: int) -> None:
        """Take another number of steps than the one that validation prefers."""
        self.steps_ = torch.tensor(step)

    def _rounds(self, task: Task) -> Iterator[tuple[Tensor, Tensor]]:
        """Loss and score before any step, after one, after two and so on."""
        labels = task.graph.y[task.train].unsqueeze(1)
        for logits in self._spreading(task.graph):
            log_likelihood = logits[task.train].log_softmax(1).gather(1, labels)
            yield -log_likelihood.mean(), validation_score(logits, task)

    def _logits(self, graph: Data) -> Tensor:
        return next(islice(self._spreading(graph), int(self.steps_), None))

    def _spreading(self, graph: Data) -> Iterator[Tensor]:
        """Logs of how much of each class has reached each node after 0, 1, ... steps, (N, C)."""
        propagation = propagation_matrix(weighted_adjacency(graph), graph.x.device, how="row")
        start = spread = self._start(graph)
        while True:
            yield spread.clamp(min=LEAST).log()
            spread = (1 - self.restart) * (propagation @ spread) + self.restart * start

    def _start(self, graph: Data) -> Tensor:
        """Labels of the training nodes that the graph has in the same rows, (N, C)."""
        nodes, labels = self._known_labels(graph)
        known = one_hot(self.labelled_.labels, self.num_classes_).float()
        weight = 1 / known.sum(0) if self.balance else torch.ones_like(known[0])
        start = torch.zeros(graph.num_nodes, self.num_classes_, device=graph.x.device)
        return start.index_copy(0, nodes, one_hot(labels, self.num_classes_) * weight)

    def _state(self) -> dict[str, Tensor]:
        return {"steps": self.steps_}

    def _load_state(self, state: Mapping[str, Tensor]) -> None:
        self.steps_ = state["steps"]
        most = min(self.max_epochs, MOST_STEPS)
        if self.steps_.numel() != 1 or not 0 <= int(self.steps_) <= most:
            raise ValueError(f"steps must lie between 0 and {most}")
