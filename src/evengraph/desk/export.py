"""The labels as a table: the nodes table with its label column filled in."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from evengraph.core.files import write_atomic
from evengraph.desk.answers import Answers
from evengraph.desk.nodes import DeskNodes
from evengraph.tables.cells import canonical_name, import_pandas

SUFFIXES = (".csv", ".parquet")


def labelled_table(nodes: DeskNodes, answers: Answers) -> Any:
    """The nodes table with a label wherever there is one, of the table or of an answer.

    A graph without a nodes table gives its ids and labels.
    """
    pandas = import_pandas()
    if nodes.table is None:
        table = pandas.DataFrame({"id": list(nodes.ids)})
        names = [nodes.classes[label] if label >= 0 else None for label in nodes.labels.tolist()]
        table[nodes.column] = pandas.Series(names, dtype=object)
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
    """A table as CSV."""
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text.encode("utf-8", errors="replace")


def write_table(table: Any, path: Path) -> None:
    """Write a table atomically as CSV or Parquet."""
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"The table must end in {' or '.join(SUFFIXES)}, got {path}.")
    if path.suffix.lower() == ".csv":
        write_atomic(csv_bytes(table), path)
        return
    content = io.BytesIO()
    table.to_parquet(content, index=False)
    write_atomic(content.getvalue(), path)
