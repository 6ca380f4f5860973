"""The id column: the one whose values the edges name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from evengraph.core.errors import ArgumentError, listed
from evengraph.tables.cells import canonical_names, import_pandas, is_empty, location, table_name
from evengraph.tables.edges import are_row_numbers, edge_rows, id_index
from evengraph.tables.notes import NoteKind, Notes

CHECKED_EDGES = 1000
"""How many edges decide which column holds the ids; the others are read later."""

_ID_NAME = re.compile(r"(?:.*[_\W])?(?:id|uid|uuid|guid|node|key|index)|.*[a-z]I[dD]", re.DOTALL)


def find_id(
    nodes: Any,
    sources: Any,
    targets: Any,
    usual: str | None,
    taken: Mapping[str, str],
    notes: Notes,
    fits: Callable[[str], bool] | None = None,
) -> str | None:
    """The column with the ids: the usual one if it fits the edges, else the one that does.

    None stands for row numbers from 0.

    Args:
        nodes: The nodes table.
        sources: One end of every edge.
        targets: The other end.
        usual: A column called id or similar, if there is one.
        taken: Columns with another role, by role.
        notes: Says which other column was found.
        fits: Whether a column holds the ids that the edges name. Default: compares all cells.
    """
    sources, targets = sources[:CHECKED_EDGES], targets[:CHECKED_EDGES]
    fits = fits or (lambda column: _fits(nodes[column], sources, targets))
    if usual is not None and fits(usual):
        return usual
    free = [column for column in nodes.columns if column not in taken.values()]
    fitting = [column for column in free if column != usual and fits(column)]
    named = [column for column in fitting if is_id_name(column)]
    numbered = usual is None and all(are_row_numbers(end, len(nodes)) for end in (sources, targets))
    columns = named or ([] if numbered else fitting)
    if len(columns) > 1:
        names = " and ".join(repr(column) for column in columns)
        raise ArgumentError(
            f"Columns {names} of {table_name(nodes, 'nodes')} all fit the edges; set id to one "
            "of them.",
            argument="id",
        )
    if columns:
        text = f"Using column {columns[0]!r} as the id: the edges name its values"
        text += "." if usual is None else f", not those of {usual!r}."
        notes.add(NoteKind.GUESSED_COLUMN, text)
        return str(columns[0])
    for role, column in taken.items():
        if not numbered and fits(column):
            raise ArgumentError(
                f"Column {column!r} of {table_name(nodes, 'nodes')} holds the ids that the edges "
                f"name; set {role} to another column.",
                argument=role,
            )
    if usual is None and not numbered:
        raise ArgumentError(
            f"{table_name(nodes, 'nodes')} has no column called id, node or node_id, and none "
            "that holds both ends of every edge; set id to one of its columns: "
            f"{listed(nodes.columns)}.",
            argument="id",
        )
    if usual is None:
        notes.add(NoteKind.ROW_NUMBER_IDS, "No id column: ids are row numbers, counted from 0.")
    return usual


def check_no_copy(labels: Any, ids: Any, table: str) -> None:
    """Raise an error if the label column holds the ids."""
    head = slice(CHECKED_EDGES)
    for rows in (head, slice(None)):  # hardly ever more than the first rows
        if (canonical_names(labels.iloc[rows]) != canonical_names(ids.iloc[rows])).any():
            return
    raise ArgumentError(
        f"{location(table, labels.name)} copies the ids (column {ids.name!r}): it holds no "
        "classes; set label to another column.",
        argument="label",
    )


def is_id_name(column: str) -> bool:
    """Whether a column is called like an id: id, user_id, new id, userId, node."""
    return bool(_ID_NAME.fullmatch(column) or _ID_NAME.fullmatch(column.lower()))


def is_spare_id(values: Any) -> bool:
    """Whether a column is called like an id and has a different value in every row."""
    if not is_id_name(str(values.name)) or values.dtype.kind in "fmM" or len(values) < 2:
        return False
    try:
        distinct = import_pandas().unique(values.to_numpy())
    except TypeError:  # lists
        return False
    return len(distinct) == len(values) and not is_empty(values).any()


def _fits(values: Any, sources: Any, targets: Any) -> bool:
    """Whether a column holds unique ids, among them both ends of every edge."""
    if values.dtype.kind in "bmM":
        return False
    try:
        # most columns are told by a few rows
        if not (values.iloc[:CHECKED_EDGES].is_unique and values.is_unique):
            return False
        edge_rows(sources, targets, id_index(values, ""), "")
    except (TypeError, ValueError):  # lists cannot be hashed
        return False
    return True
