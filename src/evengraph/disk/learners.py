"""How methods learn from rows of tables on disk, and predict them: an adapter for each.

What a method does once its features are propagated needs the rows of nodes and no edges. Networks
draw rows from shards, LightGBM reads them in passes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy, pad
from torch_geometric.data import Data

from evengraph.core.lazy import import_optional
from evengraph.core.task import Task
from evengraph.disk.propagation import (
    RowBlocks,
    Walk,
    Workspace,
    block_rows,
    degree_table,
    view_tables,
)
from evengraph.disk.tables import DerivedTable, JoinedTable, Table
from evengraph.methods import MLP, Auto, Boosting, IceBerg, Method, Unison
from evengraph.methods.auto import portfolio
from evengraph.methods.bases.network import above_mean, double_balancing_epoch, pseudo_label_loss
from evengraph.methods.boosting import (
    CHUNK,
    Grown,
    grow_lightgbm,
    lightgbm_settings,
    start_logits,
    start_loss,
)
from evengraph.methods.unison import LABELLED, vote_logits
from evengraph.metrics.multiclass import rare_class, score_validation_rows
from evengraph.nn.members import HOPS, ego_share
from evengraph.nn.networks import GraphNetwork, Inputs, PlainNetwork
from evengraph.ops.losses import labelled_loss
from evengraph.ops.sparse import Sparse, sparsify
from evengraph.ops.synthesis import Propagation
from evengraph.ops.trees import (
    class_logits,
    first_digits,
    separation_in_passes,
    tree_values,
    trees_from_tables,
)
from evengraph.training.ranks import (
    MemoryRows,
    Part,
    Ranks,
    RowSupply,
    Shard,
    draw,
    validation_scores,
)

FULL = 2**16  # rows up to which an epoch sees all of them
BATCH = 2**13  # labelled rows, and others, in an epoch on more
Chooser = Auto  # which fits others
NO_EDGES = sp.csr_matrix((0, 0))  # a loss on rows does not use them
Rows = Mapping[str, Tensor]  # of some nodes by the name of their table, (n, width) each
M = TypeVar("M", bound=Method)
SAMPLE = 200_000  # rows that bins are computed from, as by LightGBM itself
SMALLEST = 2**10  # rows, however little memory there is
SAMPLE_SHARE = 8  # of the memory are in this sample, in double precision
TRAINING_SHARE, VALIDATION_SHARE = 2, 4  # of the memory are in what is stored per row
SUMS_SHARE = 8  # of the memory are in what rounds add to the validation rows
NODE_BYTES = 60  # of a labelled node: its number, label, weight and signature


class Learner(ABC, Generic[M]):
    """A method on a graph on disk."""

    def __init__(self, method: M, space: Workspace) -> None:
        self.method, self.space = method, space

    def row_width(self, num_features: int) -> int:
        """Numbers in a row of all tables together, or a few more."""
        return num_features

    @abstractmethod
    def tables(self, x: Table) -> dict[str, Table]:
        """The tables of the graph, by name, to predict it."""

    def fit_tables(self, x: Table) -> dict[str, Table]:
        """The tables to learn from; what comes before training is fitted to them in passes."""
        return self.tables(x)

    @abstractmethod
    def fit_rows(self, task: Task, rows: Rows) -> None:
        """Train on rows of this process, in memory; the graph of the task has labels alone."""

    @abstractmethod
    def row_logits(self, rows: Rows) -> Tensor:
        """Logits of rows, (n, C)."""


class NetworkLearner(Learner[M]):
    """A network that learns from more rows than fit in memory, and draws some in each epoch."""

    networks: int = 1  # that predict every validation node

    def drawn_per_epoch(self) -> tuple[int, int]:
        """Labelled rows, and others, that an epoch draws."""
        return BATCH, 0

    def stacked(self, rows: Rows) -> Tensor:
        """Rows of the tables as the input of the network, (..., n, width)."""
        (only,) = rows.values()
        return only

    @abstractmethod
    def fit_supply(self, supply: RowSupply) -> None:
        """Train on rows that are in memory some at a time; several processes share them."""

    def fit_rows(self, task: Task, rows: Rows) -> None:
        """Train on drawn rows, or as in memory if an epoch sees all of them."""
        x = self.stacked(rows)
        if self.space.ranks.is_alone and len(task.train) <= FULL:
            self.fit_all(task, x)
        else:
            self.fit_supply(MemoryRows(task, x, self.space.ranks))

    def fit_all(self, task: Task, x: Tensor) -> None:
        self.fit_supply(MemoryRows(task, x))

    def _train(
        self,
        supply: RowSupply,
        links: Callable[[int], Propagation],
        on_labels: Callable[[Tensor, Tensor], Tensor],
        pseudo_weight: float = 0.0,
    ) -> None:
        method = self.method
        method.net_ = net = method._new_network().to(supply.device)
        method._train(net, RowEpoch(net, supply, links, on_labels, pseudo_weight))
        net.to(method.device_)


@dataclass(eq=False)
class RowEpoch:
    """An epoch on drawn rows, or on all of few; the score is that of all validation rows.

    Of several processes each gets a share of the loss. `links` gives the identity matrix of a size,
    for layers that have the form of a convolution; a `pseudo_weight` of 0 draws labelled rows only.
    """

    net: GraphNetwork | PlainNetwork
    supply: RowSupply
    links: Callable[[int], Propagation]
    on_labels: Callable[[Tensor, Tensor], Tensor]
    pseudo_weight: float = 0.0

    def __post_init__(self) -> None:
        self.rare = rare_class(self.supply.task)
        # what a checkpoint stores beside the weights
        self.state_dict = self.supply.state_dict
        self.load_state_dict = self.supply.load_state_dict

    def __call__(self) -> tuple[Tensor, Tensor]:
        net, ranks, shard = self.net, self.supply.ranks, self.supply.advance()
        part, known, labelled, others = _batch(shard, ranks, with_others=self.pseudo_weight > 0)
        matrix = self.links(len(part.rows))
        first = net.encoder(shard.rows[part.rows], matrix)
        logits = net.classify(first, matrix, dropout=True, share=part.share)
        labels = shard.labels[part.nodes[known]]
        if len(labels):
            loss = self.on_labels(labels, logits[known]) * (len(labels) / labelled)
        else:  # other processes have them
            loss = 0 * logits[known].sum()
        with torch.no_grad():  # of all validation rows, in a pass
            blocks = self.supply.validation()
            pairs = [(net(rows, self.links(len(rows))), known) for rows, known in blocks]
            every, truth = (torch.cat(part) for part in zip(*pairs, strict=True))
            score = validation_scores(every.unsqueeze(0), truth, self.rare, ranks)[0]
        if self.pseudo_weight and others:
            with torch.no_grad():
                clean = net.classify(first, matrix)[~known]
            confidence, predicted = clean.softmax(1).max(1)
            selected = above_mean(confidence, ranks, others)
            pseudo = pseudo_label_loss(logits[~known], predicted, selected, ranks)
            loss = loss + self.pseudo_weight * pseudo
        return loss, score


def _batch(shard: Shard, ranks: Ranks, *, with_others: bool) -> tuple[Part, Tensor, int, int]:
    """The rows of an epoch: all of few, else some.

    Those of this process, which of them are labelled; and how many labelled ones and others all
    processes have.
    """
    if len(shard.labels) <= FULL:
        part = ranks.part(torch.arange(len(shard.labels), device=shard.labels.device))
        train = torch.zeros(len(shard.labels), dtype=torch.bool, device=part.nodes.device)
        train[shard.labelled] = True
        return part, train[part.nodes], len(shard.labelled), len(shard.others)
    some = draw(shard.labelled, BATCH)
    nodes = torch.cat([some, draw(shard.others, BATCH)]) if with_others else some
    part = ranks.part(nodes)
    known = torch.arange(len(part.rows), device=nodes.device) < part.before(len(some))
    return part, known, len(some), len(nodes) - len(some)


class _Unison(NetworkLearner[Unison]):
    """Committees on rows of the views."""

    @property
    def networks(self) -> int:  # type: ignore[override]
        return len(self.method.view_names) * self.method.size.members

    def row_width(self, num_features: int) -> int:
        """All views are filled up to the widest, the ego view with its parts."""
        components = self.method.size.components
        widest = max(components, (HOPS + 1) * ego_share(components, HOPS + 1))
        return len(self.method.view_names) * min(widest, (HOPS + 1) * num_features)

    def fit_tables(self, x: Table) -> dict[str, Table]:
        self.method.net_ = self.method._new_network()
        return view_tables(self.method.net_.views, x, self.space, fit=True)

    def tables(self, x: Table) -> dict[str, Table]:
        return view_tables(self.method.net_.views, x, self.space)

    def drawn_per_epoch(self) -> tuple[int, int]:
        return LABELLED * self.method.batch, self.method.batch

    def stacked(self, rows: Rows) -> Tensor:
        width = self.method.net_.views.width
        return torch.stack([pad(rows[name], (0, width - rows[name].shape[1])) for name in rows])

    def fit_supply(self, supply: RowSupply) -> None:
        self.method.train_members(supply)

    def row_logits(self, rows: Rows) -> Tensor:
        net = self.method.net_
        return vote_logits(net.members(self.stacked(rows)).softmax(2), net.votes)


class _IceBerg(NetworkLearner[IceBerg]):
    """Double Balancing on rows of propagated features."""

    def fit_tables(self, x: Table) -> dict[str, Table]:
        if self.method.loss == "renode":
            raise ValueError("loss must not be 'renode' for a graph on disk: it needs its edges.")
        return self.tables(x)

    def tables(self, x: Table) -> dict[str, Table]:
        method = self.method
        walk = Walk(method.normalisation, method.steps, method.teleport)
        return {"propagated": self.space.propagate(x, walk)}

    def drawn_per_epoch(self) -> tuple[int, int]:
        return BATCH, BATCH if self.method.pseudo_weight else 0

    def fit_all(self, task: Task, x: Tensor) -> None:
        method = self.method
        method.net_ = net = method._new_network()
        inputs = Inputs(x, Sparse.from_scipy(NO_EDGES, x.device))
        epoch = double_balancing_epoch(net, inputs, task, method.loss, method.pseudo_weight)
        method._train(net, epoch)

    def fit_supply(self, supply: RowSupply) -> None:
        method, counts = self.method, supply.task.class_counts.to(supply.device)
        unused = Sparse.from_scipy(NO_EDGES, supply.device)

        def on_labels(labels: Tensor, logits: Tensor) -> Tensor:
            return labelled_loss(method.loss, NO_EDGES, labels, labels, counts)(logits)

        self._train(supply, lambda _: unused, on_labels, method.pseudo_weight)

    def row_logits(self, rows: Rows) -> Tensor:
        logits: Tensor = self.method.net_(self.stacked(rows), None)
        return logits


class _MLP(NetworkLearner[MLP]):
    """The features alone."""

    def tables(self, x: Table) -> dict[str, Table]:
        return {"features": x}

    def fit_all(self, task: Task, x: Tensor) -> None:
        graph = copy(task.graph)
        graph.x = x
        self.method._fit(replace(task, graph=graph))

    def fit_supply(self, supply: RowSupply) -> None:
        self._train(
            supply,
            lambda size: _identity(size, supply.device),
            lambda labels, logits: cross_entropy(logits, labels),
        )

    def row_logits(self, rows: Rows) -> Tensor:
        x = self.stacked(rows)
        logits: Tensor = self.method.net_(sparsify(x), _identity(len(x), x.device))
        return logits


def _identity(size: int, device: torch.device) -> Sparse:
    return Sparse.from_scipy(sp.identity(size, format="csr"), device)


class TreeLearner(Learner[Boosting]):
    """Trees on rows in memory; by LightGBM, which takes blocks, also on rows read in passes."""

    def __init__(self, method: Boosting, space: Workspace) -> None:
        super().__init__(method, space)
        if method.context and method.hops:
            raise ValueError("context must be False for a graph on disk: it needs all edges.")

    def row_width(self, num_features: int) -> int:
        """Features and degree, and their mean per hop."""
        return (1 + self.method.hops) * (num_features + 1)

    def tables(self, x: Table) -> dict[str, Table]:
        tables, own, hops = {"features": x}, x, self.method.hops
        if self.method.degree and hops:
            tables["log_degree"] = degree = degree_table(self.space.links)
            own = JoinedTable([x, degree])
        for hop in range(1, hops + 1):
            walk = Walk("mean", hop)
            tables[f"mean_{hop}"] = self.space.propagate(own, walk, f"means, hop {hop}")
        return tables

    def fit_rows(self, task: Task, rows: Rows) -> None:
        """Grow trees on rows in memory."""
        table = first_digits(torch.cat(list(rows.values()), dim=1))
        self.method.grow(task, lambda nodes, columns: table[nodes][:, columns])

    def row_logits(self, rows: Rows) -> Tensor:
        table = torch.cat(list(rows.values()), dim=1)
        return self.method.tree_logits(lambda columns: first_digits(table[:, columns]))

    def streamed_rows(self, num_features: int, num_classes: int) -> tuple[int, int]:
        """How many training and validation rows can be used within the limit of memory.

        In memory are a byte per value, gradients, sums of trees and numbers of rows.
        """
        memory, width = self.space.memory, self.row_width(num_features)
        training = NODE_BYTES + width + 40 * (num_classes + 1)
        validation = NODE_BYTES + 24 * num_classes
        return (
            max(memory // (TRAINING_SHARE * training), SMALLEST),
            max(memory // (VALIDATION_SHARE * validation), SMALLEST),
        )

    def fit_streamed(self, task: Task, nodes: Tensor, tables: Mapping[str, Table]) -> None:
        """Grow trees on all rows of labelled nodes, which are read in blocks.

        The graph of the task has labels alone; `nodes` are its rows of the tables, (n,).
        """
        method, table = self.method, JoinedTable(list(tables.values()))
        if method.engine != "lightgbm":
            raise ValueError("engine must be lightgbm for a graph on disk that exceeds the memory.")
        size = block_rows(table.shape[1], self.space.memory)

        def rows(part: str, columns: Tensor) -> RowBlocks:
            def rounded(values: Tensor, which: slice) -> Tensor:
                return first_digits(values[:, columns][:, which])

            some = DerivedTable(table, rounded, len(columns), "rounded", columns)
            return RowBlocks(some, nodes[getattr(task, part)], size)

        labels = task.graph.y[task.train_nodes]

        def ratios(columns: Tensor) -> Tensor:
            read = rows("train", columns)
            passes = lambda: ((block, labels[index]) for index, block in read)  # noqa: E731
            return separation_in_passes(passes, task.num_classes)

        columns = method.best_columns(task, ratios)
        grow = self._grower(rows("train", columns), labels, method.node_weights(task))
        method.select(columns, self._rounds(task, rows("val", columns), grow))

    def _grower(self, rows: RowBlocks, labels: Tensor, weights: Tensor) -> Callable[[int], Grown]:
        library, y, w = import_optional("lightgbm", "lightgbm"), labels.numpy(), weights.numpy()
        params, baseline = self.method.tree_params(), start_logits(y, w)
        grown = Grown([], baseline, [start_loss(y, w, baseline)])
        settings = lightgbm_settings(params, baseline)

        class Blocks(library.Sequence):  # type: ignore[misc, name-defined]
            batch_size = rows.size

            def __len__(self) -> int:
                return rows.shape[0]

            def __getitem__(self, index: slice) -> NDArray[Any]:
                return rows.read(index).numpy()

        # bins are those of a sample, then all rows are added in blocks
        room = self.space.memory // (SAMPLE_SHARE * 8 * max(rows.shape[1], 1))
        sample = rows.sample(min(max(room, SMALLEST), SAMPLE)).numpy()
        bins = library.Dataset(sample, params=settings).construct()
        start = np.tile(baseline, (len(y), 1)).squeeze(1 if baseline.size == 1 else ())
        about = {"weight": w, "init_score": start, "params": settings, "reference": bins}
        booster = library.Booster(settings, library.Dataset(Blocks(), y, **about).construct())
        return lambda rounds: grow_lightgbm(booster, params, grown, rounds)

    def _rounds(
        self, task: Task, rows: RowBlocks, grow: Callable[[int], Grown]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Loss and score before any tree, after one round and so on."""
        method, rounds = self.method, 0
        outputs, most = method.outputs, max(method.max_epochs, 1)
        sums = torch.zeros(len(task.val_nodes), outputs, dtype=torch.float64)
        while True:
            before, rounds = rounds, min(rounds + CHUNK, most)
            tables, baseline, losses = grow(rounds)
            method.trees_ = trees_from_tables(tables, method.device_)
            method.baseline_ = torch.from_numpy(baseline)
            stages = self._sums(rows, tables[before * outputs :], sums)
            for stage in range(before + bool(before), rounds + 1):
                sums = next(stages) if stage else sums
                logits = class_logits(method.baseline_ + sums)
                yield torch.tensor(losses[stage]), score_validation_rows(logits, task)
            if rounds >= method.max_epochs:
                return

    def _sums(self, rows: RowBlocks, tables: list[Any], sums: Tensor) -> Iterator[Tensor]:
        """Sums of trees for rows after each round of new trees; one tensor that changes."""
        outputs, sums = sums.shape[1], sums.clone()
        rounds = max(self.space.memory // SUMS_SHARE // max(sums.nbytes, 1), 1)
        for first in range(0, len(tables), rounds * outputs):
            some = tables[first : first + rounds * outputs]
            trees = trees_from_tables(some, sums.device)
            values = sums.new_empty(len(sums), len(some))
            for index, block in rows:
                values[index] = tree_values(trees, block)
            for added in values.split(outputs, dim=1):
                sums += added
                yield sums


LEARNERS: dict[type[Method], type[Learner[Any]]] = {
    Unison: _Unison,
    IceBerg: _IceBerg,
    MLP: _MLP,
    Boosting: TreeLearner,
}
"""The adapter of each method that graphs on disk can be used with."""


def row_candidates(
    method: Chooser, graph: Data, space: Workspace, fits: Callable[[Learner[Any]], bool]
) -> list[Method]:
    """The candidates that learn from rows; trees without labels and places, which need edges."""
    found = list[Method]()
    for one in portfolio(graph, names=method.names).values():
        if isinstance(one, Boosting):
            one = replace(one, context=False)
            if not fits(TreeLearner(one, space)):  # the engine that streams rows
                one = replace(one, engine="lightgbm")
        if type(one) in LEARNERS and (space.links.num_edges or not one.uses_graph):
            found.append(one)
    return found
