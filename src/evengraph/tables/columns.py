"""TableColumns: which column of the nodes and edges tables holds what, named or guessed."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd

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
    is_empty,
    is_id_name,
    is_unnamed,
    location,
    plural,
    seconds_of,
    table_name,
    to_numbers,
    to_signs,
)
from evengraph.tables.edges import edge_rows, id_index
from evengraph.tables.encoders import Boolean, Category, Items, Number, Vector
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.links import check_links
from evengraph.tables.notes import NoteKind, Notes

F = TypeVar("F", bound=Callable[..., Any])

NODE_NAMES = {"id": ("id", "node", "node_id"), "split": ("split",), "label": ("label", "class")}
EDGE_NAMES = {
    "weight": ("weight",),
    "type": ("type", "edge_type", "relation"),
    "edge_time": ("time", "timestamp", "date", "edge_time"),
}
END_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))
USUAL_ENDS = {end for names in END_NAMES for end in names}
CHECKED_EDGES = 1000  # decide which column holds the ids; the others are read later


@dataclass(frozen=True)
class TableColumns:
    """The column of each role; None for a role without one, or to guess it.

    Args:
        id: Column of the nodes table with the ids. Guess: one called id, node or node_id, in any
            case; if the edges name none of its values, the column whose values they name; else row
            numbers from 0, if the edges hold such.
        label: Column of the nodes table with the classes. Guess: one called label or class.
        split: Column of the nodes table with train, val or test. Guess: one called split, if it
            holds nothing else.
        time: Column of the nodes table with dates or numbers, for `ByTime`.
        source: Column of the edges table with one end. Guess: source, src or from, else the first.
        target: Column of the edges table with the other end. Guess: target, dst or to, else the
            second.
        weight: Column of the edges table with weights; those of repeated edges are summed. Guess:
            one called weight, if it holds numbers from 0 on.
        features: Columns of the nodes table to make features from. Default: all without a role.
        unlabelled: Labels that mean unlabelled, such as "unknown" or -1; empty cells always do.
        date_order: "dmy" or "mdy": how to read dates such as 03/04/2024 in a column in which no
            cell tells day from month.
        type: Column of the edges table with types. Guess: one called type, edge_type or relation.
        edge_time: Column of the edges table with dates or numbers; a split by time hides later
            edges from training. Guess: one called time, timestamp, date or edge_time, else the
            only one of dates.
        directed: Keep edges from a node apart from edges to it where a method can.
        link: Columns of the nodes table whose equal values connect rows, such as card or device;
            several together as `product+month`. With `time`, to earlier rows alone.
        relations: Types of edges that became relations in training.
        kinds: Which tables led to which others in training, as `tables.kinds.Step`.
    """

    id: str | None = None
    label: str | None = None
    split: str | None = None
    time: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    unlabelled: Sequence[str | int | float | bool | None] | None = None
    date_order: str | None = None
    type: str | None = None
    edge_time: str | None = None
    directed: bool = False
    link: Sequence[str] | None = None
    relations: Sequence[str] | None = None
    kinds: Sequence[Sequence[str]] | None = None

    @property
    def of_nodes(self) -> dict[str, str]:
        """Role to column, for the columns of the nodes table that are not features."""
        return self._named("id", "label", "split", "time")

    @property
    def of_edges(self) -> dict[str, str]:
        """Role to column, for the columns of the edges table that do not name an end."""
        return self._named("weight", "type", "edge_time")

    @property
    def edge_options(self) -> dict[str, Any]:
        """What a model needs to connect the rows of new tables as in training, beside the ends."""
        names = ["weight", "type", "edge_time", "directed", "relations", "link", "kinds"]
        names += ["time", "date_order"] if self.link else []  # rows see earlier ones alone
        return {name: getattr(self, name) for name in names}

    def _named(self, *roles: str) -> dict[str, str]:
        columns = {role: getattr(self, role) for role in roles}
        return {role: column for role, column in columns.items() if column is not None}

    def _having(self, role: str, column: Any) -> TableColumns:
        return replace(self, **{role: column})


def takes_columns(function: F) -> F:
    """Show the fields of `TableColumns` in the signature of a function that takes **columns."""
    signature = inspect.signature(function)
    *parameters, _ = signature.parameters.values()
    roles = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default)
        for f in fields(TableColumns)
        if f.name not in ("relations", "kinds")
    ]
    function.__signature__ = signature.replace(parameters=parameters + roles)  # type: ignore[attr-defined]
    return function


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

    `fits` tells whether a column holds the ids that the edges name. Default: compares all cells.
    """
    named = columns.id is not None
    columns = _resolve_node_columns(nodes, columns, notes, guess)
    check_links(columns.link or (), columns.of_nodes, nodes)
    _check_roles(columns.of_edges)
    if guess:
        columns = _guess_edge_columns(edges, columns, notes)
    if guess and columns.source is None and columns.target is None:
        columns = _find_ends(nodes, edges, columns, notes)
    source, target = edge_ends(edges, columns, notes)
    if not named and columns.link and not len(edges):
        columns = replace(columns, id=columns.id or _row_ids(nodes, columns))
    elif not named:
        ends = edges[source][:CHECKED_EDGES], edges[target][:CHECKED_EDGES]
        columns = replace(columns, id=_find_id(nodes, ends, columns, notes, fits))
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
    for role, names in NODE_NAMES.items():
        column = _match(nodes.columns, names, columns.of_nodes.values())
        if role in columns.of_nodes or column is None or (role == "label" and not guess_label):
            continue
        if role == "split":
            values = nodes[column]
            words = {name.lower() for name in distinct_names(values[~is_empty(values)])[1]}
            if not words or not words <= SPLIT_WORDS.keys():
                continue
        columns = columns._having(role, column)
        if role != "id":
            notes.add(NoteKind.GUESSED_COLUMN, f"Using column {column!r} as the {role}.")
    _check_roles(columns.of_nodes)
    return columns


