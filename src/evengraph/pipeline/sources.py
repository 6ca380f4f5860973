"""GraphSource: a graph, where it came from, and how to split it by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.datasets import DATASETS, load
from evengraph.datasets.loading import lookup
from evengraph.methods import Method
from evengraph.methods.auto import Fitter
from evengraph.splits import SPLITS, SplitProtocol
from evengraph.tables import FeatureEncoder, NoLabelError, TableColumns, TableGraph, open_graph

TRAIN, VAL = 0.6, 0.2


class GraphOnDisk(Fitter, Protocol):
    """A graph that stays on disk; the wing `disk` opens it."""

    @property
    def packed(self) -> Any:
        """Its arrays, with `num_nodes` and `num_edges`."""

    def encoding(self) -> tuple[FeatureEncoder, TableColumns]:
        """What made the features, and the columns of the tables."""

    def predict_task(self, method: Method, task: Task) -> tuple[Task, Tensor]:
        """The task on the nodes of its three sets alone, and their class probabilities."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphSource:
    """A graph and where it came from."""

    name: str
    graph: Data
    tables: TableGraph | None = None  # with ids and encoder, if built from files or tables
    data: str | None = None  # a data set's name or the absolute path of files; None for objects
    columns: Mapping[str, str | bool] = field(default_factory=dict)  # that the caller named
    disk: GraphOnDisk | None = None  # `graph` then holds the labels alone

    @property
    def is_dataset(self) -> bool:
        """Whether it is one of evengraph's data sets."""
        return self.tables is None and self.data is not None and self.disk is None

    def encoding(self, task: Task) -> tuple[FeatureEncoder | None, TableColumns]:
        """What made the features, and the columns of the tables; None for a graph."""
        if self.disk is not None:
            return self.disk.encoding()
        tables = tables_of(task, self)
        return (None, TableColumns()) if tables is None else (tables.encoder, tables.columns)

    @property
    def default_split(self) -> str:
        """The name in `SPLITS` of the protocol to use unless the user names another."""
        if self.is_dataset:
            return "step"
        timed = self.tables is not None and "time" in self.graph
        if timed and "split" not in self.columns:
            return "bytime"  # a time column that was named beats a split column that was guessed
        masks = [f"{part}_mask" in self.graph for part in ("train", "val", "test")]
        return "given" if any(masks) else "natural"

    def default_shares(self, split: str) -> dict[str, float]:
        """The shares to train and validate on under a protocol, where they are not its defaults."""
        if self.is_dataset or split not in ("natural", "bytime"):
            return {}
        return {"train": TRAIN, "val": VAL}  # of a user's labels, which are few

    def make_split(self, *, of_dataset: str = "step") -> SplitProtocol:
        """The default protocol; one of evengraph's data sets has a given one."""
        name = of_dataset if self.is_dataset else self.default_split
        protocol: SplitProtocol = SPLITS[name](**self.default_shares(name))
        return protocol


def tables_of(task: Task, source: GraphSource) -> TableGraph | None:
    """The tables of a source; if a split by time hides edges, with the features of that time."""
    tables = source.tables
    if tables is None or "encoder" not in task.graph:
        return tables
    encoder, columns = task.graph.encoder, task.graph.columns
    return replace(tables, graph=task.graph, encoder=encoder, columns=columns)


def open_dataset(name: str) -> GraphSource:
    """Load one of evengraph's data sets."""
    return GraphSource(name=name, graph=load(name), data=name)


def open_source(data: Any, edges: Any = None, **columns: Any) -> GraphSource:
    """Open a data set by its name, or a user's labelled graph as `open_tables` does."""
    if isinstance(data, str) and data in DATASETS:
        for name in (*(["edges"] if edges is not None else []), *columns):
            raise ValueError(f"{name} is for tables of your own, and {data} is a data set.")
        return open_dataset(data)
    return open_tables(data, edges, **columns)


def open_tables(nodes: Any, edges: Any = None, **columns: Any) -> GraphSource:
    """Open a user's labelled graph: what `open_graph` takes, or a PyG graph."""
    given = {key: value for key, value in columns.items() if value is not None and value != ()}
    if isinstance(nodes, Data):
        if given or edges is not None:
            names = ", ".join(given) or "edges"
            raise ValueError(f"A graph takes no {names}: it holds its own edges and labels.")
        return GraphSource(name="graph", graph=nodes)
    is_path = isinstance(nodes, str | Path)
    path = Path(nodes if is_path else "tables").expanduser()
    if is_path and not path.exists() and not path.suffix and path.name == str(nodes):
        try:
            lookup(path.name)
        except ValueError as error:
            raise ValueError(f"There is no folder {nodes} and no such data set: {error}") from None
    tables = open_graph(nodes, edges=edges, **given)
    if tables.label_candidates:
        raise NoLabelError(tables.label_candidates)
    given.pop("labels", None)
    for name in {"drop", "unlabelled", "link"} & given.keys():
        if not isinstance(given[name], str):
            given[name] = ",".join(map(str, given[name]))
    for name, part in (("edges", edges), ("tables", given.get("tables"))):
        if part is not None:
            given[name] = _absolute(part) if is_path else ""
    return GraphSource(
        name=path.resolve().name if path.is_dir() else path.stem,
        graph=tables.graph,
        tables=tables,
        data=str(path.absolute()) if is_path else None,
        columns=given,
    )


def _absolute(edges: Any) -> str:
    """The absolute path of the edges table, or of several with commas between them."""
    if isinstance(edges, Mapping):
        return ""
    parts = edges if isinstance(edges, list | tuple) else [edges]
    if isinstance(edges, str) and not Path(edges).expanduser().exists():
        parts = edges.split(",")
    return ",".join(str(Path(str(part).strip()).expanduser().absolute()) for part in parts)
