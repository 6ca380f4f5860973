"""Nearest mean: a method of a few lines, trained by the shared loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.utils import scatter

from evengraph import Method, Task
from evengraph.metrics.multiclass import validation_score


@final
@dataclass(kw_only=True)
class NearestMean(Method):
    """Class means of features averaged over neighbours, learned by gradient descent.

    Args:
        spread: Standard deviation of the initial means.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O(E F) once, O(N F) per epoch.

    Reference:
        None: an example.
    """

    title = "Nearest mean"
    spread: float = 0.1

    def _fit(self, task: Task) -> None:
        x, labels = _averaged(task.graph), task.graph.y[task.train]
        self.net_ = self._new_network()
        nn.init.normal_(self.net_.weight, std=self.spread)

        def epoch() -> tuple[Tensor, Tensor]:
            logits = self.net_(x)
            loss = cross_entropy(logits[task.train], labels)
            return loss, validation_score(logits.detach(), task)

        self._train(self.net_, epoch)

    def _logits(self, graph: Data) -> Tensor:
        return self.net_(_averaged(graph))

    def _build_network(self) -> nn.Linear:
        return nn.Linear(self.num_features_, self.num_classes_)


def _averaged(graph: Data) -> Tensor:
    """Mean of each node's features and the mean of its neighbours', (N, F)."""
    source, target = graph.edge_index
    x = graph.x.float()
    mean = scatter(x[source], target, dim=0, dim_size=len(x), reduce="mean")
    return torch.cat([x, mean], dim=1).view(len(x), 2, -1).mean(1)