def _guess_edge_columns(edges: Any, columns: TableColumns, notes: Notes) -> TableColumns:
    found, name = [], table_name(edges, "edges")
    for role, names in EDGE_NAMES.items():
        taken = (columns.source, columns.target, *columns.of_edges.values())
        is_time = role == "edge_time"
        column = time_column(edges, taken) if is_time else _match(edges.columns, names, taken)
        if role in columns.of_edges or column is None:
            continue
        if _fits_role(edges[column], role, name):
            columns = columns._having(role, column)
            found.append(f"{column!r} as the {role.removeprefix('edge_')}")
        elif role == "weight":
            text = f"Column {column!r} of {name} is not used as the weight of edges: "
            notes.add(NoteKind.GUESSED_COLUMN, f"{text}some cells are no numbers from 0 on.")
    if found:
        text = f"Using columns of {name}: {', '.join(found)} of edges."
        notes.add(NoteKind.GUESSED_COLUMN, text)
    return columns


def time_column(edges: Any, taken: Collection[Any] = ()) -> str | None:
    """The column with the times of edges: one that is called so, else the only one of dates."""
    if found := _match(edges.columns, EDGE_NAMES["edge_time"], taken):
        return found
    first = edges[[name for name in edges.columns if name not in taken]][:CHECKED_EDGES]
    dates = [name for name in first.columns if _fits_role(first[name], "date", "edges")]
    return dates[0] if len(dates) == 1 else None


def _check_roles(columns: Mapping[str, str]) -> None:
    roles: dict[str, str] = {}
    for role, column in columns.items():
        if column in roles:
            raise ValueError(f"Column {column!r} cannot be both {roles[column]} and {role}.")
        roles[column] = role


def _fits_role(values: Any, role: str, table: str) -> bool:
    """Whether a column of the edges table can be what its name says."""
    with suppress(ValueError):
        kind = column_kind(values, table)
        if role == "weight":
            return kind == "number" and bool((to_numbers(values, table) >= 0).all())
        if role == "type":
            return kind in ("text", "number")
        is_date = kind == "date" or date_form(values, table, "dmy") is not None
        return is_date or (role == "edge_time" and kind == "number")
    return False


