"""Boosting: gradient-boosted trees on features and the means of the neighbours' features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.core.untrusted import MAX_HOPS
from evengraph.methods.bases.method import Method
from evengraph.methods.bases.saving import checked
from evengraph.methods.bases.tree_engines import Engine, TreeParams, grower
from evengraph.metrics.multiclass import validation_score
from evengraph.ops.features import with_log_degree
from evengraph.ops.losses import inverse_class_weights
from evengraph.ops.sparse import neighbour_averages, weighted_adjacency
from evengraph.ops.trees import (
    Trees,
    check_trees,
    class_logits,
    first_digits,
    separation,
    tree_values,
    trees_from_tables,
)

TableReader = Callable[[Tensor, Tensor], Tensor]
"""Returns some columns of the rows of some nodes."""

CHUNK = 20  # rounds that are trained between two validations
WIDTH = 1_000  # columns that are compared at a time


@final
@dataclass(kw_only=True)
class Boosting(Method):
    """Gradient-boosted trees on a table of the nodes, a common first choice in practice.

    A node's row holds its features, the mean of its neighbours' features and, with two hops, the
    mean of the neighbours' means; in a graph with relations also the mean in each; its degree, if
    asked for. Each round adds one tree per class; the number of rounds is selected on the
    validation nodes. Trees are stored as tensors: a saved model holds no pickle, and only fitting
    needs the library that grows them.

    Args:
        leaves: Maximum number of leaves of a tree.
        smallest_leaf: Minimum number of labelled nodes in a leaf.
        hops: How far a row reaches: 0 is the node's own features, 1 adds the mean over neighbours,
            2 the mean over their means, and so on.
        degree: Add the logarithm of the node's degree to its features, and so the neighbours' mean
            of it; without hops it has no effect.
        columns: Columns to use of the node's features and of each mean: those that differ most
            between the classes of the training nodes (F statistic). 0 uses all.
        balance: Weight nodes by one over the size of their class.
        engine: The library that grows the trees. LightGBM and XGBoost are installed apart; what
            they have grown is stored and predicts as scikit-learn's trees do, without them.

    Cost:
        O(n F C) per round for n labelled nodes; O(E F) per hop for the means. Rows of a graph on
        disk that do not fit in memory are read in passes by LightGBM alone.

    Departs:
        An epoch is a round, `learning_rate` the shrinkage and `weight_decay` the L2 penalty on
        leaves. Nothing is random: seeds have no effect. On a graph that it was not tuned for, trees
        are smaller and leaves larger than by default. XGBoost has no smallest leaf: it adds up how
        undecided the nodes of a leaf are, 1/4 for a node between two classes.

    Reference:
        Ke, Meng, Finley, Wang, Chen, Ma, Ye and Liu, "LightGBM: A Highly Efficient Gradient
        Boosting Decision Tree", NeurIPS 2017; in scikit-learn's HistGradientBoostingClassifier.
    """

    stores_dense = True
    weighted_edges = True
    separate_relations = True
    search_space = {
        "learning_rate": (0.03, 0.1, 0.3),
        "weight_decay": (0.0, 1.0),
        "smallest_leaf": (1, 5),
        "balance": (False, True),
    }
    other_names = (
        "xgb",
        "xgboost",
        "lightgbm",
        "lgbm",
        "catboost",
        "gbdt",
        "trees",
        "randomforest",
    )
    suits_heterophily = True
    untuned_params = {"leaves": 15, "smallest_leaf": 10, "weight_decay": 1.0}
    portfolio = tuple(
        {"hops": hops, "degree": True, "columns": 200, "max_epochs": 100, "patience": 20}
        for hops in (2, 0)
    )
    limits = {"leaves": 2, "smallest_leaf": 1, "hops": (0, MAX_HOPS), "columns": 0}

    learning_rate: float = 0.1
    max_epochs: int = 200
    patience: int = 50
    leaves: int = 31
    smallest_leaf: int = 1
    hops: int = 1
    degree: bool = False
    columns: int = 0
    balance: bool = True
    engine: Engine = "sklearn"

    @property
    def uses_graph(self) -> bool:
        """Whether a row holds more than the node's own features."""
        return self.hops > 0

    @property
    def full_title(self) -> str:
        """The title, with the hops unless there is one and the engine unless it is the default."""
        reach = {0: " without the graph", 1: ""}.get(self.hops, f" over {self.hops} hops")
        return self.title + reach + ("" if self.engine == "sklearn" else f" ({self.engine})")

    @classmethod
    def current_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Replace `neighbours`, a flag of former versions, by `hops`."""
        params = {"columns": 0, "degree": False, "engine": "sklearn", **params}
        if "neighbours" in params:
            params["hops"] = int(params.pop("neighbours"))
        return params

    def _fit(self, task: Task) -> None:
        self.grow(task, partial(self._table, task.graph))

    def grow(self, task: Task, table: TableReader) -> None:
        """Grow trees on the rows and columns that a function reads."""
        columns = self._columns(task, table)
        self.select(columns, self._rounds(task, columns, table))

    def select(self, columns: Tensor, rounds: Iterator[tuple[Tensor, Tensor]]) -> None:
        """Grow trees on some columns, and select their number on validation."""
        self.trees_ = trees_from_tables([], self.device_)
        self.baseline_ = torch.zeros(self.outputs, dtype=torch.float64, device=self.device_)
        history = self._train_in_steps(rounds)
        count = history.best_epoch
        if history.interrupted and not count:  # those that are trained are better than none
            count = self.trees_.roots.numel() // self.outputs
        trees = self.trees_.first(count * self.outputs)
        self.trees_ = trees._replace(feature=columns[trees.feature])

    def _columns(self, task: Task, table: TableReader) -> Tensor:
        """Indices of the columns to use, ascending, (K,)."""
        nodes, labels = task.train_nodes, task.graph.y[task.train_nodes]

        def ratios(every: Tensor) -> Tensor:
            parts = (table(nodes, some) for some in every.split(WIDTH))
            return torch.cat([separation(part, labels, task.num_classes) for part in parts])

        return self.best_columns(task, ratios)

    def best_columns(self, task: Task, ratios: Callable[[Tensor], Tensor]) -> Tensor:
        """Of each part, the columns with the largest ratio of all that a function returns."""
        graph, width = task.graph, self._width
        every = torch.arange(self._parts * width, device=graph.x.device)
        if not self.columns or self.columns >= width:
            return every
        best = ratios(every).view(-1, width).argsort(dim=1, descending=True, stable=True)
        offsets = every[::width].unsqueeze(1)
        return (best[:, : self.columns] + offsets).flatten().sort().values

    def node_weights(self, task: Task) -> Tensor:
        """The weight of each training node, 1 on average."""
        labels = task.graph.y[task.train]
        weights = inverse_class_weights(task.class_counts, torch.float64)[labels]
        return weights / weights.mean() if self.balance else torch.ones_like(weights)

    def _rounds(
        self, task: Task, columns: Tensor, table: TableReader
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Loss and score before any tree, after one round, after two and so on."""
        graph, nodes = task.graph, (task.train | task.val).nonzero().squeeze(1)
        x, labels, weights = table(nodes, columns), graph.y[task.train], self.node_weights(task)
        logits = torch.zeros(graph.num_nodes, task.num_classes, device=x.device).double()
        grow, rounds = (
            grower(self.engine, x[task.train[nodes]], labels, weights, self.tree_params()),
            0,
        )
        while True:
            rounds = min(rounds + CHUNK, max(self.max_epochs, 1))
            tables, baseline, _ = grow(rounds)
            before = self.trees_.roots.numel()
            self.trees_ = trees_from_tables(tables, x.device)
            self.baseline_ = torch.from_numpy(baseline).to(x.device)
            values = tree_values(self.trees_, x).unflatten(1, (rounds, self.outputs))
            sums = self.baseline_ + torch.cat([0 * values[:, :1], values], dim=1).cumsum(1)
            for stage in range(before // self.outputs + bool(before), rounds + 1):
                logits[nodes] = class_logits(sums[:, stage])
                losses = cross_entropy(logits[task.train], labels, reduction="none")
                yield (weights * losses).mean(), validation_score(logits, task)
            if rounds >= self.max_epochs:
                return

    def tree_params(self) -> TreeParams:
        """What the trees may be like."""
        return TreeParams(self.learning_rate, self.weight_decay, self.leaves, self.smallest_leaf)

    @property
    def outputs(self) -> int:
        """Trees per round; two classes share one."""
        return self.num_classes_ if self.num_classes_ > 2 else 1

    def _logits(self, graph: Data) -> Tensor:
        nodes = torch.arange(graph.num_nodes, device=graph.x.device)
        return self.tree_logits(lambda columns: self._table(graph, nodes, columns))

    def tree_logits(self, read: Callable[[Tensor], Tensor]) -> Tensor:
        """Logits of rows, of which a function reads the columns in use."""
        columns, features = self.trees_.feature.unique(return_inverse=True)
        table = read(columns)
        values = tree_values(self.trees_._replace(feature=features), table)
        rounds = values.unflatten(1, (-1, self.outputs)).sum(1) if values.shape[1] else 0.0
        sums = self.baseline_.expand(len(table), -1) + rounds
        return class_logits(sums).float()

    @property
    def _width(self) -> int:
        """Columns per part."""
        return self.num_features_ + bool(self.degree and self.hops)

    @property
    def _parts(self) -> int:
        """Parts of a row: the node's features, a mean per hop and a mean per relation."""
        return 1 + self.hops + (self.num_relations_ if self.hops else 0)

    def _table(self, graph: Data, nodes: Tensor, columns: Tensor | None = None) -> Tensor:
        """Features and means over neighbours of some nodes, all columns or some, rounded."""
        return first_digits(self._values(graph, nodes, columns))

    def _values(self, graph: Data, nodes: Tensor, columns: Tensor | None = None) -> Tensor:
        """Features and means over neighbours of some nodes, all columns or some."""
        x, width = graph.x.float(), self._width
        if columns is None:
            columns = torch.arange(self._parts * width, device=x.device)
        count = self._parts
        own, *means = (columns[columns // width == part] % width for part in range(count))
        matrix = weighted_adjacency(graph) if self.hops else None
        if matrix is not None and self.degree:
            x = with_log_degree(x, matrix)
        parts = [x[nodes][:, own]]
        if any(part.numel() for part in means):
            averages = neighbour_averages(graph, self.hops, torch.float64, matrix)
            for some, (mean, steps) in zip(means, averages, strict=True):
                values = x[:, some].double()
                for _ in range(steps - 1):
                    values = mean @ values
                parts.append((mean.rows(nodes) @ values).float())
        return torch.cat(parts, dim=1)

    def _state(self) -> dict[str, Tensor]:
        trees = {f"trees.{name}": part for name, part in self.trees_._asdict().items()}
        return trees | {"baseline": self.baseline_}

    def _load_state(self, state: Mapping[str, Tensor]) -> None:
        self.trees_ = Trees(*(state[f"trees.{name}"] for name in Trees._fields))
        check_trees(self.trees_, self._parts * self._width)
        self.baseline_ = checked(state, "baseline", 1)
