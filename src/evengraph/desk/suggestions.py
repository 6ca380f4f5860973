"""suggest: the nodes to label next, unlike one another, with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data

from evengraph.core.errors import unknown
from evengraph.core.task import bare_graph, count_relations
from evengraph.datasets import DATASETS, load
from evengraph.desk.evidence import (
    Clusters,
    Evidence,
    find_clusters,
    find_hunt,
    notes,
    reasons,
    vote,
)
from evengraph.desk.strategies import STRATEGIES, scout
from evengraph.methods import Method
from evengraph.methods.bases.method import Committee
from evengraph.methods.bases.saving import MAIN
from evengraph.nn.members import Diffusion, Views
from evengraph.ops.sparse import Sparse, propagation_matrix, weighted_adjacency
from evengraph.pipeline.sources import GraphSource, open_source
from evengraph.pipeline.table_model import TableModel
from evengraph.tables import TableGraph, open_graph
from evengraph.tables.columns import FewClassesError

CHOICE = 10  # times the budget: so many of the highest scores are compared


def choose(
    scores: Tensor,
    rows: Tensor,
    candidates: Tensor,
    budget: int,
    *,
    spread: float = 1.0,
) -> Tensor:
    """Take nodes one by one: the highest score, less what it shares with those taken before.

    Args:
        spread: What a copy of a chosen node loses, relative to the range of scores.

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
    values, rows = _unit(scores[nodes]), rows[nodes]
    width = _typical_distance(rows)
    taken: list[int] = []
    shared = torch.zeros_like(values)
    for _ in range(budget):
        value = values - spread * shared
        value[taken] = -torch.inf
        taken.append(int(value.argmax()))
        distance = (rows - rows[taken[-1]]).square().sum(1)
        shared = shared.maximum(torch.exp(-distance / width))
    return nodes[taken]


