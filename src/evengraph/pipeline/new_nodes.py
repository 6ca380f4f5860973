"""NewNodes: nodes to predict, alone or attached to a known graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evengraph.tables import FeatureEncoder, Note, NoteKind, TableColumns, TableGraph, build_graph
from evengraph.tables.cells import check_columns, table_name
from evengraph.tables.columns import edge_ends
from evengraph.tables.edges import edge_rows, id_index
from evengraph.tables.notes import Notes

ID = "id"
"""What predictions call the ids of nodes whose table has no name for them."""

OUTPUTS = ("class", "probability", "low", "high", "flagged", "agreement", "abstained")
"""Columns of predictions, which an id cannot be called like; `p_<class>` is another."""

Tables = tuple[Any, Any]
"""A nodes table and an edges table."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NewNodes:
    """Nodes to predict, in a graph that may hold known nodes before them.

    Args:
        tables: The graph with all nodes.
        rows: The nodes to predict, a slice or their indices.
        attached: Whether there are known nodes before them.
    """

    tables: TableGraph
    rows: Any
    attached: bool = False

    def without(self, labelled: NDArray[np.bool_]) -> NewNodes:
        """The nodes to predict that have no label; `labelled` holds one value for each, (M,)."""
        rows = np.arange(self.tables.graph.num_nodes)[self.rows]
        return replace(self, rows=rows[~labelled])

    @property
    def ids(self) -> NDArray[Any]:
        """Ids of the nodes to predict, (M,)."""
        ids: NDArray[Any] = self.tables.ids[self.rows]
        return ids

    @property
    def id_name(self) -> str:
        """What predictions call the ids: as the nodes table does, so that the two can be joined."""
        name = self.tables.columns.id
        return ID if name is None or name in OUTPUTS or name.startswith("p_") else name

    @property
    def num_isolated(self) -> int:
        """The number of nodes to predict that have no edge."""
        connected = torch.zeros(self.tables.graph.num_nodes, dtype=torch.bool)
        connected[self.tables.graph.edge_index[0]] = True
        return int((~connected[self.rows]).sum())

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was done to the tables; labels do not matter, `num_isolated` counts lone nodes."""
        hidden = (NoteKind.NO_LABEL, NoteKind.ISOLATED_NODES)
        return tuple(note for note in self.tables.notes if note.kind not in hidden)


def build_new_nodes(
    new: Tables, known: Tables | None, columns: TableColumns, encoder: FeatureEncoder
) -> NewNodes:
    """Encode new rows with a fitted encoder, below those of a known graph if there is one."""
    if known is None:
        return NewNodes(tables=build_graph(*new, columns, encoder), rows=slice(None))
    if not len(new[0]):
        name = table_name(new[0], "nodes")
        raise ValueError(f"{name} has no rows; at least one new node is needed.")
    check_columns(new[0], encoder.input_columns, "nodes")
    encoder.check_rows(new[0])  # before concatenation, so that errors give the row of the new table
    tables = build_graph(*_concatenate(known, new, columns), columns, encoder)
    return NewNodes(tables=tables, rows=slice(len(known[0]), None), attached=True)


def _concatenate(known: Tables, new: Tables, columns: TableColumns) -> Tables:
    """Known tables with new rows below them."""
    import pandas

    nodes, edges = (pandas.concat(pair, ignore_index=True) for pair in zip(known, new, strict=True))
    id = columns.id
    if id is None:
        return nodes, edges
    for table in (known[0], new[0]):
        check_columns(table, [id], "nodes")
    again = new[0][id].isin(known[0][id])
    if again.any():
        raise ValueError(
            f"{int(again.sum())} of the new nodes are in the known graph already, the first is "
            f"{new[0][id][again].iloc[0]!r}; give new nodes only."
        )
    # checked on the new table alone, so that errors give its rows
    ids = id_index(nodes[id], table_name(new[0], "nodes"))
    source, target = edge_ends(new[1], columns, Notes())
    edge_rows(new[1][source], new[1][target], ids, table_name(new[1], "edges"))
    return nodes, edges
