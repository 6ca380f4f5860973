"""suggest: the nodes to label next, unlike one another, with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.nn.functional import one_hot, pad
from torch_geometric.data import Data

from evengraph.core.errors import unknown
from evengraph.core.rng import generator
from evengraph.core.task import bare_graph, count_relations
from evengraph.datasets import DATASETS, load
from evengraph.desk.strategies import (
    STRATEGIES,
    Clusters,
    Evidence,
    find_clusters,
    find_hunt,
    notes,
    reasons,
)
from evengraph.methods import Method
from evengraph.methods.bases.saving import MAIN
from evengraph.nn.members import Diffusion, Views
from evengraph.ops.sparse import Sparse, propagation_matrix, weighted_adjacency
from evengraph.pipeline.sources import open_source
from evengraph.pipeline.table_model import TableModel
from evengraph.tables import TableGraph, open_graph
from evengraph.tables.columns import FewClassesError

COMPONENTS = 96  # of each of the two views
DIFFUSION = Diffusion(steps=10, teleport=0.1)
VIEWS = ("structural", "ego")
CHOICE = 10  # times the budget: so many of the highest scores are compared

MEMBERS = 8  # of the quick model
PENALTY = 0.1  # L2, per labelled node
ITERATIONS = 30  # of L-BFGS
PRECISION = 1e-6  # of the loss, relative; it is computed in 32 bits
LEVEL_PENALTY = 0.01  # L2 of the last change of the intercepts
PREDICTED = 100_000  # rows predicted at a time
DISTANCES = 200_000_000  # between rows and labels at a time, 800 MB


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """A graph, the labels so far, and the ids and classes that users know.

    What takes long (rows, propagation) is computed on first use and then kept, so that the same
    pool can be asked again after every batch: `replace(pool, labels=...)` would start over, so
    give `labels` to `suggest` instead.

    Args:
        graph: Features and edges.
        labels: -1 for unlabelled.
        class_names: A name for each class, those without labels included.
        ids: Ids of the nodes as users know them.
        method: A fitted method whose predictions to use; None for a quick model of our own.

    Shapes:
        labels: int64, (N,); ids: (N,)
    """

    graph: Data
    labels: Tensor
    class_names: tuple[str, ...] = ()
    ids: Sequence[Any]
    method: Method | None = None

    @classmethod
    def open(
        cls,
        data: Any,
        edges: Any = None,
        *,
        known: Any = None,
        classes: Sequence[str] = (),
        **columns: Any,
    ) -> Self:
        """Open what `suggest` takes.

        Args:
            data: A fitted `TableModel` or its folder; a graph, with -1 for unlabelled; a
                `TableGraph`; the name of a data set; or tables, as in `open_graph`.
            edges: The edges table, where `data` is a nodes table.
            known: For a model, the tables or the graph that it was trained on, if they are no
                longer at their old path.
            classes: Names of classes, those included that nobody has labelled yet.
            columns: The column arguments of `open_graph`, for tables.
        """
        if isinstance(data, str | Path) and (Path(data).expanduser() / MAIN).is_file():
            data = TableModel.load(Path(data).expanduser())
        if isinstance(data, TableModel):
            pool = cls._of_model(data, known if edges is None else (known, edges), columns)
        elif isinstance(data, TableGraph):
            pool = cls._of_graph(data.graph, data)
        elif isinstance(data, Data):
            pool = cls._of_graph(data)
        else:
            try:
                source = open_source(data, edges, **columns)
                pool = cls._of_graph(source.graph, source.tables)
            except FewClassesError as few:  # one class or none: the label column is no feature
                columns["drop"] = [*columns.get("drop", ()), few.column]
                columns.pop("label", None)
                tables = open_graph(data, edges=edges, **columns)
                labels = torch.where(torch.from_numpy(few.labelled), 0, -1)
                pool = cls._of_graph(tables.graph, tables)
                pool = replace(pool, labels=labels, class_names=few.classes)
        names = dict.fromkeys((*pool.class_names, *map(str, classes)))
        return pool if len(names) == pool.num_classes else pool._renamed(tuple(names))

    @classmethod
    def _of_graph(cls, graph: Data, tables: TableGraph | None = None) -> Self:
        size = graph.num_nodes
        labels = torch.full((size,), -1) if graph.y is None else graph.y.cpu().long()
        if labels.shape != (size,):
            raise ValueError(f"graph.y must hold one label for each of the {size} nodes.")
        names = tuple(map(str, graph.get("class_names") or range(int(labels.max()) + 1)))
        ids: Sequence[Any] = range(size) if tables is None else tables.ids.tolist()
        return cls(graph=bare_graph(graph).to("cpu"), labels=labels, class_names=names, ids=ids)

    @classmethod
    def _of_model(cls, model: TableModel, known: Any, columns: dict[str, Any]) -> Self:
        """The graph of a model, whose classes come first; others may have been labelled since."""
        method, classes = model.method_, model.classes_
        trained_on = model.info.trained_on
        if known is None and trained_on is not None and trained_on.data in DATASETS:
            known = load(trained_on.data)
        if isinstance(known, Data):
            labels = torch.full((known.num_nodes,), -1)
            labels[method.labelled_.nodes.cpu()] = method.labelled_.labels.cpu()
            pool = cls._of_graph(known)
            return replace(pool, labels=labels, class_names=classes, method=method)
        label = {"label": model.info.columns.label, "unlabelled": model.info.columns.unlabelled}
        named = {name: value for name, value in {**label, **columns}.items() if value is not None}
        tables = model.known_graph(known, named)
        pool = cls._of_graph(tables.graph, tables)
        names = (*classes, *(name for name in tables.class_names if name not in classes))
        return replace(pool._renamed(names), method=method)

    def _renamed(self, names: tuple[str, ...]) -> Self:
        """The same labels with other numbers: the classes are `names`, in this order."""
        numbers = torch.tensor([names.index(name) for name in self.class_names] + [-1])
        return replace(self, labels=numbers[self.labels], class_names=names)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @cached_property
    def predictions(self) -> Tensor:
        """Probabilities by the method, (N, C); 0 for classes without training labels."""
        if self.method is None:
            raise ValueError("The pool has no fitted method.")
        probabilities = self.method.predict_proba(self.graph)
        return pad(probabilities, (0, self.num_classes - probabilities.shape[1]))

    @cached_property
    def rows(self) -> Tensor:
        """Every node as a row of numbers, (N, d)."""
        return node_rows(self.graph)

    @cached_property
    def clusters(self) -> Clusters:
        """Groups of nodes that are alike."""
        return find_clusters(self.rows)

    @cached_property
    def operator(self) -> Sparse:
        """Averages over a node and its neighbours, (N, N)."""
        return propagation_matrix(weighted_adjacency(self.graph), torch.device("cpu"), how="row")


@torch.no_grad()
def node_rows(graph: Data) -> Tensor:
    """Principal components of a node's features, of its neighbours' and of those further away.

    Shapes:
        returns: float32, (N, d)
    """
    graph = bare_graph(graph).to("cpu")
    if not graph.x.shape[1]:
        return torch.zeros(graph.num_nodes, 1)
    relations = count_relations(graph)
    views = Views(VIEWS, graph.x.shape[1], COMPONENTS, DIFFUSION, relations)
    rows: Tensor = torch.cat(list(views(graph, fit=True)), dim=1)
    used = (rows.amin(0) < 0) | (rows.amax(0) > 0)
    return rows[:, used] if used.any() else rows[:, :1]


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A node to label.

    Args:
        id: Its id in the user's table; its row in a graph without ids.
        row: Its row in the graph.
        score: Of the strategy; higher comes first, apart from what makes a batch diverse.
        reason: Why, in words.
        predicted: The name of the most probable class; None without a model.
        probability: Of this class; None without a model.
    """

    id: Any
    row: int
    score: float
    reason: str
    predicted: str | None
    probability: float | None