def _unit(scores: Tensor) -> Tensor:
    """Scores between 0 and 1."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else torch.zeros_like(scores)


def _typical_distance(rows: Tensor) -> Tensor:
    """Mean squared distance between two rows, never 0."""
    return (2 * (rows - rows.mean(0)).square().sum(1).mean()).clamp(min=1e-12)


COMPONENTS = 96  # of each of the two views
DIFFUSION = Diffusion(steps=10, teleport=0.1)
VIEWS = ("structural", "ego")


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
    views = Views(VIEWS, graph.x.shape[1], COMPONENTS, DIFFUSION, 1, relations)
    rows: Tensor = torch.cat(list(views(graph, fit=True)), dim=1)
    used = (rows.amin(0) < 0) | (rows.amax(0) > 0)
    return rows[:, used] if used.any() else rows[:, :1]


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
        pool = cls._opened(data, edges, known, columns)
        names = dict.fromkeys((*pool.class_names, *map(str, classes)))
        return pool if len(names) == pool.num_classes else pool.renamed(tuple(names))

    @classmethod
    def _opened(cls, data: Any, edges: Any, known: Any, columns: dict[str, Any]) -> Self:
        if isinstance(data, str | Path) and (Path(data).expanduser() / MAIN).is_file():
            data = TableModel.load(Path(data).expanduser())
        if isinstance(data, TableModel):
            return cls._of_model(data, known if edges is None else (known, edges), columns)
        if isinstance(data, TableGraph):
            return cls._of_graph(data.graph, data.ids.tolist())
        if isinstance(data, Data):
            return cls._of_graph(data)
        try:
            return cls.of_source(open_source(data, edges, **columns))
        except FewClassesError as few:
            drop = [*columns.pop("drop", ()), few.column]
            columns.pop("label", None)
            tables = open_graph(data, edges=edges, drop=drop, **columns)
            return cls._of_few(tables, few)

    @classmethod
    def of_source(cls, source: GraphSource) -> Self:
        """The nodes of a graph that has been opened."""
        ids = None if source.tables is None else source.tables.ids.tolist()
        return cls._of_graph(source.graph, ids)

    @classmethod
    def _of_few(cls, tables: TableGraph, few: FewClassesError) -> Self:
        """Tables whose label column holds one class or none, which have been opened without it."""
        labels = torch.where(torch.from_numpy(few.labelled), 0, -1)
        pool = cls._of_graph(tables.graph, tables.ids.tolist())
        return replace(pool, labels=labels, class_names=few.classes)

    @classmethod
    def _of_graph(cls, graph: Data, ids: Sequence[Any] | None = None) -> Self:
        size = graph.num_nodes
        labels = torch.full((size,), -1) if graph.y is None else graph.y.cpu().long()
        if labels.shape != (size,):
            raise ValueError(f"graph.y must hold one label for each of the {size} nodes.")
        names = tuple(map(str, graph.get("class_names") or range(int(labels.max()) + 1)))
        return cls(
            graph=bare_graph(graph).to("cpu"),
            labels=labels,
            class_names=names,
            ids=range(size) if ids is None else ids,
        )

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
        pool = cls._of_graph(tables.graph, tables.ids.tolist())
        names = (*classes, *(name for name in tables.class_names if name not in classes))
        return replace(pool.renamed(names), method=method)

    def renamed(self, names: tuple[str, ...]) -> Self:
        """The same labels with other numbers: the classes are `names`, in this order."""
        numbers = torch.tensor([names.index(name) for name in self.class_names] + [-1])
        return replace(self, labels=numbers[self.labels], class_names=names)

    @property
    def num_classes(self) -> int:
        """Number of classes, those without labels included."""
        return len(self.class_names)

    @cached_property
    def predictions(self) -> Committee:
        """What the members of the method predict, or the method alone; 0 for unknown classes."""
        if self.method is None:
            raise ValueError("The pool has no fitted method.")
        committee = self.method.predict_members(self.graph)
        if committee is None:
            committee = Committee.even(self.method.predict_proba(self.graph).unsqueeze(0))
        probabilities, weights = committee
        return Committee(
            pad(probabilities, (0, self.num_classes - probabilities.shape[2])), weights
        )

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
        probabilities: What the model predicts for all nodes, (N, C); None without a model.
    """

    nodes: tuple[Suggestion, ...]
    strategy: str
    notes: tuple[str, ...]
    labelled: dict[str, int]
    unlabelled: int
    probabilities: Tensor | None = None

    def as_dict(self) -> dict[str, Any]:
        """Everything but the probabilities, ready for JSON."""
        return {
            "strategy": self.strategy,
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
    return _describe(pool, evidence, strategy, chosen, scores)


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
    for candidates, number in groups:
        left = candidates.clone()
        left[chosen] = False
        nodes = choose(scores, evidence.rows, left, number, spread=strategy.spread)
        chosen = torch.cat([chosen, nodes])
    return chosen, scores


def gather(
    pool: Pool,
    labels: Tensor | None = None,
    exclude: Iterable[int] = (),
    *,
    budget: int = 20,
    seed: int = 0,
) -> Evidence:
    """What strategies look at: the pool, with a model's predictions if there are labels."""
    labels = pool.labels if labels is None else _checked(labels, pool)
    candidates = labels < 0
    candidates[list(exclude)] = False
    if not candidates.any():
        raise ValueError("Every node has a label or is excluded; there is nothing to suggest.")
    if pool.method is None:
        committee = scout(pool.rows, labels, pool.num_classes, seed=seed)
    else:
        committee = pool.predictions
    return Evidence(
        graph=pool.graph,
        rows=pool.rows,
        clusters=pool.clusters,
        operator=pool.operator,
        labels=labels,
        candidates=candidates,
        num_classes=pool.num_classes,
        probabilities=None if committee is None else vote(committee),
        budget=budget,
        seed=seed,
    )


def _checked(labels: Tensor, pool: Pool) -> Tensor:
    labels = torch.as_tensor(labels).cpu().long()
    if labels.shape != pool.labels.shape:
        raise ValueError(f"labels must hold one number for each of the {len(pool.labels)} nodes.")
    if int(labels.max()) >= pool.num_classes:
        raise ValueError(
            f"labels must be below {pool.num_classes}, the number of classes, got "
            f"{int(labels.max())}."
        )
    return labels.clamp(min=-1)


def _describe(
    pool: Pool, evidence: Evidence, strategy: str, chosen: Tensor, scores: Tensor
) -> Suggestions:
    """The chosen nodes with what users want to know of them."""
    texts = reasons(evidence, chosen, pool.class_names)
    tops: list[tuple[str, float] | tuple[None, None]] = [(None, None)] * len(texts)
    if evidence.probabilities is not None:
        values, classes = evidence.probabilities[chosen].max(1)
        names = [pool.class_names[index] for index in classes.tolist()]
        tops = list(zip(names, values.tolist(), strict=True))
    nodes = tuple(
        Suggestion(
            id=pool.ids[row],
            row=row,
            score=float(scores[row]),
            reason=text,
            predicted=name,
            probability=probability,
        )
        for row, text, (name, probability) in zip(chosen.tolist(), texts, tops, strict=True)
    )
    return Suggestions(
        nodes=nodes,
        strategy=strategy,
        notes=notes(evidence, chosen, pool.class_names),
        labelled=dict(zip(pool.class_names, evidence.counts.tolist(), strict=True)),
        unlabelled=int(evidence.candidates.sum()),
        probabilities=evidence.probabilities,
    )
