"""Boosting: gradient-boosted trees on features and the means of the neighbours' features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from evengraph.core.lazy import import_optional
from evengraph.core.task import Task, count_relations
from evengraph.core.threads import limited_pools
from evengraph.core.untrusted import MAX_HOPS
from evengraph.methods.bases.method import Method, check_limit
from evengraph.methods.bases.saving import checked
from evengraph.metrics.multiclass import validation_score
from evengraph.ops.context import PLACE_COLUMNS, label_columns, label_width, place_columns
from evengraph.ops.features import with_log_degree
from evengraph.ops.links import without_link_edges
from evengraph.ops.losses import inverse_class_weights
from evengraph.ops.sparse import neighbour_averages, weighted_adjacency
from evengraph.ops.trees import (
    Trees,
    check_trees,
    class_logits,
    coarsen,
    first_digits,
    separation,
    tree_values,
    trees_from_tables,
)

TableReader = Callable[[Tensor, Tensor], Tensor]  # some columns of the rows of some nodes
CHUNK = 20  # rounds that are trained between two validations
WIDTH = 1_000  # columns that are compared at a time

Engine = Literal["sklearn", "lightgbm"]
# What the rest reads of a node of scikit-learn. The value is that before shrinkage of inner nodes,
# after it of leaves; values up to the threshold go left.
NODE = np.dtype(
    {
        "names": ["value", "feature_idx", "num_threshold", "left", "right", "is_leaf"],
        "formats": ["f8", "i8", "f8", "i8", "i8", "u1"],
    }
)


@final
@dataclass(kw_only=True)
class Boosting(Method):
    """Gradient-boosted trees on a table of the nodes, a common first choice in practice.

    A node's row holds its features, the mean of its neighbours' features and, with two hops, the
    mean of the neighbours' means; in a graph with relations also the mean in each; its degree and
    what is known around it, if asked for. Each round adds one tree per class; the number of rounds
    is selected on the validation nodes. Trees are stored as tensors: a saved model holds no pickle,
    and only fitting needs the library that grows them.

    Args:
        leaves: Maximum number of leaves of a tree.
        smallest_leaf: Minimum number of labelled nodes in a leaf.
        hops: How far a row reaches: 0 is the node's own features, 1 adds the mean over neighbours,
            2 the mean over their means, and so on.
        degree: Add the logarithm of the node's degree to its features, and so the neighbours' mean
            of it; without hops it has no effect.
        columns: Columns to use of the node's features and of each mean: those that differ most
            between the classes of the training nodes (F statistic). 0 uses all.
        context: Add columns of the node's place in the graph (PageRank, clustering, spread of the
            neighbours' degrees) and of the known labels around it, in training never its own;
            without hops it has no effect.
        sample: Share of the columns, drawn at random, that each split chooses from.
        bins: Distinct values of a column that splits tell apart.
        stop_early: Select the number of rounds on validation; otherwise all are used.
        balance: Weight nodes by one over the size of their class.
        engine: The library that grows the trees. LightGBM is installed apart; what it has grown is
            stored and predicts as scikit-learn's trees do, without it.

    Cost:
        O(n F C) per round for n labelled nodes; O(E F) per hop for the means. Rows of a graph on
        disk that do not fit in memory are read in passes by LightGBM alone.

    Departs:
        An epoch is a round, `learning_rate` the shrinkage and `weight_decay` the L2 penalty on
        leaves. Seeds have no effect: draws are the same in every fit. On a graph that it was not
        tuned for, trees are smaller and leaves larger than by default.

    Reference:
        Ke, Meng, Finley, Wang, Chen, Ma, Ye and Liu, "LightGBM: A Highly Efficient Gradient
        Boosting Decision Tree", NeurIPS 2017; in scikit-learn's HistGradientBoostingClassifier.
    """

    _weighted_edges = True
    separate_relations = True
    search_space = {
        "learning_rate": (0.03, 0.1, 0.3),
        "weight_decay": (0.0, 1.0),
        "smallest_leaf": (1, 5),
        "balance": (False, True),
    }
    suits_heterophily = True
    _untuned_params = {"leaves": 15, "smallest_leaf": 10, "weight_decay": 1.0}
    portfolio = tuple(
        {
            **{"hops": hops, "degree": True, "columns": 50, "context": True, "sample": 0.2},
            **{"bins": 63, "stop_early": False, "max_epochs": 60, "learning_rate": 0.15},
        }
        for hops in (2, 0)
    )
    limits = {
        **{"leaves": 2, "smallest_leaf": 1, "hops": (0, MAX_HOPS), "columns": 0},
        **{"sample": "positive", "bins": (2, 255)},
    }

    learning_rate: float = 0.1
    max_epochs: int = 200
    patience: int = 50
    leaves: int = 31
    smallest_leaf: int = 1
    hops: int = 1
    degree: bool = False
    columns: int = 0
    context: bool = False
    sample: float = 1.0
    bins: int = 255
    stop_early: bool = True
    balance: bool = True
    engine: Engine = "sklearn"

    links_ = 0  # of the graph of training

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sample > 1:
            raise ValueError(f"sample must lie in (0, 1], got {self.sample}.")

    @property
    def uses_graph(self) -> bool:
        """Whether a row holds more than the node's own features."""
        return self.hops > 0

    @property
    def uses_labels(self) -> bool:
        """Whether a row holds columns of known labels."""
        return self.context and self.hops > 0

    @property
    def full_title(self) -> str:
        """The title, with the hops unless there is one and the engine unless it is the default."""
        reach = {0: " without the graph", 1: ""}.get(self.hops, f" over {self.hops} hops")
        return self.title + reach + ("" if self.engine == "sklearn" else f" ({self.engine})")

    @classmethod
    def current_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Replace `neighbours`, a flag of former versions, by `hops`; XGBoost is no engine now."""
        params = dict(params)
        if params.get("engine") == "xgboost":  # its trees are stored like any others
            params["engine"] = "lightgbm"
        if "neighbours" in params:
            params["hops"] = int(params.pop("neighbours"))
        return params

    def _fit(self, task: Task) -> None:
        self.links_ = int(task.graph.get("num_links", 0))
        graph = without_link_edges(task.graph)
        context = self._context(graph, learning=True)
        self.grow(task, partial(self._table, graph, context=context))

    def grow(self, task: Task, table: TableReader) -> None:
        """Grow trees on the rows and columns that a function reads."""
        columns = self._columns(task, table)
        self.select(columns, self._rounds(task, columns, table))

    def select(self, columns: Tensor, rounds: Iterator[tuple[Tensor, Tensor]]) -> None:
        """Grow trees on some columns, and select their number on validation."""
        self.trees_ = trees_from_tables([], self.device_)
        self.baseline_ = torch.zeros(self.outputs, dtype=torch.float64, device=self.device_)
        patience = self.patience if self.stop_early else self.max_epochs
        history = self._train_in_steps(rounds, patience)
        count = history.best_epoch if self.stop_early else self.max_epochs
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
        graph, width = task.graph, self._width(task.graph)
        every = torch.arange(self._parts(graph) * width, device=graph.x.device)
        others = torch.arange(self.context_width, device=graph.x.device) + every.numel()
        if not self.columns or self.columns >= width:
            return torch.cat([every, others])
        best = ratios(every).view(-1, width).argsort(dim=1, descending=True, stable=True)
        offsets = every[::width].unsqueeze(1)
        return torch.cat([(best[:, : self.columns] + offsets).flatten().sort().values, others])

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
        rows, rounds = x[task.train[nodes]], 0
        grow = grower(self.engine, rows, labels, weights, self.tree_params())
        chunk = CHUNK if self.stop_early else self.max_epochs
        while True:
            rounds = min(rounds + chunk, max(self.max_epochs, 1))
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
        shape = self.leaves, self.smallest_leaf, self.sample, self.bins
        return TreeParams(self.learning_rate, self.weight_decay, *shape)

    @property
    def outputs(self) -> int:
        """Trees per round; two classes share one."""
        return self.num_classes_ if self.num_classes_ > 2 else 1

    @property
    def context_width(self) -> int:
        """Columns beside features and means."""
        if not self.uses_labels:
            return 0
        return PLACE_COLUMNS + label_width(self.num_classes_, self.links_)

    def _context(self, graph: Data, *, learning: bool = False) -> Tensor:
        """Columns of a node's place and of the labels around it; to learn from, without its own."""
        if not self.context_width:
            return torch.empty(graph.num_nodes, 0, device=graph.x.device)
        known, sizes = self._known_labels(graph), (self.num_classes_, self.links_)
        found = label_columns(graph, *known, *sizes, held_out=learning)
        return torch.cat([place_columns(graph), found], dim=1)

    def _logits(self, graph: Data) -> Tensor:
        nodes, graph = torch.arange(graph.num_nodes).to(graph.x.device), without_link_edges(graph)
        return self.tree_logits(lambda columns: self._table(graph, nodes, columns))

    def tree_logits(self, read: Callable[[Tensor], Tensor]) -> Tensor:
        """Logits of rows, of which a function reads the columns in use."""
        columns, features = self.trees_.feature.unique(return_inverse=True)
        table = read(columns)
        values = tree_values(self.trees_._replace(feature=features), table)
        rounds = values.unflatten(1, (-1, self.outputs)).sum(1) if values.shape[1] else 0.0
        sums = self.baseline_.expand(len(table), -1) + rounds
        return class_logits(sums).float()

    def _width(self, graph: Data) -> int:
        """Columns per part."""
        return int(graph.num_features) + bool(self.degree and self.hops)

    def _parts(self, graph: Data) -> int:
        """Parts of a row: the node's features, a mean per hop and a mean per relation."""
        return 1 + self.hops + (count_relations(graph) if self.hops else 0)

    def _table(
        self,
        graph: Data,
        nodes: Tensor,
        columns: Tensor | None = None,
        context: Tensor | None = None,
    ) -> Tensor:
        """Rows of some nodes, all columns or some, rounded."""
        return first_digits(self._unrounded(graph, nodes, columns, context))

    def _unrounded(
        self,
        graph: Data,
        nodes: Tensor,
        columns: Tensor | None = None,
        context: Tensor | None = None,
    ) -> Tensor:
        """Features, means over neighbours and context of some nodes, all columns or some."""
        x, width, count = graph.x.float(), self._width(graph), self._parts(graph)
        if columns is None:
            columns = torch.arange(count * width + self.context_width, device=x.device)
        others = columns[columns >= count * width] - count * width
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
        if others.numel():
            context = self._context(graph) if context is None else context
            parts.append(context[nodes][:, others])
        return torch.cat(parts, dim=1)

    def _state(self) -> dict[str, Tensor]:
        trees = {f"trees.{name}": part for name, part in self.trees_._asdict().items()}
        return trees | {"baseline": self.baseline_}

    def _details(self) -> dict[str, Any]:
        return {"links": self.links_} if self.links_ else {}

    def _load_state(self, state: Mapping[str, Tensor]) -> None:
        check_limit("links", self.details_.get("links", 0), (0, MAX_HOPS), whole=True)
        self.links_ = self.details_.get("links", 0)
        self.trees_ = Trees(*(state[f"trees.{name}"] for name in Trees._fields))
        parts = 1 + self.hops + (self.num_relations_ if self.hops else 0)
        width = self.num_features_ + bool(self.degree and self.hops)
        check_trees(self.trees_, parts * width + self.context_width)
        self.baseline_ = checked(state, "baseline", 1)


