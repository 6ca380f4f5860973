"""Scorer: predict a few new nodes beside a known graph that stays in memory.

What a method propagates is linear: a new node's row is a weighted sum of rows that are known, and
the weights are found by walking from the new node. A method of two convolutions is given the nodes
within two steps, whose neighbours are complete. Both give what `TableModel.predict` gives for the
whole graph, up to rounding; methods that need the whole graph at once take it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from evengraph.core.errors import one_line_errors
from evengraph.core.task import edge_weight
from evengraph.methods import Auto, Boosting, LabelPropagation, Logistic, Method, Unison
from evengraph.methods.bases.method import model_input
from evengraph.methods.bases.network import NetworkMethod
from evengraph.methods.labelpropagation import LEAST
from evengraph.methods.unison import vote_logits
from evengraph.nn.members import HOPS
from evengraph.ops.context import (
    DAMPING,
    RANK_STEPS,
    RESTART,
    SPREAD_STEPS,
    joined_label_columns,
)
from evengraph.ops.sparse import neighbour_averages, undirected_adjacency
from evengraph.pipeline.model_info import (
    NewNodes,
    as_arguments,
    build_new_nodes,
    columns_of_new,
)
from evengraph.pipeline.table_model import TableModel
from evengraph.tables.build import build_graph
from evengraph.tables.cells import canonical_names, import_pandas
from evengraph.tables.columns import edge_ends
from evengraph.tables.edges import node_rows
from evengraph.tables.notes import Notes
from evengraph.tables.open import read_tables

DENSE = 0.05  # share of the nodes that a walk has reached from which on all are stored
MANY = 32  # new nodes at a time from which on the whole graph is as quick as walks
SHORT = 2**31 - 2**20  # numbers of edges and nodes that 32 bits hold, with some new ones
TRIED = 30  # columns that are tried as reasons, those that are furthest from their mean
Ints = NDArray[np.int64]
LOOPS, MEAN, LINKS = "loops", "mean", "links"  # walks: with self-loops, without, without weights

Walk = tuple[str, tuple[float, ...]]
"""The kind of a walk, and the weight of its place after 0, 1, ... steps."""


@final
class Scorer:
    """Score new rows beside a known graph, one request at a time or several in threads.

    Args:
        model: A `TableModel`, or the folder of one.
        known: The known graph as in `TableModel.predict`: a folder, or its tables.

    Attributes:
        whole: Titles of the methods that compute the whole graph for every request; empty if
            answers come from around the new nodes.
    """

    @one_line_errors()
    def __init__(self, model: TableModel | str | Path, known: Any) -> None:
        self.model = model if isinstance(model, TableModel) else TableModel.load(model)
        info, method = self.model.info, self.model.method_
        if info.encoder is None:
            raise ValueError("This model was trained on a graph and cannot encode tables.")
        self.columns = columns_of_new(info, {})
        nodes, edges, others = read_tables(**as_arguments(known), columns=self.columns)
        self.known: tuple[Any, ...] = (nodes, edges)
        built = build_graph(nodes, edges, self.columns, info.encoder, others)
        self._others: dict[str, Any] = {}
        if others is not None:
            self._others = {"edges": others.edges, "tables": others.tables}
        self._graph = model_input(method, built.graph)
        pairs = method.weighted_members(built.graph) if isinstance(method, Auto) else [(method, 1)]
        self._members = pairs
        local = self.columns.id is not None and not self.columns.link
        local = local and not info.encoder.structural
        titles = [one.full_title for one, _ in pairs if not _is_local(one)]
        self.whole = (*([] if local else ["the features"]), *titles)
        self._labels = {id(one): one._known_labels(built.graph) for one, _ in pairs}
        self._parts = _Known.of(self._graph)
        if self.columns.id is not None:
            ids = canonical_names(self.known[0][self.columns.id])
            self._index = import_pandas().Index(ids, dtype=object)
        self._anchors, self._fixed = self._find_anchors(), np.zeros(1, np.int64)
        if not self.whole:
            self._fixed = np.concatenate([self._fixed, *self._ends(self._anchors)])

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.model.classes_

    @one_line_errors()
    def score(self, rows: Any, edges: Any = None, *, reasons: int = 0) -> list[dict[str, Any]]:
        """Class, probabilities and flag of every new row, as `TableModel.predict` gives them.

        Args:
            rows: The new nodes, a DataFrame or a list of dicts.
            edges: Their edges among one another and to known nodes, likewise; by type if the
                model has other tables.
            reasons: How many columns to name per row without which its class would be less
                probable, each with that probability. Costs a prediction per column.
        """
        nodes = _frame(rows)
        if self._others:
            parts = {name: _frame(part) for name, part in (edges or {}).items()}
            new = self.model.open(nodes, parts, known={"data": self.known[0], **self._others})
            return self._answers(new, self.model.method_.predict_proba(new.tables.graph)[new.rows])
        links = _frame(edges)
        if not len(links.columns):
            links = self.known[1].iloc[:0] if self.known[1] is not None else None
        near = self._near(nodes, links)
        if near is None:
            new = self.model.open(nodes, links, known=self.known)
            raw = self.model.method_.predict_proba(new.tables.graph)[new.rows].cpu()
            return self._answers(new, raw)
        with torch.no_grad():
            raw = self._predict(near)
            answers = self._answers(near.given, raw)
            if reasons:
                self._explain(answers, near, nodes, reasons)
        return answers

    def _answers(self, new: NewNodes, raw: Tensor) -> list[dict[str, Any]]:
        info, names = self.model.info, self.classes
        shown, flags = info.calibrated(raw).tolist(), info.flags(raw)
        found = [] if flags is None else flags.tolist()
        best, answers = info.classes(raw, flags).tolist(), list[dict[str, Any]]()
        for place, (name, row) in enumerate(zip(new.ids.tolist(), shown, strict=True)):
            one = {"id": str(name), "class": names[best[place]], "probability": row[best[place]]}
            one["probabilities"] = dict(zip(names, row, strict=True))
            answers.append(one | ({"flagged": found[place]} if found else {}))
        return answers

    # What is around new nodes

    def _find_anchors(self) -> Any:
        """Edges with the first and the last time, from which recency is measured."""
        made, edges = self.model.info.encoder.edges, self.known[1]  # type: ignore[union-attr]
        rows = set[int]()
        for item in () if made is None or not len(edges) else made.columns:
            if item.kind in ("date", "time"):
                times = item.numbers(edges[item.column], "edges")
                if not np.isnan(times).all():
                    rows |= {int(np.nanargmin(times)), int(np.nanargmax(times))}
        return None if edges is None else edges.iloc[sorted(rows)]

    def _ends(self, edges: Any) -> tuple[Ints, ...]:
        """The known nodes at both ends of edges, -1 for others."""
        if edges is None or not len(edges):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        ends = edge_ends(edges, self.columns, Notes())
        return tuple(node_rows(edges[end], self._index, "edges") for end in ends)

    def _near(self, nodes: Any, edges: Any) -> _Near | None:
        """New nodes with what is around them; None if the whole graph is to be predicted."""
        id, walks = self.columns.id, any(_needs_walk(one) for one, _ in self._members)
        if self.whole or id not in nodes.columns or (walks and len(nodes) > MANY):
            return None
        if (self._index.get_indexer(canonical_names(nodes[id])) >= 0).any():
            return None
        ends = self._ends(edges)
        if (np.minimum(*ends) >= 0).any():  # between known nodes
            return None
        around = np.unique(np.concatenate([self._fixed, *ends]))
        around = around[around >= 0]
        known = self.known[0].iloc[around].reset_index(drop=True), self._anchors
        encoder = self.model.info.encoder
        assert encoder is not None
        new = build_new_nodes((nodes, edges), known, self.columns, encoder)
        return _Near(self._parts, new, around)

    # What the members predict

    def _predict(self, near: _Near) -> Tensor:
        """Class probabilities of the new nodes, (T, C)."""
        near.walk({walk for one, _ in self._members for walk in self._walks(one, near)})
        total = sum(weight * self._member(one, near).double() for one, weight in self._members)
        assert isinstance(total, Tensor)
        return (total / total.sum(1, keepdim=True)).float()

    def _walks(self, one: Method, near: _Near) -> list[Walk]:
        if isinstance(one, LabelPropagation):
            return [_diffusion(LOOPS, int(one.steps_), one.restart)]
        if isinstance(one, Unison) and "structural" in one.view_names:
            return [_diffusion(LOOPS, one.steps, one.teleport)]
        return [REACH, near.rank_walk()] if one.uses_labels else []

    def _member(self, one: Method, near: _Near) -> Tensor:
        if isinstance(one, LabelPropagation):
            return self._propagated(one, near)
        if isinstance(one, Unison):
            return self._voted(one, near)
        hops = getattr(one, "hops", HOPS)
        if not isinstance(one, Boosting):
            return one.predict_proba(near.ball(hops))[: near.count].cpu()
        ball = model_input(one, near.ball(hops))
        context, rows = None, torch.arange(near.count)
        if one.context_width:
            context = torch.zeros(near.count, one.context_width)
            context[:] = torch.from_numpy(self._context(one, near))
        return one.tree_logits(lambda some: one._table(ball, rows, some, context)).softmax(1)

    def _propagated(self, one: LabelPropagation, near: _Near) -> Tensor:
        rows = near.walked[self._walks(one, near)[0]]
        known = one_hot(one.labelled_.labels, one.num_classes_).float()
        weight = 1 / known.sum(0) if one.balance else torch.ones_like(known[0])
        spread = torch.from_numpy(_by_class(rows, *self._labels[id(one)], one.num_classes_))
        return (spread * weight).float().clamp(min=LEAST).log().softmax(1)

    def _voted(self, one: Unison, near: _Near) -> Tensor:
        net, views = one.net_, dict[str, Tensor]()
        if "structural" in one.view_names:
            mean = near.symmetric_sum(near.walked[self._walks(one, near)[0]])
            views["structural"] = net.views.structural(mean, lambda x: x)
        if "ego" in one.view_names:
            ball = near.ball(HOPS)
            averages = neighbour_averages(ball, HOPS)
            views["ego"] = net.views._ego(ball.x, averages, False)[: near.count]
        votes = net.members(net.views.side_by_side(views)).softmax(2)
        return vote_logits(votes, net.votes).softmax(1)

    def _context(self, one: Boosting, near: _Near) -> NDArray[np.float32]:
        """The columns of `Boosting.context` for the new nodes, (T, W)."""
        nodes, labels = self._labels[id(one)]
        total = np.bincount(labels.numpy(), minlength=one.num_classes_).astype(np.float32)
        rows = near.rows(MEAN) / near.scale, near.joined(MEAN).times(near.mean_rows()) / near.scale
        near_by = [_by_class(part, nodes, labels, one.num_classes_) for part in rows]
        reach = _by_class(near.walked[REACH], nodes, labels, one.num_classes_)
        columns = joined_label_columns(near_by, reach / np.maximum(total, 1), total)
        return np.concatenate([near.place(), columns], axis=1).astype(np.float32)

    def _explain(self, answers: list[dict[str, Any]], near: _Near, nodes: Any, count: int) -> None:
        """Add to every answer what its class would be less probable without."""
        info, found = self.model.info, [list[dict[str, Any]]() for _ in answers]
        encoder, statistics, names = info.encoder, info.statistics, list(self.classes)
        assert encoder is not None
        means = torch.tensor(statistics.means if statistics else [0.0] * len(encoder.names))
        groups = dict[str, list[int]]()
        owners = [item.column for item in encoder.columns for _ in item.names]
        for index, name in enumerate([*owners, *encoder.names[len(owners) :]]):
            groups.setdefault(name, []).append(index)
        sizes = (near.new - means).abs() / (
            torch.tensor(statistics.deviations if statistics else 1) + 1e-6
        )
        order = sorted(groups, key=lambda name: -float(sizes[:, groups[name]].max()))[:TRIED]
        tries = {name: near.changed(groups[name], means) for name in order}
        for name, other in {**tries, "edges": near.alone()}.items():
            rows = info.calibrated(self._predict(other))
            for answer, row, listed, place in zip(
                answers, rows, found, range(len(rows)), strict=True
            ):
                without = float(row[names.index(answer["class"])])
                value = nodes[name].iloc[place] if name in nodes.columns else None
                value = value.item() if isinstance(value, np.generic) else value
                if without < answer["probability"]:
                    listed.append({"column": name, "value": value, "without": without})
        for answer, listed in zip(answers, found, strict=True):
            answer["reasons"] = sorted(listed, key=lambda one: one["without"])[:count]


def _frame(table: Any) -> Any:
    """Rows as a DataFrame."""
    pandas = import_pandas()
    if isinstance(table, pandas.DataFrame):
        return table
    return pandas.DataFrame([] if table is None else list(table))


def _is_local(one: Method) -> bool:
    """Whether new nodes can be predicted without the whole graph."""
    if isinstance(one, NetworkMethod):  # of two convolutions, on features as they are
        kept = all(
            getattr(type(one), name) is getattr(NetworkMethod, name)
            for name in ("_logits", "_inputs", "predict_members")
        )
        return kept and one.enlarged_ is None
    return isinstance(one, Logistic | Boosting | Unison | LabelPropagation)


def _needs_walk(one: Method) -> bool:
    walks = isinstance(one, Unison) and "structural" in one.view_names
    return walks or one.uses_labels


def _diffusion(kind: str, steps: int, share: float) -> Walk:
    """The weights of `diffuse`: some of the start is added again in every step."""
    return kind, (*(share * (1 - share) ** step for step in range(steps)), (1 - share) ** steps)


REACH = _diffusion(MEAN, SPREAD_STEPS, RESTART)


def _by_class(rows: Any, nodes: Tensor, labels: Tensor, count: int) -> NDArray[Any]:
    """The weight of the labelled nodes of each class in weighted sums of nodes, (T, C)."""
    some = rows[:, nodes.numpy()]
    return np.asarray(some @ one_hot(labels, count).double().numpy())


class _Known(NamedTuple):
    """Of the known graph what does not change: features, and the adjacency matrix."""

    x: Tensor
    matrices: Mapping[str, Any]  # with weights and without, (N, N)
    degrees: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, graph: Data) -> _Known:
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes, edge_weight(graph))
        matrix = sp.csr_array(matrix, dtype=np.float64, copy=True)
        matrix.eliminate_zeros()
        if max(matrix.nnz, *matrix.shape) < SHORT:  # a third faster
            matrix.indices, matrix.indptr = (
                part.astype(np.int32) for part in (matrix.indices, matrix.indptr)
            )
        matrices = {MEAN: matrix}
        if edge_weight(graph) is not None:
            parts = np.ones(matrix.nnz), matrix.indices, matrix.indptr
            matrices[LINKS] = sp.csr_array(parts, matrix.shape)
        return cls(graph.x.float(), matrices, {k: m.sum(axis=1) for k, m in matrices.items()})


class _Near:
    """New nodes and the known graph, whose matrices get a few entries more.

    The known nodes come first, N of them, then the new ones, T.
    """

    def __init__(self, known: _Known, given: NewNodes, around: NDArray[np.int64]) -> None:
        graph, self.given, self.known = given.tables.graph, given, known
        self.first = len(known.x)
        self.new = graph.x[given.rows].float()
        self.count = len(self.new)
        self.size = self.first + self.count
        self.weighted = LINKS in known.matrices
        self.links = LINKS if self.weighted else MEAN
        place = np.append(around, np.arange(self.first, self.size))
        arcs = place[graph.edge_index.numpy()]
        weight = edge_weight(graph)
        values = np.ones(arcs.shape[1]) if weight is None else weight.double().numpy()
        kept = (arcs >= self.first).any(0) & (values > 0)
        self.relations = dict[str, Any]()
        if "relation_index" in graph:
            relation, *ends = graph.relation_index.numpy()
            ends = place[np.stack(ends)]
            mine = ends[0] >= self.first
            self.relations = {"index": relation[mine], "ends": ends[:, mine]}
            self.relations["number"] = graph.num_relations
            if "relation_weight" in graph:
                self.relations["weight"] = graph.relation_weight[torch.from_numpy(mine)]
        self._connect(arcs[:, kept], values[kept])

    def _connect(self, arcs: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Add the entries of the new edges, both directions of each."""
        shape, matrices = (self.size, self.size), self.known.matrices
        self.extra, self.degrees, self.padded = dict[str, Any](), dict[str, Any](), {}
        for kind, known in matrices.items():
            entries = values if kind == MEAN else np.ones(len(values))
            self.extra[kind] = sp.csr_array(
                (entries, tuple(arcs.astype(known.indices.dtype))), shape=shape
            )
            kind_of_index = known.indptr.dtype
            pointers = np.append(known.indptr, np.full(self.count, known.nnz, kind_of_index))
            self.padded[kind] = sp.csr_array((known.data, known.indices, pointers), shape=shape)
            degree = np.append(self.known.degrees[kind], np.zeros(self.count))
            np.add.at(degree, arcs[0], entries)
            self.degrees[kind] = degree
        total = self.degrees[MEAN].sum()
        entries = matrices[MEAN].nnz + len(values)
        self.scale = total / entries if self.weighted and entries else 1.0
        self.walked, self.balls = dict[Walk, Any](), dict[int, Data]()

    def changed(self, columns: Sequence[int], means: Tensor) -> _Near:
        """The same with other values in some columns of the new nodes."""
        other = copy(self)
        other.new, other.balls = self.new.clone(), {}
        other.new[:, columns] = means[columns]
        for hops, ball in self.balls.items():
            other.balls[hops] = copy(ball)
            other.balls[hops].x = torch.cat([other.new, ball.x[self.count :]])
        return other

    def alone(self) -> _Near:
        """The same without edges of the new nodes."""
        other = copy(self)
        other.relations = {}
        if self.relations:
            nothing = np.empty(0, np.int64)
            other.relations = {
                **self.relations,
                "index": nothing,
                "ends": np.empty((2, 0), np.int64),
            }
            if "weight" in self.relations:
                other.relations["weight"] = torch.empty(0)
        other._connect(np.empty((2, 0), np.int64), np.empty(0))
        return other

    # Walks

    def joined(self, kind: str) -> _Sum:
        """The adjacency matrix of all nodes."""
        return _Sum(self.padded[kind], self.extra[kind])

    def rows(self, kind: str) -> Any:
        """The rows of the new nodes in the adjacency matrix, (T, N + T)."""
        return self.extra[kind][self.first :]

    def mean_rows(self) -> Any:
        """The rows of the new nodes in the mean over neighbours."""
        degree = self.degrees[MEAN][self.first :]
        return sp.diags_array(1 / np.where(degree > 0, degree, 1)) @ self.rows(MEAN)

    def rank_walk(self) -> Walk:
        """The weights of PageRank after its steps, begun at 1 everywhere."""
        degree, level, levels = self.degrees[self.links], 1.0, [1.0]
        for _ in range(RANK_STEPS):  # the rank of a node without neighbours
            level = DAMPING * float((degree == 0).mean()) * level + 1 - DAMPING
            levels.append(level)
        weights = (DAMPING**step * levels[RANK_STEPS - step] for step in range(RANK_STEPS + 1))
        return self.links, tuple(weights)

    def walk(self, walks: set[Walk]) -> None:
        """Walk from the new nodes, once for all walks of a kind."""
        for kind in {kind for kind, _ in walks - self.walked.keys()}:
            wanted = [walk for walk in walks if walk[0] == kind]
            longest = max(len(weights) for _, weights in wanted)
            for step, rows in enumerate(islice(self._powers(kind), longest)):
                for walk in wanted:
                    if step < len(walk[1]):
                        self._add(walk, rows * walk[1][step])

    def _add(self, walk: Walk, rows: Any) -> None:
        total = self.walked.get(walk)
        if isinstance(total, np.ndarray):
            total += rows
        else:
            self.walked[walk] = rows if total is None else total + rows

    def _powers(self, kind: str) -> Iterator[Any]:
        """The rows of the new nodes in the powers of the mean over neighbours, (T, N + T) each."""
        matrix = self.joined(LINKS if kind == LINKS else MEAN)
        scale, loop = (1.0 if kind == LINKS else self.scale), float(kind == LOOPS)
        degree = self._degree(kind)
        inverse = 1 / np.where(degree > 0, degree, 1)
        short, shape = matrix.matrix.indices.dtype, (self.count, self.size)
        places = np.arange(self.count, dtype=short), np.arange(self.first, self.size, dtype=short)
        rows = sp.csr_array((np.ones(self.count), places), shape=shape)
        while True:
            yield rows
            if sp.issparse(rows):
                rows = sp.csr_array(
                    (rows.data * inverse[rows.indices], rows.indices, rows.indptr), rows.shape
                )
            else:
                rows = rows * inverse
            moved = matrix.times(rows) / scale
            rows = moved + rows if loop else moved
            if sp.issparse(rows) and rows.nnz > DENSE * self.count * self.size:
                rows = rows.toarray()

    def _degree(self, kind: str) -> NDArray[np.float64]:
        if kind == LINKS:
            found: NDArray[np.float64] = self.degrees[LINKS]
        else:
            found = self.degrees[MEAN] / self.scale + float(kind == LOOPS)
        return found

    def symmetric_sum(self, rows: Any) -> Tensor:
        """Weighted sums of features, with the weights of symmetric normalisation, (T, F)."""
        root = np.sqrt(self._degree(LOOPS))
        if sp.issparse(rows):
            rows = rows.toarray()
        rows = rows * root[self.first :, None] / root
        mean = torch.from_numpy(rows).float()
        sums: Tensor = mean[:, : self.first] @ self.known.x + mean[:, self.first :] @ self.new
        return sums

    def place(self) -> NDArray[np.float64]:
        """PageRank, clustering and spread of the neighbours' degrees as `place_columns`, (T, 3)."""
        kind = self.links
        all_degrees, rows = self.degrees[kind], self.rows(kind)
        degree = all_degrees[self.first :]
        # a walk from a node, over the degrees, is the walk that ends there
        weights = self.rank_walk()[1]
        walked = self.walked[kind, weights]
        inverse = 1 / np.where(all_degrees > 0, all_degrees, 1)
        rank = (np.asarray(walked @ inverse) - weights[0] * inverse[self.first :]) * degree
        closed = (rows * self.joined(kind).times(rows)).sum(axis=1)
        clustering = closed / np.maximum(degree * (degree - 1), 1)
        logs, many = rows.copy(), np.maximum(degree, 1)
        logs.data = np.log1p(all_degrees[rows.indices])
        mean, square = logs.sum(axis=1) / many, (logs**2).sum(axis=1) / many
        spread = np.sqrt(np.maximum(square - mean**2, 0))
        return np.stack([np.log(rank + weights[0]), clustering, spread], axis=1)

    # Balls

    def ball(self, hops: int) -> Data:
        """New nodes first, all within some hops, and the neighbours of these, without theirs."""
        if hops not in self.balls:
            self.balls[hops] = self._ball(hops)
        return self.balls[hops]

    def _ball(self, hops: int) -> Data:
        matrix = self.joined(MEAN)
        inner = np.arange(self.first, self.size)
        for _ in range(hops):
            rest = np.setdiff1d(matrix[inner].indices, inner)
            inner = np.append(inner, rest)
        rows = matrix[inner].tocoo()
        nodes = np.append(inner, np.setdiff1d(rows.col, inner))
        place = np.zeros(self.size, np.int64)
        place[nodes] = np.arange(len(nodes))
        x = torch.empty(len(nodes), self.new.shape[1])
        is_known = torch.from_numpy(nodes < self.first)
        x[is_known] = self.known.x[torch.from_numpy(nodes[nodes < self.first])]
        x[~is_known] = self.new[torch.from_numpy(nodes[nodes >= self.first] - self.first)]
        ends = np.stack([rows.row, place[rows.col]])
        graph = Data(x=x, edge_index=torch.from_numpy(ends.astype(np.int64)))
        if self.weighted:
            _add_weights(graph, rows.data / self.scale)
        if self.relations:
            pairs = np.vstack([self.relations["index"], place[self.relations["ends"]]])
            graph.relation_index = torch.from_numpy(pairs)
            graph.num_relations = self.relations["number"]
            if "weight" in self.relations:
                graph.relation_weight = self.relations["weight"]
        return graph