def edge_ends(edges: Any, columns: TableColumns, notes: Notes) -> tuple[str, str]:
    """The columns of both ends of an edge: those named, else guessed."""
    name = table_name(edges, "edges")
    named = (columns.source, columns.target, *columns.of_edges.values())
    check_columns(edges, [column for column in named if column is not None], "edges")
    free = [column for column in edges.columns if column not in columns.of_edges.values()]
    if len(free) < 2:
        needs = f"{name} needs two columns, one for each end of an edge"
        raise ValueError(f"{needs}; its columns are: {listed(edges.columns)}.")
    pairs = (tuple(_match(free, [end]) for end in names) for names in END_NAMES)
    guess = next((pair for pair in pairs if all(pair)), (None, None))
    source = columns.source or guess[0] or next(c for c in free if c != columns.target)
    target = columns.target or guess[1] or next(c for c in free if c != source)
    if source == target:
        raise ValueError(f"source and target must be two columns, got {source!r} for both.")
    if not (columns.source and columns.target) and (source, target) != guess:
        text = f"Using columns {source!r} and {target!r} of {name} as the ends of edges."
        notes.add(NoteKind.GUESSED_COLUMN, text)
    return source, target


def _find_ends(nodes: Any, edges: Any, columns: TableColumns, notes: Notes) -> TableColumns:
    free = [column for column in edges.columns if column not in columns.of_edges.values()]
    usual = any(all(_match(free, [end]) for end in names) for names in END_NAMES)
    id = columns.id or _row_ids(nodes, columns)
    if usual or id is None or len(free) < 3 or not len(edges):
        return columns
    found, ids = list[str](), distinct_names(nodes[id])[1]
    for column in free:
        with suppress(ValueError):  # lists
            names = distinct_names(edges[column][:CHECKED_EDGES])[1]
            if len(names) and np.isin(names.astype(str), ids.astype(str)).all():
                found.append(column)
    if len(found) > 2:  # numbers of the edges themselves may be ids of nodes
        found = [column for column in found if not edges[column].is_unique]
    if len(found) < 2 or found[:2] == free[:2]:
        return columns
    text = (
        f"Using columns {found[0]!r} and {found[1]!r} of {table_name(edges, 'edges')} as the ends"
    )
    notes.add(NoteKind.GUESSED_COLUMN, f"{text} of edges: they hold ids of nodes.")
    return replace(columns, source=found[0], target=found[1])


def _match(columns: Iterable[str], names: Sequence[str], taken: Collection[Any] = ()) -> str | None:
    """The first free column with one of the names, ignoring case; earlier names win."""
    free = [column for column in columns if column not in taken]
    by_lower_case = {column.lower(): column for column in reversed(free)}
    return next((by_lower_case[name] for name in names if name in by_lower_case), None)


def is_usual(role: str, column: str) -> bool:
    """Whether a column has a name by which its role is found."""
    return column.lower() in NODE_NAMES.get(role, USUAL_ENDS)


def join_edges(tables: Mapping[str, Any], ends: tuple[str | None, str | None]) -> Any:
    """Several edges tables as one, with their names as the type of edges.

    Ends that are None, or a usual name that a table lacks, are guessed.
    """
    if not tables:
        raise ValueError("edges must hold at least one table, got none.")
    parts = []
    for name, table in tables.items():
        part = normalize_table(table, name)
        named = [None if end in USUAL_ENDS - {*part.columns} else end for end in ends]
        source, target = edge_ends(part, TableColumns(source=named[0], target=named[1]), Notes())
        part = part.rename(columns={source: ends[0] or "source", target: ends[1] or "target"})
        parts.append(part.rename(columns={"type": "type of edge"}).assign(type=name))
    joined = pd.concat(parts, ignore_index=True)
    joined.attrs = {"file": ", ".join(table_name(t, name) for name, t in tables.items())}
    return joined