@dataclass(frozen=True, kw_only=True)
class Suggestions:
    """Nodes to label next, the first first.

    Args:
        nodes: The suggestions.
        strategy: The name of the strategy.
        notes: What to know about all of them, in sentences.
        labelled: Labels of each class so far, by name.
        unlabelled: Nodes that could have been suggested.
        model: Whose probabilities they are, in words; empty without a model.
        probabilities: What the model predicts for all nodes, (N, C); None without a model.
    """

    nodes: tuple[Suggestion, ...]
    strategy: str
    notes: tuple[str, ...]
    labelled: dict[str, int]
    unlabelled: int
    model: str = ""
    probabilities: Tensor | None = None

    def as_dict(self) -> dict[str, Any]:
        """Everything but the probabilities, ready for JSON."""
        return {
            "strategy": self.strategy,
            "model": self.model,
            "labelled": self.labelled,
            "unlabelled": self.unlabelled,
            "notes": list(self.notes),
            "nodes": [asdict(node) for node in self.nodes],
        }


def suggest(
    data: Any,
    budget: int = 20,
    strategy: str = "default",
    *,
    seed: int = 0,
    labels: Tensor | None = None,
    exclude: Iterable[int] = (),
    **options: Any,
) -> Suggestions:
    """Choose the nodes to label next.

    A model's own predictions are used; without a model, a quick one is fitted to the labels
    (`scout`). Without labels of two classes, nodes are chosen by the graph and the features alone.

    Args:
        data: A `Pool`, or what `Pool.open` takes: a fitted `TableModel` or its folder, a graph
            with -1 for unlabelled, tables.
        budget: How many nodes.
        strategy: A name in `STRATEGIES`.
        seed: Of everything random.
        labels: Labels that replace those of the data: class numbers, -1 for unlabelled, (N,).
        exclude: Rows that must not be offered, such as those that somebody else is looking at.
        options: What else `Pool.open` takes: edges, known and the columns of tables.
    """
    if budget < 1:
        raise ValueError(f"budget must be at least 1, got {budget}.")
    if strategy not in STRATEGIES:
        raise ValueError(unknown("strategy", strategy, STRATEGIES))
    pool = data if isinstance(data, Pool) else Pool.open(data, **options)
    evidence = gather(pool, labels, exclude, budget=budget, seed=seed)
    chosen, scores = choose_nodes(evidence, strategy)
    nodes = []
    for row, text in zip(chosen.tolist(), reasons(evidence, chosen, pool.class_names), strict=True):
        predicted = probability = None
        if evidence.probabilities is not None:
            top = evidence.probabilities[row].max(0)
            predicted = pool.class_names[int(top.indices)]
            probability = round(float(top.values), 6)
        nodes.append(
            Suggestion(
                id=pool.ids[row],
                row=row,
                score=round(float(scores[row]), 6),
                reason=text,
                predicted=predicted,
                probability=probability,
            )
        )
    return Suggestions(
        nodes=tuple(nodes),
        strategy=strategy,
        notes=notes(evidence, chosen, pool.class_names),
        labelled=dict(zip(pool.class_names, evidence.counts.tolist(), strict=True)),
        unlabelled=int(evidence.candidates.sum()),
        model=_model_words(pool, evidence),
        probabilities=evidence.probabilities,
    )