def _add_weights(graph: Data, weight: NDArray[np.float64]) -> None:
    """Add weights, and edges of nodes apart with which the mean weight stays 1."""
    matrix = sp.csr_array((weight, tuple(graph.edge_index.numpy())), [graph.num_nodes] * 2)
    both = matrix.maximum(matrix.T)
    total, entries = both.sum(), both.nnz
    number = max(int((total - entries) / 2), 0) + 1  # so many that their weight is above 0
    star = torch.arange(number) + graph.num_nodes + 1
    hub = torch.full_like(star, int(graph.num_nodes))
    fill = (entries + 2 * number - total) / (2 * number)
    graph.x = torch.cat([graph.x, graph.x.new_zeros(number + 1, graph.x.shape[1])])
    graph.edge_index = torch.cat([graph.edge_index, torch.stack([hub, star])], dim=1)
    graph.edge_weight = torch.from_numpy(np.append(weight, np.full(number, fill))).float()


class _Sum:
    """A symmetric sparse matrix and a few entries more, for products and rows."""

    def __init__(self, matrix: Any, extra: Any) -> None:
        self.matrix, self.extra, self.entries = matrix, extra, extra.tocoo()

    def times(self, rows: Any) -> Any:
        """Rows times the matrix."""
        if sp.issparse(rows):
            return rows @ self.matrix + rows @ self.extra
        moved, columns = self.matrix @ rows.T, rows.T
        np.add.at(moved, self.entries.row, self.entries.data[:, None] * columns[self.entries.col])
        return moved.T

    def __getitem__(self, index: Any) -> Any:
        return self.matrix[index] + self.extra[index]