def _find_id(
    nodes: Any,
    ends: tuple[Any, Any],
    columns: TableColumns,
    notes: Notes,
    fits: Callable[[str], bool] | None,
) -> str | None:
    """The column with the ids: the usual name if it fits the edges, else one that does."""
    fits = fits or (lambda column: _holds_ends(nodes[column], *ends))
    usual, table = columns.id, table_name(nodes, "nodes")
    if usual is not None and fits(usual):
        return usual
    taken = {role: column for role, column in columns.of_nodes.items() if role != "id"}
    free = [column for column in nodes.columns if column not in taken.values()]
    fitting = [column for column in free if column != usual and fits(column)]
    named = [column for column in fitting if is_id_name(column)]
    names = (canonical_name(n) for end in ends for n in pd.unique(end.dropna()))
    numbered = usual is None and all(n.isdecimal() and int(n) < len(nodes) for n in names)
    if numbered:  # a column of the numbers of the rows names them as well
        fitting = [c for c in fitting if np.array_equal(nodes[c], np.arange(len(nodes)))][:1]
    found = named or fitting
    if len(found) > 1:
        text = f"Columns {' and '.join(map(repr, found))} of {table} all fit the edges; "
        raise ArgumentError(f"{text}set id to one of them.", argument="id")
    if found:
        text = f"Using column {found[0]!r} as the id: the edges name its values"
        text += "." if usual is None else f", not those of {usual!r}."
        notes.add(NoteKind.GUESSED_COLUMN, text)
        return str(found[0])
    for role, column in taken.items():
        if not numbered and fits(column):
            text = f"Column {column!r} of {table} holds the ids that the edges name; "
            raise ArgumentError(f"{text}set {role} to another column.", argument=role)
    if usual is None and not numbered:
        for column in free:
            with suppress(TypeError):  # lists cannot be hashed
                if _holds_ends(nodes[column].drop_duplicates(), *ends):
                    id_index(nodes[column], table)  # tells which id repeats
        raise ArgumentError(
            f"{table} has no column called id, node or node_id, and none that holds both ends of "
            f"every edge; set id to one of its columns: {listed(nodes.columns)}.",
            argument="id",
        )
    if usual is None:
        notes.add(NoteKind.ROW_NUMBER_IDS, "No id column: ids are row numbers, counted from 0.")
    return usual


def _row_ids(nodes: Any, columns: TableColumns) -> str | None:
    """A column that names the rows of a table without edges: called like an id, or the first."""
    taken = {*columns.of_nodes.values(), *(columns.link or ())}
    named = [column for column in nodes.columns if is_id_name(column)]
    for column in (*named, *nodes.columns[:1]):
        if column not in taken and _holds_ends(nodes[column], nodes[column][:0], nodes[column][:0]):
            return str(column)
    return None


def _holds_ends(values: Any, sources: Any, targets: Any) -> bool:
    """Whether a column holds unique ids, among them both ends of every edge."""
    with suppress(TypeError, ValueError):  # lists cannot be hashed
        unique = values.iloc[:CHECKED_EDGES].is_unique and values.is_unique  # a few rows tell most
        if unique and values.dtype.kind not in "bmM":
            edge_rows(sources, targets, id_index(values, ""), "")
            return True
    return False


def check_no_copy(labels: Any, ids: Any, table: str) -> None:
    """Raise an error if the label column holds the ids."""
    for rows in (slice(CHECKED_EDGES), slice(None)):  # hardly ever more than the first rows
        if (canonical_names(labels.iloc[rows]) != canonical_names(ids.iloc[rows])).any():
            return
    text = f"{location(table, labels.name)} copies the ids (column {ids.name!r}): it holds no "
    raise ArgumentError(f"{text}classes; set label to another column.", argument="label")


def feature_columns(nodes: Any, columns: TableColumns, notes: Notes) -> list[str]:
    """The columns to make features from: those named, else all without another role."""
    roles = {column: role for role, column in columns.of_nodes.items()}
    if columns.features is not None:
        features = columns.features
        names = [features] if isinstance(features, str) else list(dict.fromkeys(features))
        check_columns(nodes, names, "nodes")
        for column in names:
            if column in roles:
                text = f"features must not contain the {roles[column]} column {column!r}: "
                raise ValueError(f"{text}it would leak the answer.")
        return names
    free = [column for column in nodes.columns if column not in roles]
    useless = {column: "it has no name" for column in free if is_unnamed(column)}
    for column in free:
        values = nodes[column]
        if not is_id_name(column) or values.dtype.kind in "fmM" or len(values) < 2:
            continue
        with suppress(TypeError):  # lists
            distinct = len(pd.unique(values.to_numpy()))
            if distinct == len(values) and not is_empty(values).any():
                useless[column] = "its values are distinct, like ids"
    for column, reason in useless.items():
        notes.add(NoteKind.FEATURES, f"Left out column {column!r}: {reason}.")
    return [column for column in free if column not in useless]


