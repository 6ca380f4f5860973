"""NodeClassifier: a method as a scikit-learn classifier, whose rows are the nodes of one graph."""

from __future__ import annotations

from copy import copy
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import average_precision_score, balanced_accuracy_score
from torch_geometric.data import Data

from evengraph.core.task import HELD_OUT, Task, hold_out
from evengraph.methods import DEFAULT_METHOD, Method, new_method
from evengraph.metrics.binary import positive_class


@final
class NodeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A method as a scikit-learn classifier, for `GridSearchCV` and `cross_val_score`.

    X holds the indices of nodes and y their labels. Fitting sees features and edges of the whole
    graph and the labels of the nodes in X alone, so a fold is scored on nodes whose labels were
    hidden. Their features and edges were not: scores are for nodes of this graph. A fifth of X is
    held out for early stopping.

    Args:
        graph: Features and edges; its labels and masks are ignored. Clones share it.
        method: A name in `METHODS`, or a method; its parameters are `method__alpha` and so on.
        random_state: Seed of the held-out nodes and of everything random in training.

    Attributes after fitting:
        classes_: The labels in y, sorted; the columns of `predict_proba`.
        method_: The fitted method.
    """

    def __init__(
        self, graph: Data, method: str | Method = DEFAULT_METHOD, *, random_state: int = 0
    ) -> None:
        self.graph = graph
        self.method = method
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train on some nodes.

        Shapes:
            X: int, (n,) or (n, 1); y: (n,)
        """
        nodes = self._nodes(X)
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        labels = torch.full((self.graph.num_nodes,), -1)
        labels[nodes] = torch.from_numpy(codes).long()
        graph = copy(self.graph)
        graph.y = labels.to(graph.x.device)
        known = graph.y >= 0
        val = hold_out(graph.y, known, HELD_OUT, self.random_state)
        none = torch.zeros_like(known)
        task = Task(graph, known & ~val, val, none, len(self.classes_))
        method = new_method(self.method, self.graph)
        self.method_ = method.fit(task, seed=self.random_state, progress=False)
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[Any]:
        """Class probabilities of some nodes, (n, C), in the order of `classes_`."""
        if not hasattr(self, "method_"):
            raise RuntimeError("This NodeClassifier is not fitted yet; call fit first.")
        probabilities = self.method_.predict_proba(self.graph)[self._nodes(X)]
        values: NDArray[Any] = probabilities.cpu().numpy()
        return values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of some nodes, (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Balanced accuracy on some nodes."""
        predicted = self.predict(X)
        return float(balanced_accuracy_score(y, predicted, sample_weight=sample_weight))

    @staticmethod
    def rare_average_precision(model: NodeClassifier, X: ArrayLike, y: ArrayLike) -> float:
        """Average precision of the rarer of two classes, for `scoring`.

        The name `average_precision` stands for the class 1 in scikit-learn, also if 0 is rarer.
        """
        rare = model.classes_[positive_class(torch.bincount(model.method_.labelled_.labels))]
        chance = model.predict_proba(X)[:, model.classes_ == rare][:, 0]
        return float(average_precision_score(np.asarray(y) == rare, chance))

    def __sklearn_clone__(self) -> NodeClassifier:
        method = self.method if isinstance(self.method, str) else clone(self.method)
        return NodeClassifier(self.graph, method, random_state=self.random_state)

    def _nodes(self, X: ArrayLike) -> torch.Tensor:
        """Node indices of the rows of X, (n,)."""
        nodes = np.asarray(X)
        if nodes.ndim == 2 and nodes.shape[1] == 1:
            nodes = nodes[:, 0]
        if nodes.ndim != 1 or not np.issubdtype(nodes.dtype, np.integer):
            raise ValueError("X must hold the indices of nodes, one integer per row.")
        count = int(self.graph.num_nodes)
        if nodes.size and not 0 <= nodes.min() <= nodes.max() < count:
            raise ValueError(f"X must hold indices from 0 to {count - 1}.")
        return torch.from_numpy(nodes.astype(np.int64))
