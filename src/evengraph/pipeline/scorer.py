"""Scorer: predict a few new nodes beside a known graph that stays in memory.

What a method propagates is linear: a new node's row is a weighted sum of known rows, and the
weights are found by walking from the new node. A method of two convolutions is given the nodes
within two steps, whose neighbours are complete. Both equal `TableModel.predict` up to rounding;
what needs the whole graph at once is given it.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd
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
    place_columns,
)
from evengraph.ops.sparse import neighbour_averages, undirected_adjacency
from evengraph.pipeline.model_info import (
    NewNodes,
    as_arguments,
    build_new_nodes,
    columns_of_new,
    training_paths,
)
from evengraph.pipeline.table_model import TableModel
from evengraph.tables.build import build_graph
from evengraph.tables.cells import EMPTY_NUMBERS, canonical_names, check_columns, is_empty
from evengraph.tables.columns import TableColumns, edge_ends
from evengraph.tables.edges import node_rows
from evengraph.tables.links import ALL_ROWS, NEARLY_ALL, has_lists, parts_of
from evengraph.tables.notes import Notes
from evengraph.tables.open import read_tables

DENSE = 0.05  # share of the nodes that a walk has reached from which on all are stored
MANY = 8  # new nodes from which on the whole graph is as quick as walks
TRIED = 30  # columns that are tried as reasons
Walk = tuple[str, tuple[float, ...]]  # its matrix, and the weight of the place after each step
Floats = NDArray[np.float64]


@final
class Scorer:
    """Score new rows beside a known graph, also from several threads.

    Args:
        model: A `TableModel`, or the folder of one.
        known: The known graph as in `TableModel.predict`: a folder, or its tables; by default the
            tables of training.

    Attributes:
        edges: The known edges; None if there are none, or other tables beside them.
        whole: What computes the whole graph for every request; empty if nothing does.
    """

    @one_line_errors()
    def __init__(self, model: TableModel | str | Path, known: Any = None) -> None:
        self.model = model if isinstance(model, TableModel) else TableModel.load(model)
        info, method = self.model.info, self.model.method_
        if info.encoder is None:
            raise ValueError("This model was trained on a graph and cannot encode tables.")
        self.columns = columns_of_new(info, {})
        arguments = training_paths(info) if known is None else as_arguments(known)
        self._nodes, self.edges = read_tables(**arguments, columns=self.columns)
        self.known = {"data": self._nodes, "edges": self.edges}
        graph = build_graph(self._nodes, self.edges, self.columns, info.encoder).graph
        self.info = info.on(method, graph)
        members = method.weighted_members(graph) if isinstance(method, Auto) else [(method, 1.0)]
        self._members = [(one, weight, one._known_labels(graph)) for one, weight in members]
        self._known, weighted = (
            _Known.of(model_input(method, graph)),
            edge_weight(graph) is not None,
        )
        whole = [one.full_title for one, _ in members if not _is_local(one, weighted)]
        if self.columns.id is None or self.columns.link or info.encoder.structural:
            whole.append("features of links or edges")
        self._sharing = _rows_by_value(self._nodes, self.columns) if self.edges is None else {}
        self.whole = tuple(whole) if not self._sharing else ()
        if not whole:
            ids = canonical_names(self._nodes[self.columns.id])
            self._index = pd.Index(ids, dtype=object)
            self._anchors = self._find_anchors()
            self._fixed = np.append(0, np.concatenate(self._ends(self._anchors)))

    @one_line_errors()
    def score(self, rows: Any, edges: Any = None, *, reasons: int = 0) -> list[dict[str, Any]]:
        """Class, probabilities and flag of every new row, as `TableModel.predict` gives them.

        Args:
            rows: The new nodes, a DataFrame or a list of dicts.
            edges: Their edges among one another and to known nodes, likewise; by type if the model
                has other tables.
            reasons: How many columns to name, `edges` among them, without whose cells the class
                would be less probable, each with that probability. A prediction per column.
        """
        nodes, links = _frame(rows), None
        if isinstance(edges, dict):
            links = {name: _frame(part) for name, part in edges.items()}
        elif edges is not None and len(edges):
            links = _frame(edges)
        elif self.edges is not None:
            links = {} if self.columns.kinds else self.edges.iloc[:0]
        near, info, names = self._near(nodes, links), self.info, self.model.classes_
        if self._sharing and links is None and info.encoder is not None:
            new = build_new_nodes((nodes, None), self._shared(nodes), self.columns, info.encoder)
        else:
            new = self.model.open(nodes, links, known=self.known) if near is None else near.given
        with torch.no_grad():
            if near is None:
                raw = self.model.method_.predict_proba(new.tables.graph)[new.rows].cpu()
            else:
                raw = self._predict(near)
        shown, flags = info.calibrated(raw).tolist(), info.flags(raw)
        answers = list[dict[str, Any]]()
        for id, best, row in zip(new.ids, info.classes(raw, flags).tolist(), shown, strict=True):
            one = {"id": str(id), "class": names[best], "probability": row[best]}
            flagged = {} if flags is None else {"flagged": bool(flags[len(answers)])}
            answers.append({**one, "probabilities": dict(zip(names, row, strict=True)), **flagged})
        if reasons:
            self._explain(answers, nodes, links, reasons)
        return answers

    def _explain(self, answers: list[dict[str, Any]], nodes: Any, edges: Any, count: int) -> None:
        encoder = self.model.info.encoder
        assert encoder is not None
        found = [list[dict[str, Any]]() for _ in answers]
        tried = encoder.input_columns[:TRIED]
        tries = {"edges": (nodes, None)}
        tries |= {name: (nodes.assign(**{name: None}), edges) for name in tried}
        for name, some in tries.items():
            for place, one in enumerate(self.score(*some)):
                without = one["probabilities"][answers[place]["class"]]
                if without < answers[place]["probability"]:
                    found[place].append({"column": name, "without": without})
        for answer, listed in zip(answers, found, strict=True):
            answer["reasons"] = sorted(listed, key=lambda one: one["without"])[:count]

    @property
    def ends(self) -> tuple[str, ...]:
        """The columns of edges that name their ends; none if there are no edges."""
        return () if self.edges is None else edge_ends(self.edges, self.columns, Notes())

    @property
    def roles(self) -> list[str]:
        """The columns of rows that are links or times."""
        links = [part for link in self.columns.link or () for part in parts_of(link, self._nodes)]
        return [*links, *filter(None, [self.columns.time])]

    def _find_anchors(self) -> Any:
        """Edges with the first and the last time, from which recency is measured."""
        made, edges, rows = self.model.info.encoder.edges, self.edges, set[int]()  # type: ignore[union-attr]
        for item in () if made is None or not len(edges) else made.columns:
            if item.kind in ("date", "time"):
                times = item.numbers(edges[item.column], "edges")
                if not np.isnan(times).all():
                    rows |= {int(np.nanargmin(times)), int(np.nanargmax(times))}
        return edges.iloc[sorted(rows)]

    def _ends(self, edges: Any) -> tuple[NDArray[np.int64], ...]:
        """The known nodes at both ends of edges, -1 for others."""
        ends = edge_ends(edges, self.columns, Notes())
        return tuple(node_rows(edges[end], self._index, "edges") for end in ends)

    def _near(self, nodes: Any, edges: Any) -> _Near | None:
        """New nodes with what is around them; None if the whole graph is to be predicted."""
        walks = any(_walks(one) for one, *_ in self._members)
        if (
            self.whole
            or self._sharing
            or self.columns.id not in nodes.columns
            or (walks and len(nodes) > MANY)
        ):
            return None
        ends = self._ends(edges)
        again = self._index.get_indexer(canonical_names(nodes[self.columns.id])) >= 0
        if again.any() or (np.minimum(*ends) >= 0).any():  # known nodes, edges between them
            return None
        around = np.unique(np.concatenate([self._fixed, *ends]))
        around = around[around >= 0]
        known = self._nodes.iloc[around].reset_index(drop=True), self._anchors
        encoder = self.model.info.encoder
        assert encoder is not None
        new = build_new_nodes((nodes, edges), known, self.columns, encoder)
        return _Near(self._known, new, around)

    def _shared(self, nodes: Any) -> tuple[Any, None]:
        """The known rows that share a value with new ones."""
        rows = [np.empty(0, np.int64)]
        for column, known in self._sharing.items():
            check_columns(nodes, [column], "nodes")
            rows += [known[name] for name in canonical_names(nodes[column]) if name in known]
        table = self._nodes.iloc[np.unique(np.concatenate(rows))].reset_index(drop=True)
        table.attrs = {**self._nodes.attrs, ALL_ROWS: len(self._nodes)}
        return table, None

    def _predict(self, near: _Near) -> Tensor:
        """Class probabilities of the new nodes, (T, C)."""
        near.walk({walk for one, *_ in self._members for walk in _walks(one, near)})
        parts = [w * _member(one, near, *known).double() for one, w, known in self._members]
        total = torch.stack(parts).sum(0)
        return (total / total.sum(1, keepdim=True)).float()


def _frame(table: Any) -> Any:
    return table if isinstance(table, pd.DataFrame) else pd.DataFrame(list(table or ()))


def _rows_by_value(nodes: Any, columns: TableColumns) -> dict[str, Any]:
    """The known rows by every value of the columns of links, if these alone tell of a new row.

    They do with times, when there are no edges, unless cells are lists or nearly all share a value.
    """
    found, links = dict[str, Any](), columns.link or ()
    if columns.time is None or columns.kinds:
        return {}
    for column in {parts_of(link, nodes)[0] for link in links}:
        cells = nodes[column].reset_index(drop=True)
        if has_lists(cells):
            return {}
        known = cells[~is_empty(cells, EMPTY_NUMBERS)]
        found[column] = known.index.to_series().groupby(canonical_names(known)).indices
        found[column] = {name: known.index[rows] for name, rows in found[column].items()}
        if max(map(len, found[column].values()), default=0) > NEARLY_ALL * len(nodes):
            return {}
    return found


def _is_local(one: Method, weighted: bool) -> bool:
    """Whether new nodes can be predicted without the whole graph."""
    if isinstance(one, NetworkMethod):  # of two convolutions, on features as they are
        names = "_logits", "_inputs", "predict_members"
        kept = all(getattr(type(one), name) is getattr(NetworkMethod, name) for name in names)
        return kept and one.enlarged_ is None and not weighted
    return isinstance(one, Logistic | Boosting | Unison | LabelPropagation)


def _walks(one: Method, near: _Near | None = None) -> list[Walk]:
    """What a member needs, beside the nodes around."""
    if isinstance(one, LabelPropagation):
        return [_diffusion("loops", int(one.steps_), one.restart)]
    if isinstance(one, Unison) and "structural" in one.view_names:
        return [_diffusion("loops", one.steps, one.teleport)]
    return [REACH, *([] if near is None else [near.rank_walk()])] if one.uses_labels else []


def _diffusion(kind: str, steps: int, share: float) -> Walk:
    """The weights of `diffuse`: some of the start is added again in every step."""
    return kind, (*(share * (1 - share) ** step for step in range(steps)), (1 - share) ** steps)


REACH = _diffusion("edges", SPREAD_STEPS, RESTART)


def _member(one: Method, near: _Near, nodes: Tensor, labels: Tensor) -> Tensor:
    """What a method predicts for the new nodes; these are its labelled nodes among the known."""
    known = one_hot(labels, one.num_classes_).double().numpy()

    def by_class(rows: Any) -> Floats:
        return np.asarray(rows[:, nodes.numpy()] @ known)

    hops = getattr(one, "hops", HOPS)
    if isinstance(one, LabelPropagation):
        counts = one_hot(one.labelled_.labels, one.num_classes_).float().sum(0)
        spread = torch.from_numpy(by_class(near.walked[_walks(one)[0]])).float()
        spread = spread / counts if one.balance else spread
        return spread.clamp(min=LEAST).log().softmax(1)
    if isinstance(one, Unison):
        views, parts = one.net_.views, dict[str, Tensor]()
        if "structural" in one.view_names:
            sums = near.symmetric_sums(_walks(one)[0])
            parts["structural"] = views.structural(sums, lambda x: x)
        if "ego" in one.view_names:
            ball = near.ball(HOPS)
            parts["ego"] = views._ego(ball.x, neighbour_averages(ball, HOPS), False)[: near.count]
        votes = one.net_.members(views.side_by_side(parts)).softmax(2)
        return vote_logits(votes, one.net_.votes).softmax(1)
    if not isinstance(one, Boosting):
        return one.predict_proba(near.ball(hops))[: near.count].cpu()
    context = None
    if one.context_width:
        total = known.sum(0).astype(np.float32)
        around = [by_class(rows) for rows in near.steps]
        reach = by_class(near.walked[REACH]) / np.maximum(total, 1)
        columns = near.place, joined_label_columns(around, reach, total)
        context = torch.from_numpy(np.concatenate(columns, axis=1)).float()
    ball, new = model_input(one, near.ball(hops)), torch.arange(near.count)
    return one.tree_logits(lambda some: one._table(ball, new, some, context)).softmax(1)


class _Known(NamedTuple):
    """Of the known graph what does not change: features, and the adjacency matrix."""

    x: Tensor
    matrix: Any
    weighted: bool

    @classmethod
    def of(cls, graph: Data) -> _Known:
        weight = edge_weight(graph)
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes, weight)
        matrix = sp.csr_array(matrix, dtype=np.float64, copy=True)
        matrix.eliminate_zeros()
        return cls(graph.x.float(), matrix, weight is not None)


class _Near:
    """New nodes, T, behind the known ones, N."""

    def __init__(self, known: _Known, given: NewNodes, around: NDArray[np.int64]) -> None:
        graph, self.given, self.known = given.tables.graph, given, known
        self.new, self.first = graph.x[given.rows].float(), len(known.x)
        self.count, self.size = len(self.new), self.first + len(self.new)
        self.place_of = np.append(around, np.arange(self.first, self.size))  # of the given rows
        arcs, weight = self.place_of[graph.edge_index.numpy()], edge_weight(graph)
        values = np.ones(arcs.shape[1]) if weight is None else weight.double().numpy()
        kept = (arcs >= self.first).any(0) & (values > 0)
        shape, index = (self.size, self.size), known.matrix.indices.dtype
        ends = tuple(arcs[:, kept].astype(index))
        pointers = np.append(known.matrix.indptr, [known.matrix.nnz] * self.count).astype(index)
        padded = sp.csr_array((known.matrix.data, known.matrix.indices, pointers), shape=shape)
        self.matrix = padded + sp.csr_array((values[kept], ends), shape=shape)
        self.scale = float(self.matrix.data.mean()) if known.weighted and self.matrix.nnz else 1.0
        self.walked, self.balls = dict[Walk, Any](), dict[int, Data]()
        self.sums = dict[Walk, Tensor]()
        self.degree = self.matrix.sum(axis=1)
        self.links = self.matrix  # without weights
        if known.weighted:
            parts = np.ones(self.matrix.nnz), self.matrix.indices, self.matrix.indptr
            self.links = sp.csr_array(parts, shape=shape)

    def walk(self, walks: set[Walk]) -> None:
        """Walk from the new nodes over means of neighbours, once for all walks of a kind."""
        for kind in {kind for kind, _ in walks}:
            mine = [weights for other, weights in walks if other == kind]
            matrix, loops = self.links if kind == "links" else self.matrix, kind == "loops"
            degree = np.diff(matrix.indptr) if kind == "links" else self.degree
            inverse = 1 / (degree / self.scale + 1 if loops else np.where(degree > 0, degree, 1))
            new, index = np.arange(self.count), matrix.indices.dtype
            ends = new.astype(index), (new + self.first).astype(index)
            rows = sp.csr_array((np.ones(self.count), ends), shape=(self.count, self.size))
            for step in range(max(map(len, mine))):
                if step and sp.issparse(rows):
                    rows.data *= inverse[rows.indices]
                    moved = rows @ matrix
                    rows = moved / self.scale + rows if loops else moved
                elif step:
                    rows *= inverse
                    moved = (matrix @ rows.T).T
                    rows = moved / self.scale + rows if loops else moved
                if sp.issparse(rows) and rows.nnz > DENSE * self.count * self.size:
                    rows = rows.toarray()
                for weights in mine:
                    if step < len(weights):
                        before = self.walked.get((kind, weights))
                        part = rows * weights[step]
                        self.walked[kind, weights] = part if before is None else before + part

    def symmetric_sums(self, walk: Walk) -> Tensor:
        """Sums of features over a walk, as by symmetric normalisation, (T, F)."""
        if walk not in self.sums:
            root, rows = np.sqrt(self.degree / self.scale + 1), self.walked[walk]
            dense = rows.toarray() if sp.issparse(rows) else rows
            sums = torch.from_numpy(dense * root[self.first :, None] / root).float()
            known = sums[:, : self.first] @ self.known.x
            self.sums[walk] = known + sums[:, self.first :] @ self.new
        return self.sums[walk]

    @cached_property
    def steps(self) -> tuple[Any, Any]:
        """Edges of the new nodes, and means over those of their neighbours, (T, N + T) each."""
        rows = self.matrix[self.first :]
        degree = np.maximum(rows.sum(axis=1), 1e-12)
        second = sp.diags_array(1 / degree) @ rows @ self.matrix
        return rows / self.scale, second / self.scale

    def rank_walk(self) -> Walk:
        """The weights of PageRank, which begins at 1 everywhere."""
        alone, levels = float((np.diff(self.links.indptr) == 0).mean()), [1.0]
        for _ in range(RANK_STEPS):  # the rank of a node without neighbours
            levels.append(DAMPING * alone * levels[-1] + 1 - DAMPING)
        weights = (DAMPING**step * level for step, level in enumerate(reversed(levels)))
        return "links" if self.known.weighted else "edges", tuple(weights)

    @cached_property
    def place(self) -> Floats:
        """The columns of `place_columns` for the new nodes, (T, 3)."""
        columns = place_columns(self.ball(1))[: self.count].double().numpy().copy()
        degree, walk = np.diff(self.links.indptr), self.rank_walk()
        inverse, start = 1 / np.maximum(degree, 1), walk[1][0]
        # walking from a node, divided by degrees, is walking to it
        sums = np.asarray(self.walked[walk] @ inverse) - start * inverse[self.first :]
        columns[:, 0] = np.log(start + sums * degree[self.first :])
        return columns

    def ball(self, hops: int) -> Data:
        """New nodes first, all within some hops, and the neighbours of these, without theirs."""
        if hops in self.balls:
            return self.balls[hops]
        inner, given = np.arange(self.first, self.size), self.given.tables.graph
        for _ in range(hops):
            inner = np.append(inner, np.setdiff1d(self.matrix[inner].indices, inner))
        rows = self.matrix[inner].tocoo()
        nodes = np.append(inner, np.setdiff1d(rows.col, inner))
        place = np.zeros(self.size, np.int64)
        place[nodes] = np.arange(len(nodes))
        x = self.known.x[torch.from_numpy(np.minimum(nodes, self.first - 1))]
        x[nodes >= self.first] = self.new[nodes[nodes >= self.first] - self.first]
        ends = torch.from_numpy(np.stack([rows.row, place[rows.col]]).astype(np.int64))
        self.balls[hops] = ball = Data(x=x, edge_index=ends)
        if self.known.weighted:
            ball.edge_weight = torch.from_numpy(rows.data).float()
        if "relation_index" in given:
            relation, *pairs = given.relation_index.numpy()
            mine = self.place_of[pairs[0]] >= self.first  # means in a relation are of new nodes
            pairs = place[self.place_of[np.stack(pairs)[:, mine]]]
            ball.relation_index = torch.from_numpy(np.vstack([relation[mine], pairs]))
            ball.num_relations = given.num_relations
            if "relation_weight" in given:
                ball.relation_weight = given.relation_weight[torch.from_numpy(mine)]
        return ball