def note_mixed_columns(
    nodes: Any, columns: Sequence[str], encoder: FeatureEncoder, notes: Notes
) -> None:
    """Add a note for each column that is at least half numbers or dates, but not encoded so."""
    # these notes quote cells, so they must not become notes of the encoder, which a model saves
    categories = {item.column for item in encoder.columns if isinstance(item, Category)}
    kinds = Number | Boolean | Items | Vector
    parsed = {item.column for item in encoder.columns if isinstance(item, kinds)}
    for column in columns:
        if column in parsed or column in encoder.indicators:
            continue
        if mismatch := describe_mismatch(nodes[column]):
            kind, cells = mismatch
            treated = "treated as categories" if column in categories else f"not treated as {kind}s"
            notes.add(NoteKind.MIXED_COLUMN, f"Column {column!r}: {cells}, so it is {treated}.")


# Labels.

MAX_DISTINCT = 20  # more distinct numbers than this are checked for being continuous
MIN_NODES_PER_CLASS = 5  # whole numbers with fewer nodes each, on average, are a quantity
MAX_CLASSES = 20

# Labels that may stand for unlabelled. They may also be classes, so the user decides.
MISSING_WORDS = frozenset(
    {"?", "-", "--", "-1", "-99", "-999", "unknown", "unk", "unlabelled", "unlabeled", "missing"}
    | {"undefined", "not available", "not labelled", "not labeled", "no label", "tbd"}
)


class NoLabelError(ArgumentError):
    """No label column was named or guessed; `candidates` may hold the classes."""

    def __init__(self, candidates: Sequence[str] = ()) -> None:
        message = "No label column: every node is unlabelled"
        if candidates:
            names = [repr(column) for column in candidates[:5]]
            choice = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
            message += f"; set label to the column with the classes, perhaps {choice}"
        super().__init__(f"{message}.", argument="label")
        self.candidates = tuple(candidates)