# Libraries that grow trees. Both give node tables in the form of scikit-learn, so that what is
# stored and evaluated does not depend on the library.


class TreeParams(NamedTuple):
    """What the trees may be like; the names are those of `Boosting`."""

    learning_rate: float
    weight_decay: float
    leaves: int
    smallest_leaf: int
    sample: float = 1.0
    bins: int = 255


class Grown(NamedTuple):
    """Trees, the logits before any, and the losses from there on if a first one asks for them."""

    tables: list[Any]  # nodes, round by round and class by class
    baseline: NDArray[np.float64]
    losses: list[float]


def grower(
    engine: Engine, x: Tensor, labels: Tensor, weights: Tensor, params: TreeParams
) -> Callable[[int], Grown]:
    """A function that takes a number of rounds, larger each time, and returns all trees so far."""
    y, w = labels.cpu().numpy(), weights.cpu().numpy()
    if engine == "sklearn":
        # scikit-learn takes minutes to bin weighted rows with many distinct values
        return _sklearn(coarsen(x, params.bins).double().cpu().numpy(), y, w, params)
    library, baseline = import_optional("lightgbm", "lightgbm"), start_logits(y, w)
    start, grown = np.tile(baseline, (len(y), 1)), Grown([], baseline, [])
    settings = lightgbm_settings(params, baseline)
    start = start.squeeze(1 if baseline.size == 1 else ())
    data = library.Dataset(x.cpu().numpy(), y, weight=w, init_score=start, params=settings)
    return partial(grow_lightgbm, library.Booster(settings, data), params, grown)