def _model_words(pool: Pool, evidence: Evidence) -> str:
    if evidence.probabilities is None:
        return ""
    if pool.method is None:
        return f"a quick model (softmax regressions) fitted to these {len(evidence.known):,} labels"
    learnt = len(pool.method.labelled_.nodes)
    return f"the saved model ({pool.method.full_title}, {learnt:,} labels), not calibrated"


def gather(
    pool: Pool,
    labels: Tensor | None = None,
    exclude: Iterable[int] = (),
    *,
    budget: int = 20,
    seed: int = 0,
) -> Evidence:
    """What strategies look at: the pool, with a model's predictions if there are labels."""
    labels = pool.labels if labels is None else torch.as_tensor(labels).cpu().long().clamp(min=-1)
    if labels.shape != pool.labels.shape:
        raise ValueError(f"labels must hold one number for each of the {len(pool.labels)} nodes.")
    if (most := int(labels.max())) >= pool.num_classes:
        raise ValueError(
            f"labels must be below {pool.num_classes}, the number of classes, got {most}."
        )
    candidates = labels < 0
    candidates[list(exclude)] = False
    if not candidates.any():
        raise ValueError("Every node has a label or is excluded; there is nothing to suggest.")
    if pool.method is None:
        probabilities = scout(pool.rows, labels, pool.num_classes, seed=seed)
    else:
        probabilities = pool.predictions
    return Evidence(
        graph=pool.graph,
        rows=pool.rows,
        clusters=pool.clusters,
        operator=pool.operator,
        labels=labels,
        candidates=candidates,
        num_classes=pool.num_classes,
        probabilities=probabilities,
        budget=budget,
        seed=seed,
    )


