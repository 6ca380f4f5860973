"""What scikit-learn's tools expect of an estimator, without scikit-learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Self

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.metrics import balanced_accuracy, confusion_matrix


@dataclass(kw_only=True)
class Estimator(ABC):
    """Fields by name, predictions and a score; `sklearn.base.clone` works on it."""

    @abstractmethod
    def predict_proba(self, graph: Data) -> Tensor:
        """Class probabilities of every node, (N, C)."""

    def predict(self, graph: Data) -> Tensor:
        """The most probable class of every node.

        Shapes:
            returns: int64, (N,)
        """
        return self.predict_proba(graph).argmax(dim=1)

    def score(self, task: Task, *, nodes: Tensor | None = None) -> float:
        """Balanced accuracy on the test nodes, or on others.

        Args:
            task: The graph and its labels.
            nodes: A mask, or a list of nodes, to score instead of the test nodes.

        Shapes:
            nodes: bool, (N,), or int64, (M,)
        """
        chosen = _listed(task.test if nodes is None else nodes, task)
        labels = task.graph.y[chosen]
        if not labels.numel():
            raise ValueError("There are no nodes to score on.")
        if labels.min() < 0:
            raise ValueError("Some of the nodes to score on have no label.")
        found = self.predict(task.graph)[chosen]
        return float(balanced_accuracy(confusion_matrix(labels, found, task.num_classes)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The fields by name; none holds another estimator, so `deep` changes nothing."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Change fields, all of them or, where one is refused, none.

        What was fitted stays as it is until the next fit.
        """
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no field {name!r}; it has {', '.join(known)}."
                )
        type(self)(**known | params)  # refuses what the constructor refuses
        for name, value in params.items():
            setattr(self, name, value)
        return self


def _listed(nodes: Tensor, task: Task) -> Tensor:
    """A mask or a list of nodes as a list."""
    num_nodes, nodes = task.graph.num_nodes, nodes.to(task.graph.y.device)
    if nodes.dtype == torch.bool:
        if nodes.shape != (num_nodes,):
            raise ValueError(f"nodes must be a mask of {num_nodes} nodes, got {nodes.numel()}.")
        return nodes.nonzero().squeeze(1)
    if nodes.is_floating_point() or nodes.dim() != 1:
        raise ValueError("nodes must be a bool mask or a list of whole numbers.")
    if nodes.numel() and not 0 <= int(nodes.min()) <= int(nodes.max()) < num_nodes:
        raise ValueError(f"nodes must hold ids from 0 to {num_nodes - 1}.")
    return nodes
