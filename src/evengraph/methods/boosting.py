"""Boosting: gradient-boosted trees on features and the mean of the neighbours' features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.method import Method
from evengraph.metrics import validation_score
from evengraph.nn.tracing import Contributions
from evengraph.ops import Sparse, inverse_class_weights, undirected_adjacency
from evengraph.ops.trees import Trees, coarsen, tree_values, trees_from_sklearn

CHUNK = 20  # rounds between two looks at the validation nodes
BINS = 255  # distinct values of a column; to find them by weighted rows takes scikit-learn minutes
DIGITS = 16  # binary ones of a feature that count: sums in another order end in others


@final
@dataclass(kw_only=True)
class Boosting(Method):
    """Gradient-boosted trees on a table of the nodes, a common first choice in practice.

    A node's row holds its features and the mean of its neighbours' features. Each round adds a
    tree for every class; the number of rounds is chosen on the validation nodes, as epochs are.
    Trees are stored as plain numbers, so that a saved model holds no pickle and predicts without
    scikit-learn, which only fitting needs.

    Args:
        leaves: Leaves of a tree at most.
        smallest_leaf: Labelled nodes in a leaf at least.
        neighbours: Whether a row holds the mean of the neighbours' features, too.
        balance: Weigh nodes by one over the size of their class.

    Cost:
        O(n F C) a round for n labelled nodes; O(E F) for the means.

    Departs:
        An epoch is a round, `learning_rate` the shrinkage and `weight_decay` the penalty on leaves.
        Nothing is random, so seeds change nothing; `explain` is not possible, as trees have no
        gradient.

    Reference:
        Ke, Meng, Finley, Wang, Chen, Ma, Ye and Liu, "LightGBM: A Highly Efficient Gradient
        Boosting Decision Tree", NeurIPS 2017; in scikit-learn's HistGradientBoostingClassifier.
    """

    title = "Boosting"
    search_space = {
        "learning_rate": (0.03, 0.1, 0.3),
        "weight_decay": (0.0, 1.0),
        "smallest_leaf": (1, 5),
        "balance": (False, True),
    }
    suits_heterophily = True
    limits = {"leaves": 2, "smallest_leaf": 1}

    learning_rate: float = 0.1
    max_epochs: int = 200
    patience: int = 50
    leaves: int = 31
    smallest_leaf: int = 1
    neighbours: bool = True
    balance: bool = True

    def _fit(self, task: Task) -> None:
        self.trees_ = trees_from_sklearn([], task.graph.x.device)
        self.baseline_ = torch.zeros(self._outputs, dtype=torch.float64, device=self.device_)
        history = self._train_in_steps(self._rounds(task))
        self.trees_ = self.trees_.first(history.best_epoch * self._outputs)

    def _rounds(self, task: Task) -> Iterator[tuple[Tensor, Tensor]]:
        """Loss and score before any tree, after one round, after two and so on."""
        graph, seen = task.graph, (task.train | task.val).nonzero().squeeze(1)
        x, learnt = self._table(graph, seen), task.train[seen]
        labels = graph.y[task.train]
        weights = inverse_class_weights(task.class_counts, torch.float64)[labels]
        weights = weights / weights.mean() if self.balance else torch.ones_like(weights)
        logits = torch.zeros(graph.num_nodes, task.num_classes, device=x.device).double()
        table = coarsen(x[learnt], BINS).double().cpu().numpy()
        model, rounds = self._model(), 0
        while True:
            rounds = min(rounds + CHUNK, max(self.max_epochs, 1))
            model.set_params(max_iter=rounds)
            model.fit(table, labels.cpu().numpy(), sample_weight=weights.cpu().numpy())
            tables = [tree.nodes for trees in model._predictors for tree in trees]
            before = self.trees_.roots.numel()
            self.trees_ = trees_from_sklearn(tables, x.device)
            self.baseline_ = torch.from_numpy(model._baseline_prediction).to(x.device).flatten()
            said = tree_values(self.trees_, x).unflatten(1, (rounds, self._outputs))
            sums = self.baseline_ + torch.cat([0 * said[:, :1], said], dim=1).cumsum(1)
            for stage in range(before // self._outputs + bool(before), rounds + 1):
                logits[seen] = _logits_of(sums[:, stage])
                losses = cross_entropy(logits[task.train], labels, reduction="none")
                yield (weights * losses).mean(), validation_score(logits, task)
            if rounds >= self.max_epochs:
                return

    def _model(self) -> Any:
        try:
            from sklearn.ensemble import HistGradientBoostingClassifier
        except ImportError:
            raise ValueError(
                "scikit-learn is not installed; try: pip install 'evengraph[tables]'."
            ) from None
        return HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            l2_regularization=self.weight_decay,
            max_leaf_nodes=self.leaves,
            max_bins=BINS,
            min_samples_leaf=self.smallest_leaf,
            early_stopping=False,
            warm_start=True,
            random_state=0,
        )

    @property
    def _outputs(self) -> int:
        """Trees of a round: two classes share one."""
        return self.num_classes_ if self.num_classes_ > 2 else 1

    def _logits(self, graph: Data) -> Tensor:
        used, places = self.trees_.feature.unique(return_inverse=True)
        trees = self.trees_._replace(feature=places)
        every = torch.arange(graph.num_nodes, device=graph.x.device)
        said = tree_values(trees, self._table(graph, every, used))
        rounds = said.unflatten(1, (-1, self._outputs)).sum(1) if said.shape[1] else 0.0
        sums = self.baseline_.expand(graph.num_nodes, -1) + rounds
        return _logits_of(sums).float()

    def _table(self, graph: Data, nodes: Tensor, columns: Tensor | None = None) -> Tensor:
        """Rows of some nodes: features, then means over neighbours, or some columns of both."""
        x = graph.x.float()
        if columns is None:
            columns = torch.arange((1 + self.neighbours) * x.shape[1], device=x.device)
        own, theirs = (columns[columns < x.shape[1]], columns[columns >= x.shape[1]] - x.shape[1])
        parts = [x[nodes][:, own]]
        if theirs.numel():
            matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
            degrees = matrix.getnnz(axis=1).clip(min=1)  # nobody around: zeros
            means = Sparse.from_scipy(sp.diags(1 / degrees) @ matrix, x.device, torch.float64)
            parts.append((means.rows(nodes) @ x[:, theirs].double()).float())
        mantissa, exponent = torch.frexp(torch.cat(parts, dim=1))
        return torch.ldexp((mantissa * 2**DIGITS).round(), exponent - DIGITS)

    def contributions(self, graph: Data, node: int, direction: Tensor) -> Contributions:
        """Not possible: trees have no gradient."""
        raise ValueError("Boosting cannot be explained: trees have no gradient.")

    def _state(self) -> dict[str, Tensor]:
        trees = {f"trees.{name}": part for name, part in self.trees_._asdict().items()}
        return trees | {"baseline": self.baseline_}

    def _load_state(self, kept: Mapping[str, Tensor]) -> None:
        self.trees_ = Trees(*(kept[f"trees.{name}"] for name in Trees._fields))
        self.baseline_ = kept["baseline"]


def _logits_of(sums: Tensor) -> Tensor:
    """Logits of all classes; two share one sum, which is that of the second.

    Shapes:
        sums: (N, C), or (N, 1) for two classes
        returns: (N, C)
    """
    if sums.shape[1] > 1:
        return sums
    return torch.cat([torch.zeros_like(sums), sums], dim=1)