def choose_nodes(evidence: Evidence, name: str = "default") -> tuple[Tensor, Tensor]:
    """The nodes to label next, in order, at most (budget,), and the scores of all, (N,)."""
    strategy = STRATEGIES[name]
    if strategy.needs_model and evidence.probabilities is None:
        raise ValueError(
            f"strategy {name} needs labels of at least two classes, got "
            f"{int((evidence.counts > 0).sum())}; default does not."
        )
    scores, hunt = strategy.score(evidence), find_hunt(evidence) if strategy.hunts else None
    groups = [(evidence.candidates, evidence.budget)]
    if hunt is not None and hunt.number:
        groups = [(hunt.likely, hunt.number), (evidence.candidates, evidence.budget - hunt.number)]
    chosen = torch.zeros(0, dtype=torch.int64)
    for place, (candidates, number) in enumerate(groups):
        left, by, spread = candidates.clone(), scores, strategy.spread
        left[chosen] = False
        if hunt is not None and hunt.surest and place == 0 and len(groups) > 1:
            assert evidence.probabilities is not None
            by, spread = evidence.probabilities[:, hunt.label], 0.0
        nodes = choose(by, evidence.rows, left, number, spread=spread)
        chosen = torch.cat([chosen, nodes])
    return chosen, scores


def choose(
    scores: Tensor, rows: Tensor, candidates: Tensor, budget: int, *, spread: float = 1.0
) -> Tensor:
    """Take nodes one by one: the highest score, less what it shares with those taken before.

    Shapes:
        scores: (N,), rows: (N, d), candidates: bool, (N,)
        returns: int64, at most (budget,), in order of choice
    """
    nodes = candidates.nonzero().squeeze(1)
    budget = min(budget, len(nodes))
    if not budget:
        return nodes[:0]
    order = scores[nodes].argsort(descending=True, stable=True)
    nodes = nodes[order[: CHOICE * budget]]
    values, rows = scores[nodes], rows[nodes]
    low, high = values.min(), values.max()
    values = (values - low) / (high - low) if high > low else torch.zeros_like(values)
    # the mean squared distance between two rows, never 0
    width = (2 * (rows - rows.mean(0)).square().sum(1).mean()).clamp(min=1e-12)
    taken: list[int] = []
    shared = torch.zeros_like(values)
    for _ in range(budget):
        value = values - spread * shared
        value[taken] = -torch.inf
        taken.append(int(value.argmax()))
        distance = (rows - rows[taken[-1]]).square().sum(1)
        shared = shared.maximum(torch.exp(-distance / width))
    return nodes[taken]


def scout(rows: Tensor, labels: Tensor, num_classes: int, *, seed: int = 0) -> Tensor | None:
    """Fit a committee to all labels and predict every node; None with fewer than two classes.

    Every member sees the labels with random weights (the Bayesian bootstrap), so that members
    differ where the labels do not decide. Classes weigh the same, however many labels they have; a
    class without any gets the probability 0. Labels that were chosen crowd where classes meet, so a
    label weighs the square root of the number of nodes that it is the nearest one of; for the
    intercepts, which decide where one class ends and the next begins, the number itself.

    Shapes:
        rows: (N, d), labels: int64, (N,), -1 for unlabelled
        returns: (N, C)
    """
    nodes = (labels >= 0).nonzero().squeeze(1)
    classes, targets = labels[nodes].unique(return_inverse=True)
    if len(classes) < 2:
        return None
    draws = torch.rand(MEMBERS, len(nodes), generator=generator(seed)).clamp(min=1e-6)
    weights, nodes_each = -draws.log(), stood_for(rows, rows[nodes])
    model = fit_members(rows[nodes], targets, weights * nodes_each.sqrt())
    model = level(model, rows[nodes], targets, weights * nodes_each)
    result = rows.new_zeros(len(rows), num_classes)
    votes = rows.new_full((MEMBERS,), 1 / MEMBERS)
    for start in range(0, len(rows), PREDICTED):
        part = slice(start, start + PREDICTED)
        found = predict_members(rows[part], model)
        result[part, classes] = torch.einsum("m,mnc->nc", votes, found)
    return result


