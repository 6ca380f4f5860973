"""The nodes to label, with the labels, ids and rows of their tables, and the labelled table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import ArgumentError
from evengraph.core.files import write_atomic
from evengraph.datasets import DATASETS
from evengraph.desk.label_file import Answers
from evengraph.ops.sparse import undirected_adjacency
from evengraph.pipeline.sources import GraphSource, open_dataset, open_tables
from evengraph.pipeline.table_model import TableModel
from evengraph.tables import Note, NoteKind, TableGraph, open_graph
from evengraph.tables.cells import canonical_name, canonical_names
from evengraph.tables.columns import known_labels
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.open import read_nodes_table

OF_SPLITS = (NoteKind.NO_LABEL, NoteKind.RARE_CLASS, NoteKind.SPLIT)  # nothing is split here
SUFFIXES = (".csv", ".parquet")
LABEL = "label"  # what the column is called where nothing names it


@dataclass(frozen=True, kw_only=True, eq=False)
class DeskNodes:
    """Nodes to label; `ids` are text, and `table` is the nodes table, None for a graph without."""

    name: str
    graph: Data
    ids: tuple[str, ...]
    column: str  # holds the classes
    classes: tuple[str, ...]  # those that its labels name
    labels: Tensor  # -1 for unlabelled, int64, (N,)
    table: Any = None  # as it was read
    id_column: str | None = None  # of the table; None if rows are numbered
    feature_names: Sequence[str] = ()
    encoder: FeatureEncoder | None = None  # which tells values in the units of the table
    notes: tuple[Note, ...] = ()  # what was done to the tables

    @cached_property
    def rows(self) -> dict[str, int]:
        return {id: row for row, id in enumerate(self.ids)}

    @cached_property
    def adjacency(self) -> csr_matrix:
        """Edges in both directions, (N, N)."""
        return undirected_adjacency(self.graph.edge_index, self.graph.num_nodes)

    def cells(self, row: int) -> list[tuple[str, str]]:
        """What the table says about a node beside id and label: names and cells, no empty ones.

        Without a table, the features other than 0, the largest first.
        """
        if self.table is None:
            values = self.graph.x[row].to_dense()
            order = values.abs().argsort(descending=True, stable=True).tolist()
            names = self.feature_names or [f"feature {n}" for n in range(len(values))]
            return [(names[n], f"{float(values[n]):g}") for n in order if values[n] != 0]
        cells = self.table.iloc[row]
        found = []
        for name in self.table.columns:
            cell = cells[name]
            nan = isinstance(cell, float) and cell != cell
            text = "" if cell is None or cell is pd.NA or nan else str(cell).strip()
            if text and name not in (self.column, self.id_column):
                found.append((str(name), text))
        return found


def open_nodes(data: str, columns: Mapping[str, Any], *, classes: Sequence[str] = ()) -> DeskNodes:
    """Open a data set, or tables with few labels or none; `columns` is as in `open_graph`.

    A label column that does not exist yet is started, if its classes are given.
    """
    if data in DATASETS:
        return _of_source(open_dataset(data), None)
    table, label = read_nodes_table(data), columns.get("label")
    names = None if table is None or label is None else _names(table, columns)
    if names is None or names.nunique() >= 2:
        return _of_source(open_tables(data, **columns), table)
    if label not in table.columns and len(classes) < 2:
        raise ArgumentError(
            f"{table.attrs['file']} has no column {label!r}; to start one, name its classes.",
            argument="classes",
        )
    rest = {name: value for name, value in columns.items() if name not in ("label", "unlabelled")}
    if label in table.columns:
        rest["drop"] = [*rest.get("drop", ()), label]
    found = tuple(sorted(set(names.dropna())))
    labels = torch.tensor([found.index(n) if isinstance(n, str) else -1 for n in names])
    return _of_tables(open_graph(data, **rest), _name(data), table, str(label), found, labels)


def open_for_model(
    model: TableModel, data: str, edges: str | None, columns: Mapping[str, str]
) -> tuple[DeskNodes, list[int]]:
    """The nodes of tables with the features of a model, and the rows that have no label yet."""
    table = read_nodes_table(data)
    label = model.info.columns.label or LABEL
    labelled = table is not None and label in table.columns
    new = model.open(data, edges, only_unlabelled=labelled, **columns)
    count = new.tables.graph.num_nodes
    labels = torch.full((count,), -1)
    if labelled:
        names = _names(table, {"label": label})
        numbers = {name: number for number, name in enumerate(model.classes_)}
        labels = torch.tensor([numbers.get(name, -1) for name in names])
    nodes = _of_tables(new.tables, _name(data), table, label, model.classes_, labels)
    return nodes, torch.arange(count)[new.rows].tolist()


def _names(table: Any, columns: Mapping[str, Any]) -> Any:
    label = columns["label"]
    if label not in table.columns:
        return pd.Series([None] * len(table), dtype=object)
    known = known_labels(table[label], columns.get("unlabelled"))
    return pd.Series(canonical_names(known), dtype=object).where(known.notna().to_numpy(), None)


def _of_source(source: GraphSource, table: Any) -> DeskNodes:
    graph, tables = source.graph, source.tables
    if tables is not None:
        column = tables.columns.label or LABEL
        return _of_tables(tables, source.name, table, column, tables.class_names, graph.y)
    return DeskNodes(
        name=source.name,
        graph=graph,
        ids=tuple(map(str, range(graph.num_nodes))),
        column=LABEL,
        classes=tuple(map(str, graph.get("class_names") or range(int(graph.y.max()) + 1))),
        labels=graph.y,
        feature_names=tuple(graph.get("feature_names") or ()),
    )


def _of_tables(
    tables: TableGraph, name: str, table: Any, column: str, classes: tuple[str, ...], labels: Tensor
) -> DeskNodes:
    return DeskNodes(
        name=name,
        graph=tables.graph,
        ids=tuple(map(str, tables.ids.tolist())),
        column=column,
        classes=classes,
        labels=labels,
        table=table,
        id_column=tables.columns.id,
        feature_names=tuple(tables.encoder.names),
        encoder=tables.encoder,
        notes=tuple(note for note in tables.notes if note.kind not in OF_SPLITS),
    )


def _name(data: str) -> str:
    path = Path(data).expanduser()
    return path.resolve().name if path.is_dir() else path.stem


def labelled_table(nodes: DeskNodes, answers: Answers) -> Any:
    """The nodes table with a label wherever there is one, of the table or of an answer.

    A graph without a nodes table gives its ids and labels.
    """
    if nodes.table is None:
        names = [nodes.classes[label] if label >= 0 else None for label in nodes.labels.tolist()]
        column = pd.Series(names, dtype=object)
        table = pd.DataFrame({"id": list(nodes.ids), nodes.column: column})
    else:
        table = nodes.table.copy()
        if nodes.column not in table.columns:
            table[nodes.column] = None
    column = table[nodes.column].astype(object)
    rows = {nodes.rows[id]: name for id, name in answers.labels().items() if id in nodes.rows}
    column.iloc[list(rows)] = list(rows.values())
    if column.dropna().map(lambda cell: isinstance(cell, str)).nunique() > 1:
        # a Parquet column has one type; 1.0 beside an empty cell is the class 1
        column = column.where(column.isna(), column.map(canonical_name))
    table[nodes.column] = column
    return table


def csv_bytes(table: Any) -> bytes:
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text.encode("utf-8", errors="replace")


def write_table(table: Any, path: Path) -> None:
    """Write a table as CSV or Parquet, completely or not at all."""
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"The table must end in {' or '.join(SUFFIXES)}, got {path}.")
    is_csv = path.suffix.lower() == ".csv"
    write_atomic(csv_bytes(table) if is_csv else table.to_parquet(index=False), path)
