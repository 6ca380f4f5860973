"""TableColumns: which column of the nodes and edges tables holds what, named or guessed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evengraph.core.errors import ArgumentError, listed, short
from evengraph.tables.cells import (
    EMPTY_LABELS,
    Bools,
    Floats,
    Ints,
    canonical_name,
    canonical_names,
    check_columns,
    column_kind,
    date_form,
    describe_mismatch,
    distinct_names,
    import_pandas,
    is_empty,
    is_unnamed,
    location,
    plural,
    seconds_of,
    table_name,
    to_numbers,
    to_seconds,
    to_signs,
)
from evengraph.tables.edges import are_row_numbers, edge_rows, id_index
from evengraph.tables.encoders import Boolean, Category, Items, Number, Vector
from evengraph.tables.feature_encoder import FeatureEncoder
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


MAX_DISTINCT = 20
"""More distinct numbers than this are checked for being continuous."""
MIN_NODES_PER_CLASS = 5
"""Whole numbers with fewer nodes each, on average, are a quantity."""
SHOWN_CLASSES = 3

MISSING_WORDS = frozenset(
    {"?", "-", "--", "-1", "-99", "-999", "unknown", "unk", "unlabelled", "unlabeled", "missing"}
    | {"undefined", "not available", "not labelled", "not labeled", "no label", "tbd"}
)
"""Labels that may stand for unlabelled. They may also be classes, so the user decides."""


def check_classes(column: str, where: str, counts: Mapping[str, int]) -> None:
    """Raise an error if the values of a column, with their counts, are no classes."""
    counts = {name: count for name, count in counts.items() if name.lower() not in MISSING_WORDS}
    distinct, total = len(counts), sum(counts.values())
    if distinct <= MAX_DISTINCT:
        return
    numbers = _as_numbers(counts)
    numeric = numbers is not None
    whole = numbers is not None and all(number.is_integer() for number in numbers)
    if distinct == total and (not numeric or (whole and is_id_name(column))):
        kind = "an id" if is_id_name(column) else "an id or a name"
        raise ValueError(
            f"{where}: all {distinct} labels are different, like {kind}; a class needs several "
            "nodes. Is this the label column?"
        )
    if numeric and (not whole or total < MIN_NODES_PER_CLASS * distinct):
        raise ValueError(
            f"{where} is continuous ({distinct} distinct numbers in {total} rows); a label holds "
            "classes: bin it into a few, such as low, middle and high."
        )


def _as_numbers(names: Iterable[str]) -> list[float] | None:
    """The names as numbers, or None if one is text."""
    try:
        return [float(name) for name in names]
    except ValueError:
        return None


def doubtful_classes(names: Collection[str]) -> list[str]:
    """The classes that may stand for unlabelled; none unless two others remain."""
    words = [name for name in names if name.lower() in MISSING_WORDS]
    return words if len(names) - len(words) >= 2 else []


def ask_about_missing(counts: Mapping[str, int], notes: Notes) -> None:
    """Add a note if one of the classes may stand for unlabelled, and two others remain."""
    words = doubtful_classes(counts)
    if not words:
        return
    sizes = " and ".join(f"{name!r} ({plural(counts[name], 'node')})" for name in words)
    text = f"Is label {sizes} a class? If it means unlabelled, set unlabelled to {','.join(words)}."
    notes.add(NoteKind.MISSING_LABELS, text)


def note_rare_classes(counts: Mapping[str, int], notes: Notes) -> None:
    """Add one note about all classes that are too small for a stratified split."""
    rare = [name for name in sorted(counts) if counts[name] < 3]
    if not rare:
        return
    if len(rare) == 1:
        subject = f"Class {rare[0]!r} has {plural(counts[rare[0]], 'labelled node')}"
    else:
        shown = ", ".join(map(repr, rare[:SHOWN_CLASSES]))
        more = "" if len(rare) <= SHOWN_CLASSES else ", ..."
        subject = f"{len(rare)} classes have 1 or 2 labelled nodes ({shown}{more})"
    fix = "its label cells to leave the class" if len(rare) == 1 else "their cells to leave them"
    text = f"{subject}: a stratified split (Natural) needs 3 per class; label more, or empty {fix}"
    notes.add(NoteKind.RARE_CLASS, f"{text} out.")


def is_unlabelled(names: Iterable[str], unlabelled: Sequence[Any]) -> Bools:
    """Which labels the user declared to mean unlabelled, ignoring case, (N,)."""
    words = {word.lower() for word in _words(unlabelled)}
    return np.array([name.lower() in words for name in names], dtype=bool)


def note_absent(names: Iterable[str], unlabelled: Sequence[Any], notes: Notes) -> None:
    """Note labels declared to mean unlabelled that no node has: they may be misspelt."""
    present = {name.lower() for name in names}
    absent = [short(word) for word in _words(unlabelled) if word.lower() not in present]
    if absent:
        text = f"No label is {' or '.join(absent)}, which unlabelled names."
        notes.add(NoteKind.EMPTY_LABELS, text)


def _words(unlabelled: Sequence[Any]) -> list[str]:
    words = [unlabelled] if isinstance(unlabelled, str) else unlabelled
    return [canonical_name(word) for word in words]


SPLIT_WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}
"""Values of a split column, in any case."""

MAX_CLASSES = 20
MAX_SUGGESTIONS = 5


class NoLabelError(ArgumentError):
    """No label column was named or guessed; `candidates` may hold the classes."""

    def __init__(self, candidates: Sequence[str] = ()) -> None:
        message = "No label column: every node is unlabelled"
        if candidates:
            names = [repr(column) for column in candidates[:MAX_SUGGESTIONS]]
            choice = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
            message += f"; set label to the column with the classes, perhaps {choice}"
        super().__init__(f"{message}.", argument="label")
        self.candidates = tuple(candidates)


class FewClassesError(ValueError):
    """A label column without two classes: nothing to learn from, but to start labelling with.

    Args:
        message: What is wrong.
        column: The label column.
        labelled: Which nodes have a label, (N,).
        classes: The name of their class; empty without labels.
    """

    def __init__(
        self, message: str, *, column: str, labelled: Bools, classes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.column, self.labelled, self.classes = column, labelled, classes


def encode_labels(
    values: Any, table: str, notes: Notes, unlabelled: Sequence[Any] = ()
) -> tuple[Ints, tuple[str, ...]]:
    """Class indices, -1 where the label is empty, (N,), and the names of the classes.

    Classes are sorted: numbers by value, text alphabetically, false before true.

    Args:
        values: The label column.
        table: Name of its table, for errors.
        notes: Gets a note about labels that are or may be missing, and about rare classes.
        unlabelled: Labels that mean unlabelled.
    """
    empty = is_empty(values, EMPTY_LABELS)
    words = empty & ~is_empty(values)
    if unlabelled:
        given = canonical_names(values)
        empty = empty | is_unlabelled(given, unlabelled)
        note_absent(given, unlabelled, notes)
    where = location(table, values.name)
    column, labelled = str(values.name), ~np.asarray(empty)
    if empty.all():
        message = f"{where}: every label is empty; label at least two nodes."
        raise FewClassesError(message, column=column, labelled=labelled)
    # "?" among numbers is asked about, not an error
    doubtful = empty | is_empty(values, MISSING_WORDS)
    known = values.where(~doubtful, None) if doubtful.any() else values
    kind = column_kind(known, table, required=True)
    if kind == "number":
        to_numbers(known, table)  # raises an error on infinity
    elif kind == "boolean":
        to_signs(known, table)
    names = canonical_names(values[~empty])
    try:
        classes = sorted(set(names), key=float)
    except ValueError:  # no numbers
        classes = sorted(set(names))
    if len(classes) < 2:
        message = f"{where} holds a single class, {classes[0]!r}; at least two are needed."
        raise FewClassesError(message, column=column, labelled=labelled, classes=tuple(classes))
    counts = Counter(names)
    check_classes(str(values.name), where, counts)
    labels = np.full(len(values), -1, dtype=np.int64)
    labels[~empty] = import_pandas().Index(classes, dtype=object).get_indexer(names)
    if words.any():
        word = canonical_name(values.iloc[int(words.argmax())])
        text = f"Labels {word!r} or similar, treated as unlabelled: {int(words.sum())}."
        notes.add(NoteKind.EMPTY_LABELS, text)
    ask_about_missing(counts, notes)
    note_rare_classes(counts, notes)
    return labels, tuple(classes)


def known_labels(values: Any, unlabelled: Sequence[Any] | None = None) -> Any:
    """The label column with None for every label that means unlabelled."""
    empty = is_empty(values, EMPTY_LABELS)
    if unlabelled:
        empty = empty | is_unlabelled(canonical_names(values), unlabelled)
    return values.astype(object).where(~empty, None)


def label_candidates(nodes: Any, excluded: Collection[str]) -> tuple[str, ...]:
    """Columns that may hold classes: few distinct values, each used twice or more on average.

    Columns with empty cells come first, since labels are often incomplete, then those with the
    fewest values.
    """
    candidates = []
    for column in nodes.columns:
        if column in excluded or is_unnamed(column):
            continue
        empty = is_empty(nodes[column], EMPTY_LABELS)
        try:
            codes, names = distinct_names(nodes.loc[~empty, column])
        except ValueError:  # lists
            continue
        distinct = len(names)
        if 2 <= distinct <= min(MAX_CLASSES, len(codes) / 2):
            candidates.append((not empty.any(), distinct, column))
    return tuple(column for _, _, column in sorted(candidates, key=lambda item: item[:2]))


def read_split(values: Any, table: str) -> dict[str, Bools]:
    """Masks of train, val and test from a split column; an empty cell is in none, (N,) each."""
    parts = np.array([SPLIT_WORDS.get(n.lower(), "") for n in canonical_names(values)], object)
    wrong = (parts == "") & ~is_empty(values)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{location(table, values.name, row)} holds {canonical_name(values.iloc[row])!r}; a "
            "split column holds train, val (or validation), test or an empty cell."
        )
    return {part: parts == part for part in ("train", "val", "test")}


def is_split_column(values: Any) -> bool:
    """Whether a column holds nothing but train, val and test."""
    _, distinct = distinct_names(values[~is_empty(values)])
    names = {name.lower() for name in distinct}
    return bool(names) and names <= SPLIT_WORDS.keys()


def read_times(values: Any, table: str, date_order: str | None = None) -> Floats:
    """Times as numbers, dates in seconds since 1970, NaN where empty, (N,)."""
    form = date_form(values, table, date_order)
    if form is not None:
        return seconds_of(values, table, form)
    kind = column_kind(values, table, required=True)
    if kind not in ("number", "date"):
        raise ValueError(
            f"{location(table, values.name)} holds {kind} values; times must be numbers or dates "
            "such as 2024-05-31."
        )
    return to_numbers(values, table) if kind == "number" else to_seconds(values, table)


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
