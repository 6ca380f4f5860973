"""TableColumns: which column of the nodes and edges tables holds what, named or guessed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evengraph.core.errors import listed
from evengraph.tables.cells import (
    check_columns,
    column_kind,
    describe_mismatch,
    import_pandas,
    is_unnamed,
    table_name,
    to_numbers,
)
from evengraph.tables.column_encoders import Boolean, Category
from evengraph.tables.date_forms import date_form
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.ids import find_id, is_id_name, is_spare_id
from evengraph.tables.list_encoders import Items, Vector
from evengraph.tables.notes import NoteKind, Notes
from evengraph.tables.number_encoders import Number
from evengraph.tables.roles import is_split_column

ID_NAMES = ("id", "node", "node_id")
LABEL_NAMES = ("label", "class")
SPLIT_NAMES = ("split",)
EDGE_NAMES = {
    "weight": ("weight",),
    "type": ("type", "edge_type", "relation"),
    "edge_time": ("time", "timestamp", "date", "edge_time"),
}
TABLE_TYPE = "type"  # of edges, where each type has a table
END_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))
USUAL_ENDS = {end for names in END_NAMES for end in names}


@dataclass(frozen=True)
class TableColumns:
    """Column names by role, as in `from_frames`; None for a role without a column.

    `unlabelled` holds values of the label column, `date_order` is dmy or mdy, and `relations`
    holds the types of edges that became relations in training.
    """

    id: str | None = None
    label: str | None = None
    split: str | None = None
    time: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    unlabelled: Sequence[Any] | None = None
    date_order: str | None = None
    type: str | None = None
    edge_time: str | None = None
    directed: bool = False
    relations: Sequence[str] | None = None

    @property
    def of_nodes(self) -> dict[str, str]:
        """Role to column, for the columns of the nodes table that are not features."""
        roles = {"id": self.id, "label": self.label, "split": self.split, "time": self.time}
        return {role: column for role, column in roles.items() if column is not None}

    def having(self, role: str, column: str) -> TableColumns:
        """A copy in which a role has a column."""
        values: dict[str, Any] = {role: column}
        return replace(self, **values)

    @property
    def of_edges(self) -> dict[str, str]:
        """Role to column, for the columns of the edges table that do not name an end."""
        roles = {"weight": self.weight, "type": self.type, "edge_time": self.edge_time}
        return {role: column for role, column in roles.items() if column is not None}

    @property
    def edge_options(self) -> dict[str, Any]:
        """What a model needs to read the edges of new tables as in training, without the ends."""
        names = ("weight", "type", "edge_time", "directed", "relations")
        return {name: getattr(self, name) for name in names}


def normalize_table(table: Any, name: str) -> Any:
    """Copy a table, with distinct text column names and a named index as a column."""
    attributes = {"file": name} | table.attrs
    table = table.reset_index(drop=table.index.name is None)
    table = table.rename(columns=lambda column: str(column).strip())
    table.attrs = attributes
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        raise ValueError(f"{table_name(table, name)} has two columns called {repeated[0]!r}.")
    return table


def resolve_columns(
    nodes: Any,
    edges: Any,
    columns: TableColumns,
    notes: Notes,
    *,
    guess: bool,
    fits: Callable[[str], bool] | None = None,
) -> TableColumns:
    """Check the columns that were named and guess the others by their usual names.

    `fits` is that of `find_id`.
    """
    named = columns.id is not None
    columns = _resolve_node_columns(nodes, columns, notes, guess)
    _check_edge_roles(columns)
    if guess:
        columns = _guess_edge_columns(edges, columns, notes)
    source, target = edge_ends(edges, columns, notes)
    if not named:
        taken = {role: column for role, column in columns.of_nodes.items() if role != "id"}
        id = find_id(nodes, edges[source], edges[target], columns.id, taken, notes, fits)
        columns = replace(columns, id=id)
    return replace(columns, source=source, target=target)


def likely_id(nodes: Any, edges: Any, columns: TableColumns) -> str | None:
    """The id column: the one named, else the one that would be found; None if there is none."""
    if columns.id is not None:
        return columns.id
    try:
        tables = normalize_table(nodes, "nodes"), normalize_table(edges, "edges")
        return resolve_columns(*tables, columns, Notes(), guess=True).id
    except (AttributeError, ValueError):  # which is told when the graph is built
        return None


def _resolve_node_columns(
    nodes: Any, columns: TableColumns, notes: Notes, guess_label: bool
) -> TableColumns:
    check_columns(nodes, columns.of_nodes.values(), "nodes")
    usual_names = {"id": ID_NAMES, "split": SPLIT_NAMES}
    if guess_label:
        usual_names["label"] = LABEL_NAMES
    for role, names in usual_names.items():
        if role in columns.of_nodes:
            continue
        free = [column for column in nodes.columns if column not in columns.of_nodes.values()]
        column = next((column for column in _match(free, names) if column is not None), None)
        if column is None or (role == "split" and not is_split_column(nodes[column])):
            continue
        columns = columns.having(role, column)
        if role != "id":
            notes.add(NoteKind.GUESSED_COLUMN, f"Using column {column!r} as the {role}.")
    roles: dict[str, str] = {}
    for role, column in columns.of_nodes.items():
        if column in roles:
            raise ValueError(f"Column {column!r} cannot be both {roles[column]} and {role}.")
        roles[column] = role
    return columns


def _guess_edge_columns(edges: Any, columns: TableColumns, notes: Notes) -> TableColumns:
    """Find weights, types and times of edges by their usual names, if the cells fit."""
    found, name = [], table_name(edges, "edges")
    for role, names in EDGE_NAMES.items():
        taken = (columns.source, columns.target, *columns.of_edges.values())
        free = [column for column in edges.columns if column not in taken]
        column = next((column for column in _match(free, names) if column is not None), None)
        if role in columns.of_edges or column is None or len(free) + len(taken) < 3:
            continue
        if _fits_role(edges[column], role, name):
            columns = columns.having(role, column)
            found.append(f"{column!r} as the {role.removeprefix('edge_')}")
        elif role == "weight":
            text = (
                f"Column {column!r} of {name} is not used as the weight of edges: some cells are "
            )
            notes.add(NoteKind.GUESSED_COLUMN, f"{text}no numbers from 0 on.")
    if found:
        text = f"Using columns of {name}: {', '.join(found)} of edges."
        notes.add(NoteKind.GUESSED_COLUMN, text)
    return columns


def _check_edge_roles(columns: TableColumns) -> None:
    """Raise an error if a column of the edges table has two roles."""
    roles: dict[str, str] = {}
    for role, column in columns.of_edges.items():
        if column in roles:
            raise ValueError(f"Column {column!r} cannot be both {roles[column]} and {role}.")
        roles[column] = role


def _fits_role(values: Any, role: str, table: str) -> bool:
    """Whether a column of the edges table can be what its name says."""
    try:
        kind = column_kind(values, table)
        if role == "weight":
            return kind == "number" and bool((to_numbers(values, table) >= 0).all())
        if role == "type":
            return kind in ("text", "number")
        return kind in ("date", "number") or date_form(values, table, "dmy") is not None
    except ValueError:
        return False


def edge_ends(edges: Any, columns: TableColumns, notes: Notes) -> tuple[str, str]:
    """The columns of both ends of an edge: those named, else guessed."""
    name = table_name(edges, "edges")
    named = (columns.source, columns.target, *columns.of_edges.values())
    check_columns(edges, [column for column in named if column is not None], "edges")
    free = [column for column in edges.columns if column not in columns.of_edges.values()]
    if len(free) < 2:
        raise ValueError(
            f"{name} needs two columns, one for each end of an edge; its columns are: "
            f"{listed(edges.columns)}."
        )
    pairs = (_match(free, names) for names in END_NAMES)
    guess = next((pair for pair in pairs if all(pair)), (None, None))
    source = columns.source or guess[0] or next(c for c in free if c != columns.target)
    target = columns.target or guess[1] or next(c for c in free if c != source)
    if source == target:
        raise ValueError(f"source and target must be two columns, got {source!r} for both.")
    if not (columns.source and columns.target) and (source, target) != guess:
        text = f"Using columns {source!r} and {target!r} of {name} as the ends of edges."
        notes.add(NoteKind.GUESSED_COLUMN, text)
    return source, target


def is_usual(role: str, column: str) -> bool:
    """Whether a column has a name by which its role is found."""
    usual = {"id": ID_NAMES, "label": LABEL_NAMES, "split": SPLIT_NAMES}
    return column.lower() in usual.get(role, USUAL_ENDS)


def join_edges(tables: Mapping[str, Any], ends: tuple[str | None, str | None]) -> Any:
    """Several edges tables as one, with their names as the type of edges.

    Args:
        ends: The columns of both ends; None, or a usual name that a table lacks, to guess them.
    """
    if not tables:
        raise ValueError("edges must hold at least one table, got none.")
    parts = []
    for name, table in tables.items():
        part = normalize_table(table, name)
        named = [None if end in USUAL_ENDS - {*part.columns} else end for end in ends]
        source, target = edge_ends(part, TableColumns(source=named[0], target=named[1]), Notes())
        part = part.rename(columns={source: ends[0] or "source", target: ends[1] or "target"})
        if TABLE_TYPE in part.columns:
            part = part.rename(columns={TABLE_TYPE: f"{TABLE_TYPE} of edge"})
        parts.append(part.assign(**{TABLE_TYPE: name}))
    joined = import_pandas().concat(parts, ignore_index=True)
    joined.attrs = {"file": ", ".join(table_name(t, name) for name, t in tables.items())}
    return joined


def feature_columns(nodes: Any, columns: TableColumns, notes: Notes) -> list[str]:
    """The columns to make features from: those named, else all without another role."""
    roles = {column: role for role, column in columns.of_nodes.items()}
    if columns.features is not None:
        features = columns.features
        names = [features] if isinstance(features, str) else list(dict.fromkeys(features))
        check_columns(nodes, names, "nodes")
        for column in names:
            if column in roles:
                raise ValueError(
                    f"features must not contain the {roles[column]} column {column!r}: it would "
                    "leak the answer."
                )
        return names
    free = [column for column in nodes.columns if column not in roles]
    useless = {column: "it has no name" for column in free if is_unnamed(column)}
    for column in free:
        if is_id_name(column) and is_spare_id(nodes[column]):
            useless[column] = "its values are distinct, like ids"
    for column, reason in useless.items():
        notes.add(NoteKind.FEATURES, f"Left out column {column!r}: {reason}.")
    return [column for column in free if column not in useless]


def note_mixed_columns(
    nodes: Any, columns: Sequence[str], encoder: FeatureEncoder, notes: Notes
) -> None:
    """Add a note for each column that is at least half numbers or dates, but not encoded so.

    These notes quote cells, so they must not become notes of the encoder, which a model saves.
    """
    categories = {item.column for item in encoder.columns if isinstance(item, Category)}
    kinds = Number | Boolean | Items | Vector
    parsed = {item.column for item in encoder.columns if isinstance(item, kinds)}
    parsed |= set(encoder.indicators)
    for column in columns:
        if column in parsed:
            continue
        mismatch = describe_mismatch(nodes[column])
        if mismatch is not None:
            kind, cells = mismatch
            treated = "treated as categories" if column in categories else f"not treated as {kind}s"
            notes.add(NoteKind.MIXED_COLUMN, f"Column {column!r}: {cells}, so it is {treated}.")


def _match(columns: Sequence[str], names: Sequence[str]) -> tuple[str | None, ...]:
    """The first column of each name, ignoring case."""
    by_lower_case = {column.lower(): column for column in reversed(columns)}
    return tuple(by_lower_case.get(name) for name in names)