def _sklearn(x: Any, y: Any, weights: Any, params: TreeParams) -> Callable[[int], Grown]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        learning_rate=params.learning_rate,
        l2_regularization=params.weight_decay,
        max_leaf_nodes=params.leaves,
        max_bins=params.bins,
        min_samples_leaf=params.smallest_leaf,
        max_features=params.sample,
        early_stopping=False,
        warm_start=True,
        random_state=0,
    )

    def grow(rounds: int) -> Grown:
        model.set_params(max_iter=rounds)
        with limited_pools():
            model.fit(x, y, sample_weight=weights)
        tables = [tree.nodes for trees in model._predictors for tree in trees]
        return Grown(tables, model._baseline_prediction.flatten(), [])

    return grow


def lightgbm_settings(params: TreeParams, baseline: NDArray[np.float64]) -> dict[str, Any]:
    """Parameters of LightGBM, for its data set and its trees."""
    many = {"objective": "multiclass", "num_class": baseline.size}
    return {
        **({"objective": "binary"} if baseline.size == 1 else many),
        "learning_rate": params.learning_rate,
        "lambda_l2": params.weight_decay,
        "num_leaves": params.leaves,
        "min_data_in_leaf": params.smallest_leaf,
        "feature_fraction_bynode": params.sample,
        "max_bin": params.bins,
        "min_data_in_bin": 1,
        "feature_pre_filter": False,
        "boost_from_average": False,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": torch.get_num_threads(),
        "verbosity": -1,
    }