class FewClassesError(ValueError):
    """A label column without two classes: nothing to learn from, but to start labelling with.

    Labelled nodes, (N,), are of the one class of `classes`, which is empty without labels.
    """

    def __init__(
        self, message: str, *, column: str, labelled: Bools, classes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.column, self.labelled, self.classes = column, labelled, classes


def encode_labels(
    values: Any, table: str, notes: Notes, unlabelled: Sequence[Any] = ()
) -> tuple[Ints, tuple[str, ...]]:
    """Class indices, -1 where the label is empty, (N,), and the sorted names of the classes."""
    words = is_empty(values, EMPTY_LABELS) & ~is_empty(values)
    empty = _is_unlabelled(values, unlabelled)
    if unlabelled:
        present = {name.lower() for name in canonical_names(values)}
        given = map(canonical_name, [unlabelled] if isinstance(unlabelled, str) else unlabelled)
        if absent := [short(word) for word in given if word.lower() not in present]:
            text = f"No label is {' or '.join(absent)}, which unlabelled names."
            notes.add(NoteKind.EMPTY_LABELS, text)
    where, column = location(table, values.name), str(values.name)
    if empty.all():
        message = f"{where}: every label is empty; label at least two nodes."
        raise FewClassesError(message, column=column, labelled=~empty)
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
        raise FewClassesError(message, column=column, labelled=~empty, classes=tuple(classes))
    counts = Counter(names)
    _check_classes(column, where, counts)
    labels = np.full(len(values), -1, dtype=np.int64)
    labels[~empty] = pd.Index(classes, dtype=object).get_indexer(names)
    if words.any():
        word = canonical_name(values.iloc[int(words.argmax())])
        text = f"Labels {word!r} or similar, treated as unlabelled: {int(words.sum())}."
        notes.add(NoteKind.EMPTY_LABELS, text)
    _note_classes(counts, notes)
    return labels, tuple(classes)


def known_labels(values: Any, unlabelled: Sequence[Any] | None = None) -> Any:
    """The label column with None for every label that means unlabelled."""
    return values.astype(object).where(~_is_unlabelled(values, unlabelled or ()), None)


def doubtful_classes(names: Collection[str]) -> list[str]:
    """The classes that may stand for unlabelled; none unless two others remain."""
    words = [name for name in names if name.lower() in MISSING_WORDS]
    return words if len(names) - len(words) >= 2 else []


def alike_classes(counts: Mapping[str, int]) -> list[str]:
    """A sentence for each set of classes whose names differ only in case or spaces."""
    alike: dict[str, list[str]] = {}
    for name, count in sorted(counts.items()):
        words = f"{name!r} ({plural(count, 'node')})"
        alike.setdefault("".join(name.casefold().split()), []).append(words)
    return [
        f"Labels {' and '.join(names)} differ only in case or spaces and count as different "
        "classes; if they mean the same, spell them alike in the table."
        for names in alike.values()
        if len(names) > 1
    ]


def label_candidates(nodes: Any, excluded: Collection[str]) -> tuple[str, ...]:
    """Columns that may hold classes: few distinct values, each used twice or more on average."""
    candidates = []  # first those with empty cells, since labels are often incomplete
    for column in nodes.columns:
        if column in excluded or is_unnamed(column):
            continue
        empty = is_empty(nodes[column], EMPTY_LABELS)
        try:
            codes, names = distinct_names(nodes.loc[~empty, column])
        except ValueError:  # lists
            continue
        if 2 <= len(names) <= min(MAX_CLASSES, len(codes) / 2):
            candidates.append((not empty.any(), len(names), column))
    return tuple(column for _, _, column in sorted(candidates, key=lambda item: item[:2]))


def _is_unlabelled(values: Any, unlabelled: Sequence[Any]) -> Bools:
    empty = is_empty(values, EMPTY_LABELS)
    if unlabelled:
        given = [unlabelled] if isinstance(unlabelled, str) else unlabelled
        words = {canonical_name(word).lower() for word in given}
        empty |= np.array([name.lower() in words for name in canonical_names(values)], dtype=bool)
    return empty


def _check_classes(column: str, where: str, counts: Mapping[str, int]) -> None:
    counts = {name: count for name, count in counts.items() if name.lower() not in MISSING_WORDS}
    distinct, total = len(counts), sum(counts.values())
    if distinct <= MAX_DISTINCT:
        return
    try:
        numeric, whole = True, all(float(name).is_integer() for name in counts)
    except ValueError:
        numeric = whole = False
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


def _note_classes(counts: Mapping[str, int], notes: Notes) -> None:
    if words := doubtful_classes(counts):
        sizes = " and ".join(f"{name!r} ({plural(counts[name], 'node')})" for name in words)
        text = f"Is label {sizes} a class? If it means unlabelled, set unlabelled to "
        notes.add(NoteKind.MISSING_LABELS, f"{text}{','.join(words)}.")
    for text in alike_classes(counts):
        notes.add(NoteKind.MISSING_LABELS, text)
    rare = [name for name in sorted(counts) if counts[name] < 3]
    if len(rare) == 1:
        subject = f"Class {rare[0]!r} has {plural(counts[rare[0]], 'labelled node')}"
        fix = "its label cells to leave the class"
    else:
        shown = ", ".join([*map(repr, rare[:3]), *(["..."] if len(rare) > 3 else [])])
        subject = f"{len(rare)} classes have 1 or 2 labelled nodes ({shown})"
        fix = "their cells to leave them"
    text = f"{subject}: a stratified split (Natural) needs 3 per class; label more, or empty {fix}"
    if rare:
        notes.add(NoteKind.RARE_CLASS, f"{text} out.")


# Splits and times.

SPLIT_WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


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


def read_times(values: Any, table: str, date_order: str | None = None) -> Floats:
    """Times as numbers, dates in seconds since 1970, NaN where empty, (N,)."""
    form = date_form(values, table, date_order)
    kind = "date" if form is not None else column_kind(values, table, required=True)
    if kind not in ("number", "date"):
        raise ValueError(
            f"{location(table, values.name)} holds {kind} values; times must be numbers or dates "
            "such as 2024-05-31."
        )
    return to_numbers(values, table) if kind == "number" else seconds_of(values, table, form or "")
