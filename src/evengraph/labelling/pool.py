"""Pool: a graph whose nodes may be labelled, opened once and asked many times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data

from evengraph.core.graphs import bare_graph
from evengraph.datasets import DATASETS, load
from evengraph.labelling.clusters import Clusters, find_clusters
from evengraph.labelling.rows import node_rows
from evengraph.methods import Method
from evengraph.methods.bases.committee import Committee
from evengraph.methods.bases.model_folder import MAIN
from evengraph.ops import propagation_matrix, weighted_adjacency
from evengraph.ops.sparse import Sparse
from evengraph.pipeline.graph_source import GraphSource, open_source
from evengraph.pipeline.table_model import TableModel
from evengraph.tables import TableGraph, open_graph
from evengraph.tables.roles import FewClassesError


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
