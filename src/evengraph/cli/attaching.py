"""Tables for a kept model: known ones, new ones, and new rows below known ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from rich.markup import escape

from evengraph.cli.console import err
from evengraph.methods import Method
from evengraph.tables import NoteKind, TableGraph, UnknownNodeError, from_frames, read_table
from evengraph.tables.cells import table_name
from evengraph.tables.column_encoders import check_columns
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.ids import find_both, node_names
from evengraph.tables.open import both_tables
from evengraph.tables.read import table_suffix

NAMES = ("id", "source", "target", "weight")


def columns_of_model(method: Method) -> dict[str, str | None]:
    """Which columns of its tables a model found its nodes and edges in."""
    return {name: method.extra_["columns"].get(name) for name in NAMES}


def check_tables(method: Method, folder: Path) -> None:
    """Refuse a model that does not know what to make of tables."""
    if "encoder" not in method.extra_ or "columns" not in method.extra_:
        raise ValueError(
            f"{folder} was not trained on tables, so nothing says what to make of columns; "
            "use evengraph.load_model and predict_proba in Python."
        )


def known_tables(known: str | None, edges: str | None) -> tuple[Any, Any] | None:
    """The tables of --known, a folder or a nodes table, and of --known-edges; none without."""
    if known is None:
        if edges is not None:
            raise ValueError("--known-edges goes with --known, which names the nodes table.")
        return None
    if edges is None and table_suffix(Path(known)):
        raise ValueError(f"--known-edges must name the edges table that belongs to {known}.")
    return both_tables(known, edges)


def new_graph(
    method: Method,
    new: tuple[Path, Path],
    known: tuple[Any, Any] | None,
    columns: dict[str, str | None],
) -> tuple[TableGraph, slice]:
    """The graph of new tables as a model wants it, and which of its nodes are new.

    Args:
        method: Holds the encoder.
        new: Files of new nodes and of their edges.
        known: Tables of the graph that they attach to, if any.
        columns: Of ids, of both ends of an edge, of weights.
    """
    encoder = FeatureEncoder.from_dict(method.extra_["encoder"])
    tables = read_table(new[0]), read_table(new[1])
    asked = slice(None)
    if known is not None:
        name = table_name(tables[0], "nodes")
        if not len(tables[0]):
            raise ValueError(f"{name} has no rows; at least one new node is needed.")
        check_columns(tables[0], encoder.needs, name)
        encoder.check(tables[0])  # while its rows still have their own numbers
        tables, asked = _joined(tables, known, columns)
    try:
        own = from_frames(*tables, **columns, encoder=encoder)
    except UnknownNodeError as error:
        if known is not None:
            raise
        raise ValueError(
            f"{error} Nodes of the known graph? Name its folder with --known."
        ) from None
    return own, asked


def tell(own: TableGraph, new: slice) -> None:
    """What was done, and how many of the new nodes stand alone."""
    for note in own.notes:
        if note.kind not in (NoteKind.NO_LABEL, NoteKind.ISOLATED_NODES):
            err.print(f"[dim]{escape(note)}[/]", soft_wrap=True)
    connected = torch.zeros(own.graph.num_nodes, dtype=torch.bool)
    connected[own.graph.edge_index[0]] = True
    asked = connected[new]
    lonely = int((~asked).sum())
    if lonely:
        err.print(
            f"{lonely:,} of {len(asked):,} new nodes have no edge: what is predicted for them "
            "rests on their features alone.",
            soft_wrap=True,
        )


def _joined(
    tables: tuple[Any, Any], old: tuple[Any, Any], columns: dict[str, str | None]
) -> tuple[tuple[Any, Any], slice]:
    """The tables that a model was trained on, with new rows below them."""
    import pandas

    id = columns["id"]
    if id is not None:
        for table, name in ((old[0], "nodes"), (tables[0], "nodes")):
            if id not in table.columns:
                raise ValueError(f"{table_name(table, name)} has no column {id!r} with the ids.")
        again = tables[0][id].isin(old[0][id])
        if again.any():
            first = tables[0][id][again].iloc[0]
            raise ValueError(
                f"{int(again.sum())} of the new nodes are in the known graph already, the "
                f"first is {first!r}; name new nodes only."
            )
    joined = [pandas.concat(pair, ignore_index=True) for pair in zip(old, tables, strict=True)]
    if id is not None:  # while the new edges still have their own numbers
        names = node_names(joined[0][id], table_name(tables[0], "nodes"))
        source, target = (tables[1][columns[end]] for end in ("source", "target"))
        find_both(source, target, names, table_name(tables[1], "edges"))
    return (joined[0], joined[1]), slice(len(old[0]), None)