def grow_lightgbm(model: Any, params: TreeParams, grown: Grown, rounds: int) -> Grown:
    """Add trees to a booster of LightGBM until there are so many rounds, in place."""
    tables, outputs = grown.tables, grown.baseline.size
    before = len(tables) // outputs
    for _ in range(rounds - before):
        model.update()
        if grown.losses:
            grown.losses.append(float(model.eval_train()[0][2]))
    trees = model.dump_model(start_iteration=before)["tree_info"]
    tables.extend(lightgbm_table(tree["tree_structure"], params) for tree in trees)
    nothing = np.array([(0.0, 0, 0.0, 0, 0, 1)], NODE)  # where nothing is left to split
    tables.extend([nothing] * (rounds * outputs - len(tables)))
    return grown


def start_logits(y: Any, weights: Any) -> NDArray[np.float64]:
    """Logits by the classes' shares of the weight; two classes have one, for the second."""
    logs: NDArray[np.float64] = np.log(np.bincount(y, weights) / weights.sum())
    return logs - logs.mean() if logs.size > 2 else logs[1:] - logs[:1]


def start_loss(y: Any, weights: Any, baseline: NDArray[np.float64]) -> float:
    """The weighted mean of the cross-entropy before any tree."""
    logits = baseline if baseline.size > 1 else np.append(0.0, baseline)
    shares = np.bincount(y, weights) / weights.sum()
    return float(np.log(np.exp(logits).sum()) - shares @ logits)


def lightgbm_table(root: dict[str, Any], params: TreeParams) -> NDArray[Any]:
    """The nodes of a tree that LightGBM dumped; values of its inner nodes are also shrunk."""
    nodes, rows = [root], list[tuple[float, int, float, int, int, int]]()
    while len(rows) < len(nodes):
        node = nodes[len(rows)]
        if "split_index" not in node:
            rows.append((node["leaf_value"], 0, 0.0, 0, 0, 1))
            continue
        value = node["internal_value"] / params.learning_rate
        left = len(nodes)
        rows.append((value, node["split_feature"], node["threshold"], left, left + 1, 0))
        nodes += [node["left_child"], node["right_child"]]
    return np.array(rows, NODE)
