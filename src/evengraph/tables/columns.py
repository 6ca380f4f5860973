"""Which column of two tables is what: as the user says, else as its name suggests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evengraph.core.errors import ArgumentError
from evengraph.tables.cells import odd_cells, table_name
from evengraph.tables.column_encoders import Category, check_columns
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.ids import are_row_numbers
from evengraph.tables.notes import Note, NoteKind
from evengraph.tables.roles import is_split

ID_NAMES = ("id", "node", "node_id")
LABEL_NAMES = ("label", "class")
SPLIT_NAMES = ("split",)
ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))


def plain_tables(nodes: Any, edges: Any) -> tuple[Any, Any]:
    """Copies whose columns have names that are text and differ; an index that was named is one."""
    tables = []
    for table, called in ((nodes, "nodes"), (edges, "edges")):
        attributes = table.attrs
        named = table.index.name is not None
        table = table.reset_index() if named else table.reset_index(drop=True)
        table = table.rename(columns=lambda name: str(name).strip())
        table.attrs = {"file": called} | attributes
        again = table.columns[table.columns.duplicated()]
        if len(again):
            raise ValueError(f"{table_name(table, called)} has two columns called {again[0]!r}.")
        tables.append(table)
    return tables[0], tables[1]


def edge_columns(
    edges: Any, source: str | None, target: str | None, weight: str | None
) -> tuple[str, str, list[Note]]:
    """The columns of both ends, and notes."""
    name = table_name(edges, "edges")
    check_columns(edges, [c for c in (source, target, weight) if c is not None], name)
    there = [column for column in edges.columns if column != weight]
    if len(there) < 2:
        raise ValueError(
            f"{name} needs two columns, for both ends of an edge; there are "
            f"{', '.join(edges.columns) or 'none'}."
        )
    notes = []
    pair = next((p for p in (_named(there, e) for e in ENDS) if all(p)), (None, None))
    first = source or pair[0] or next(c for c in there if c != target)
    second = target or pair[1] or next(c for c in there if c != first)
    if first == second:
        raise ValueError(f"source and target must be two columns, got {first!r} for both.")
    if not (source and target) and (first, second) != pair:
        text = f"Columns {first!r} and {second!r} of {name} are taken as the ends of edges."
        notes.append(Note(NoteKind.GUESSED_COLUMN, text))
    unused = [column for column in there if column not in (first, second)]
    if unused:
        text = f"Columns of {name} that are not used: {', '.join(unused)}."
        notes.append(Note(NoteKind.UNUSED_COLUMNS, text))
    return first, second, notes


def node_columns(
    nodes: Any, asked: dict[str, str | None], guess_label: bool
) -> tuple[dict[str, str | None], list[Note]]:
    """The columns of id, label, split and time, and notes on those that were guessed."""
    name = table_name(nodes, "nodes")
    check_columns(nodes, [column for column in asked.values() if column is not None], name)
    columns = dict(asked)
    notes = []
    candidates = [("id", ID_NAMES), ("split", SPLIT_NAMES)]
    if guess_label:
        candidates.append(("label", LABEL_NAMES))
    for role, names in candidates:
        if columns[role] is None:
            taken = {column for column in columns.values() if column is not None}
            there = [column for column in nodes.columns if column not in taken]
            found = next((c for c in (_named(there, (n,))[0] for n in names) if c), None)
            if role == "split" and found is not None and not is_split(nodes[found]):
                found = None
            columns[role] = found
            if found is not None and role != "id":
                text = f"Column {found!r} is taken as the {role}."
                notes.append(Note(NoteKind.GUESSED_COLUMN, text))
    used = [column for column in columns.values() if column is not None]
    for column in used:
        if used.count(column) > 1:
            raise ValueError(f"Column {column!r} cannot be two things at once: {columns}.")
    return columns, notes


def need_row_numbers(nodes: Any, edges: Any, source: str, target: str) -> None:
    """Refuse tables without ids, unless the edges count the rows of the nodes table."""
    if all(are_row_numbers(edges[end], len(nodes)) for end in (source, target)):
        return
    columns = ", ".join(nodes.columns) or "none"
    raise ArgumentError(
        f"{table_name(nodes, 'nodes')} has no column called id, node or node_id, and the edges are "
        f"not row numbers from 0; set id to one of its columns: {columns}.",
        argument="id",
    )


def feature_columns(
    nodes: Any, features: Sequence[str] | None, columns: dict[str, str | None]
) -> tuple[list[str], list[Note]]:
    """The columns to make features of, and notes."""
    roles = {column: role for role, column in columns.items() if column is not None}
    if features is not None:
        if isinstance(features, str):
            features = [features]
        check_columns(nodes, features, table_name(nodes, "nodes"))
        for column in features:
            if column in roles:
                raise ValueError(
                    f"features must not hold the {roles[column]} column {column!r}: it would give "
                    "the answer away."
                )
        return list(dict.fromkeys(features)), []
    rest = [column for column in nodes.columns if column not in roles]
    nameless = [column for column in rest if not column or column.startswith("Unnamed: ")]
    notes = [
        Note(NoteKind.FEATURES, f"Column {column!r} was left out: it has no name.")
        for column in nameless
    ]
    return [column for column in rest if column not in nameless], notes


def mixed_columns(nodes: Any, columns: Sequence[str], encoder: FeatureEncoder) -> list[Note]:
    """Notes on columns of which at least half is numbers or dates, and which are not taken as such.

    They are no notes of the encoder: that is kept with a model, and they show what is in a cell.
    """
    notes = []
    categories = {one.column for one in encoder.columns if isinstance(one, Category)}
    for column in columns:
        found = odd_cells(nodes[column])
        if found is not None:
            what, many, total, first = found
            are = f"is no {what}" if many == 1 else f"are no {what}s"
            taken = "taken as categories" if column in categories else f"not taken as {what}s"
            text = f"{many} of {total} values {are} (first: {first}), so it is {taken}."
            notes.append(Note(NoteKind.MIXED_COLUMN, f"Column {column!r}: {text}"))
    return notes


def _named(columns: Sequence[str], names: Sequence[str]) -> tuple[str | None, ...]:
    """The columns of these names, in any case."""
    lower = {column.lower(): column for column in reversed(columns)}
    return tuple(lower.get(name) for name in names)