def stood_for(rows: Tensor, labelled: Tensor) -> Tensor:
    """The number of rows that each of the labelled ones is the nearest of, at least 1, (n,)."""
    parts = rows.split(min(PREDICTED, max(1, DISTANCES // len(labelled))))
    nearest = torch.cat([torch.cdist(part, labelled).argmin(1) for part in parts])
    return torch.bincount(nearest, minlength=len(labelled)).clamp(min=1).to(rows)


def fit_members(rows: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Fit one softmax regression per row of weights; a label of weight 0 is not seen.

    All are one problem for the solver, since members share nothing.

    Shapes:
        rows: (n, d); targets: int64, (n,), every class at least once; weights: (M, n)
        returns: (M, d + 1, C)
    """
    weights = _balanced(weights, targets)
    rows = torch.cat([rows, rows.new_ones(len(rows), 1)], dim=1)
    shape = rows.shape[1], len(weights), int(targets.max()) + 1
    penalty = (PENALTY / (weights > 0).sum(1))[:, None].repeat(shape[0], 1, 1)
    penalty[-1] = 0  # intercepts are free

    def loss(model: Tensor) -> tuple[Tensor, Tensor]:
        logits = (rows @ model.flatten(1)).view(-1, *shape[1:])
        value, slope = _loss(logits, targets, weights)
        decay = penalty * model
        return value + (decay * model).sum(), (rows.T @ slope.flatten(1)).view(shape) + 2 * decay

    return _minimise(loss, rows.new_zeros(shape)).transpose(0, 1)


def level(model: Tensor, rows: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Fit the intercepts of `fit_members` again, with other weights; the slopes stay."""
    weights, logits = _balanced(weights, targets), _logits(rows, model)

    def loss(change: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = _loss(logits + change, targets, weights)
        decay = LEVEL_PENALTY * change
        return value + (decay * change).sum(), slope.sum(0) + 2 * decay

    change = _minimise(loss, torch.zeros_like(model[:, -1]))
    return torch.cat([model[:, :-1], (model[:, -1] + change).unsqueeze(1)], dim=1)


def predict_members(rows: Tensor, model: Tensor) -> Tensor:
    """Probabilities by every member, (M, n, C)."""
    return _logits(rows, model).softmax(2).transpose(0, 1)


def _logits(rows: Tensor, model: Tensor) -> Tensor:
    slopes = model[:, :-1].transpose(0, 1).flatten(1)
    return torch.addmm(model[:, -1].flatten(), rows, slopes).view(-1, len(model), model.shape[2])


def _balanced(weights: Tensor, targets: Tensor) -> Tensor:
    """Weights of labels that sum to the same in each class, and to one in all, (M, n)."""
    number = int(targets.max()) + 1
    sums = weights.new_zeros(len(weights), number).index_add_(1, targets, weights)
    present = (sums > 0).sum(1, keepdim=True)
    return weights / sums.clamp(min=1e-12)[:, targets] / present


def _loss(logits: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted cross-entropy of logits, (n, M, C), summed over members, and its gradient."""
    aims = one_hot(targets, logits.shape[2]).to(logits).unsqueeze(1)
    logs, each = logits.log_softmax(2), weights.T.unsqueeze(2)
    return -(each * aims * logs).sum(), each * (logs.exp() - aims)


def _minimise(loss: Callable[[Tensor], tuple[Tensor, Tensor]], start: Tensor) -> Tensor:
    def flat(values: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = loss(torch.from_numpy(values).to(start).view_as(start))
        return float(value), slope.double().numpy().ravel()

    options = {"maxiter": ITERATIONS, "ftol": PRECISION}
    first = start.double().numpy().ravel()
    found = minimize(flat, first, jac=True, method="L-BFGS-B", options=options)
    return torch.from_numpy(found.x).to(start).view_as(start)
