"""Other kinds of nodes: tables of devices or cards that tell of the accounts to classify.

Only rows of the nodes table are nodes of the graph, so that no device can be predicted, drawn as a
pseudo-label or scored. What an account's devices hold becomes columns of the account, and accounts
that share a device are linked (`tables.links`), which takes linear time however many share it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from evengraph.core.errors import ArgumentError, listed
from evengraph.tables.cells import (
    Floats,
    Ints,
    canonical_names,
    check_columns,
    column_kind,
    date_form,
    is_empty,
    is_id_name,
    plural,
    seconds_of,
    table_name,
    to_numbers,
    to_signs,
)
from evengraph.tables.columns import CHECKED_EDGES, normalize_table, time_column
from evengraph.tables.edges import edge_rows, id_index
from evengraph.tables.notes import NoteKind, Notes

SEVERAL, REPEATED = "several", "repeated"
UNITS = "units"  # of a nodes table, in its `attrs`: how columns of other tables are shown
_ENDING = re.compile(r"[\W_]*(?:id|no|nr|key|number)?s?$", re.IGNORECASE)


class Step(NamedTuple):
    """How rows of one table lead to those of another; the table of the nodes is called ""."""

    name: str  # of the relation: of an edges table, or of a column that holds ids
    near: str
    near_key: str
    near_end: str  # a column of the edges table, or of the near table
    far: str  # "" again for edges between nodes
    far_key: str  # "" without a table
    far_end: str  # "" if `near_end` holds the ids of the far table
    several: str = ""  # whether a row may lead to more than one, or to the same one repeatedly

    @property
    def is_link(self) -> bool:
        """Whether nodes that lead to the same row are linked."""
        return self.near == "" != self.far


@dataclass(frozen=True, kw_only=True, eq=False)
class OtherTables:
    """Tables of other kinds, edges of all kinds by their type, and columns to leave out."""

    tables: Mapping[str, Any]
    edges: Mapping[str, Any]
    dropped: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, tables: Mapping[str, Any], edges: Mapping[str, Any], steps: Sequence[Step] | None
    ) -> Self:
        """The tables with text column names; new ones are called as those of training."""
        parts = []
        for given, field in ((tables, "far"), (edges, "name")):
            known = None if steps is None else [str(getattr(step, field)) for step in steps]
            parts.append({_known_as(n, known): normalize_table(t, n) for n, t in given.items()})
        return cls(tables=parts[0], edges=parts[1])

    def check(self, steps: Sequence[Step], whose: str) -> None:
        """Raise for a table of training that is missing, which would leave columns empty."""
        tables = [s.far for s in steps if s.far and s.far_key and s.far not in self.tables]
        edges = [s.name for s in steps if s.far_end and s.name not in self.edges]
        for what, names in (("tables", tables), ("edges", edges)):
            if names:
                text = f"The model was trained with these {what}, which {whose} rows lack: "
                text += f"{listed(dict.fromkeys(names))}."
                raise ArgumentError(text, argument=f"{whose}-{what}".removeprefix("the-"))

    def joined(self, new: OtherTables, steps: Sequence[Step]) -> OtherTables:
        """These rows with new ones, which replace those of the same id."""
        keys = {step.far: step.far_key for step in steps}
        parts: list[dict[str, Any]] = [dict(self.tables), dict(self.edges)]
        for part, others in zip(parts, (new.tables, new.edges), strict=True):
            for name, rows in others.items():
                both = [part[name], rows] if name in part else [rows]
                part[name] = pd.concat(both, ignore_index=True)
        for kind in new.tables:
            check_columns(parts[0][kind], [keys[kind]], kind)
            names = pd.Series(canonical_names(parts[0][kind][keys[kind]]))
            parts[0][kind] = parts[0][kind][~names.duplicated(keep="last").to_numpy()]
        return replace(self, tables=parts[0], edges=parts[1])

    def times(self, column: str | None, order: str | None) -> dict[str, Floats]:
        """Times of the edges of every type that has a column of them."""
        found = dict[str, Floats]()
        for name, rows in self.edges.items():
            named = column if column in rows.columns else None if column else time_column(rows)
            times = None if named is None else _numbers(rows[named], order)
            found |= {} if times is None else {name: times}
        return found

    def until(self, time: float, column: str | None, order: str | None) -> OtherTables:
        """The tables without later edges, and without those that have no time."""
        times = self.times(column, order)
        kept = {name: self.edges[name][known <= time] for name, known in times.items()}
        return replace(self, edges={**self.edges, **kept})

    @property
    def columns(self) -> list[str]:
        """Names that columns may get, of which `drop` leaves some out."""
        prefixes = {*self.edges, *(str(c) for table in self.tables.values() for c in table)}
        return [f"{p}.{c}" for p in prefixes for table in self.tables.values() for c in table]

    def drop(self, columns: Sequence[str]) -> OtherTables:
        """The tables without the columns of some names."""
        return replace(self, dropped=tuple(columns))

    def attach(
        self, nodes: Any, steps: Sequence[Step], order: str | None
    ) -> tuple[Any, tuple[str, ...]]:
        """The nodes table with what other tables tell of its rows, and the names of the columns."""
        frames, made = {"": nodes, **self.tables}, tuple[str, ...]()
        units = dict[str, str]()
        for step in reversed(steps):  # those of the most distant tables first
            near = frames.get(step.near)
            if near is None or step.near == step.far:
                continue
            columns = pd.DataFrame(self._columns(step, near, frames.get(step.far), order, units))
            if taken := [name for name in columns if name in near.columns]:
                table = table_name(near, step.near or "nodes")
                text = f"{table} has a column {taken[0]!r}, a name of features from other tables"
                raise ValueError(f"{text}; rename it.")
            made = (*made, *columns) if step.near == "" else made
            frames[step.near] = pd.concat([near, columns.set_axis(near.index)], axis=1)
        frames[""].attrs = {**nodes.attrs, UNITS: units}
        return frames[""], made

    def _columns(
        self, step: Step, near: Any, far: Any, order: str | None, units: dict[str, str]
    ) -> dict[str, Any]:
        """What the rows of the far table, and edges to them, tell of those of the near one."""
        size, edges, found = len(near), self.edges.get(step.name), dict[str, Any]()
        rows, ids = _pairs(step, near, far, edges)
        if step.far_end and (step.is_link or far is None):
            found[step.name] = _cells(rows, ids, size, step.several)
        if far is not None:
            index = pd.Index(canonical_names(far[step.far_key]), dtype=object)
            places = np.asarray(index.get_indexer(ids), np.int64)
            for column in far.columns.drop(step.far_key):
                if (name := f"{step.name}.{column}") not in self.dropped:
                    known = places >= 0
                    told = far[column].reset_index(drop=True)
                    if step.several == SEVERAL and (unit := units.get(column, _unit(told, order))):
                        units[name] = unit
                    found[name] = _told(told, rows[known], places[known], size, step, order)
        if step.several:
            found[f"{step.name}.count"] = np.bincount(rows, minlength=size).astype(float)
        for column in () if edges is None else edges:
            if column in (step.near_end, step.far_end):
                continue
            numbers = _numbers(self.edges[step.name][column], order)
            if numbers is not None:
                name = f"{step.name}: {column}"
                found[f"{name}, mean"], sums = _means(numbers, rows, size)
                if unit := _unit(self.edges[step.name][column], order):
                    units[f"{name}, mean"] = unit
                found |= {f"{name}, sum": sums} if step.several else {}
        return found


def _known_as(name: str, known: Sequence[str] | None) -> str:
    """The name that a table has in training: new_devices.csv holds devices."""
    found = [name] if known is None else [one for one in known if one and one in name]
    if not found:
        text = f"The table {name!r} is called like none of those of training"
        raise ValueError(f"{text}: {listed(list(dict.fromkeys(known or ())))}.")
    return max(found, key=len)


def _pairs(step: Step, near: Any, far: Any, edges: Any) -> tuple[Ints, Any]:
    """The row of the near table and the id of the far one, of every edge or cell with an id."""
    if not step.far_end:
        check_columns(near, [step.near_end], step.near or "nodes")
        rows = np.flatnonzero(~is_empty(near[step.near_end]))
        return rows, canonical_names(near[step.near_end])[rows]
    if edges is None:
        return np.empty(0, np.int64), np.empty(0, object)
    check_columns(edges, [step.near_end, step.far_end], step.name)
    for table, key, end in (
        (far, step.far_key, step.far_end),
        (near, step.near_key, step.near_end),
    ):
        if table is not None:
            index, values = id_index(table[key], table_name(table, step.far)), edges[end]
            rows, _ = edge_rows(values, values, index, table_name(edges, step.name))
    return rows, canonical_names(edges[step.far_end])


def _cells(rows: Ints, values: Any, size: int, several: str) -> Any:
    """The values of every row as cells: the first, or a list of all that differ."""
    cells = np.full(size, None, object)
    if several != SEVERAL or not len(rows):
        cells[rows[::-1]] = values[::-1]
        return cells
    order = np.lexsort((values.astype(str), rows))
    starts = np.flatnonzero(np.diff(rows[order], prepend=-1))
    for start, part in zip(starts, np.split(values[order], starts[1:]), strict=True):
        cells[rows[order[start]]] = list(dict.fromkeys(part.tolist()))
    return cells


def _numbers(values: Any, order: str | None) -> Floats | None:
    """Numbers, signs of booleans and seconds of dates, NaN where empty; None for other columns."""
    with suppress(ValueError):
        if (form := date_form(values, "", order)) is not None:
            return seconds_of(values, "", form)
        kind = column_kind(values, "")
        if kind == "boolean":
            return np.where(is_empty(values), np.nan, to_signs(values, ""))
        if kind in ("number", "date"):
            return to_numbers(values, "") if kind == "number" else seconds_of(values, "", "")
    return None


def _unit(values: Any, order: str | None) -> str:
    """How the means of a column are to be shown: `date`, `flag` or as they are."""
    with suppress(ValueError):
        kind = "date" if date_form(values, "", order) is not None else column_kind(values, "")
        return {"date": "date", "boolean": "flag"}.get(kind, "")
    return ""


def _means(numbers: Floats, rows: Ints, size: int) -> tuple[Floats, Floats]:
    """Mean, NaN without any, and sum of the numbers of every row."""
    known = ~np.isnan(numbers)
    sums = np.bincount(rows[known], numbers[known], minlength=size)
    counts = np.bincount(rows[known], minlength=size)
    with np.errstate(invalid="ignore"):  # 0 / 0
        return sums / counts, sums.astype(float)


def _told(values: Any, rows: Ints, places: Ints, size: int, step: Step, order: str | None) -> Any:
    """A column of the far table as one of the near one: cells as they are, means, or lists."""
    if step.several != SEVERAL:
        row = np.full(size, -1)
        row[rows[::-1]] = places[::-1]
        return values.reindex(row).array  # no row is called -1
    if (numbers := _numbers(values, order)) is not None:
        return _means(numbers[places], rows, size)[0]
    cells = values[places].set_axis(rows).explode().dropna()  # of lists
    cells = cells[~is_empty(cells)]
    return _cells(cells.index.to_numpy(), cells.to_numpy().astype(str), size, SEVERAL)


# Which table refers to which.

Refers = list[tuple[str, str, str, str, str]]
"""Relation, table, column, table, column."""


def find_steps(
    nodes: Any, others: OtherTables, id: str | None, roles: Sequence[str], notes: Notes
) -> tuple[list[Step], str | None]:
    """The steps from the nodes to every other table, the nearest first, and the id column."""
    frames, keys = {"": nodes, **others.tables}, dict[str, tuple[str, Any]]()
    for kind, frame in frames.items():
        rest = [part for part in (*frames.values(), *others.edges.values()) if part is not frame]
        free = [column for column in frame.columns if column not in roles]
        keys[kind] = _key(frame, rest, [id] if id and not kind else free)
    refers: Refers = [(n, *_ends(n, part, keys, nodes)) for n, part in others.edges.items()]
    for near, frame in frames.items():
        far_keys = {kind: key for kind, key in keys.items() if kind not in ("", near)}
        for column in frame.columns.difference([*roles, keys[near][0]], sort=False):
            number = frame[column].dtype.kind in "iuf"  # is an id only if it is called so
            for kind in _matching(column, frame[column], far_keys, nodes, strict=number)[:1]:
                refers.append((column, near, column, kind, ""))
    steps, reached, level = list[Step](), {""}, {""}
    while level:
        found = set[str]()
        for name, near, end, far, far_end in refers:
            if far in level and far_end and near not in level:  # towards the nodes
                near, end, far, far_end = far, far_end, near, end
            if near in level and (far not in reached or near == far == ""):
                found |= {far} - {""}
                pairs = others.edges[name][[end, far_end]] if far_end else frames[near][:0]
                several = REPEATED if pairs.duplicated().any() else ""
                if far_end and pairs.drop_duplicates()[end].duplicated().any():
                    several = SEVERAL
                key, far_key = (keys.get(kind, ("",))[0] for kind in (near, far))
                steps.append(Step(name, near, key, end, far, far_key, far_end, several))
        reached, level = reached | found, found
    for kind in others.tables.keys() - reached:
        text = f"Nothing leads from {table_name(nodes, 'nodes')} to the table {kind}: name an "
        raise ValueError(f"{text}edges table with --edges, or a column that holds its ids.")
    for step in steps:
        if step.near == step.far:
            continue
        size = len(frames[step.far]) if step.far in frames else 0
        by = f"{step.near_end} and {step.far_end} of {step.name}" if step.far_end else step.name
        text = f"{step.far.capitalize()} ({plural(size, 'row')}) by {by}: columns {step.name}.*"
        notes.add(NoteKind.RELATIONS, f"{text}{' and a link' if step.is_link else ''}.")
    return steps, keys[""][0] or None


def _key(table: Any, others: Sequence[Any], columns: Sequence[str]) -> tuple[str, Any]:
    """The column with the ids of a table, and their names: one that others refer to, if any."""
    fallback: tuple[str, Any] = ("", pd.Index([]))
    for column in sorted(columns, key=lambda c: (c.lower() != "id", not is_id_name(c))):
        with suppress(TypeError, ValueError):  # lists, empty cells
            values = table[column]
            if values.dtype.kind in "bfmM" or not values.is_unique or is_empty(values).any():
                continue
            index = pd.Index(canonical_names(values))
            if not index.is_unique:  # apart from spaces
                continue
            if any(_fits(other[name], index) for other in others for name in other.columns):
                return column, index
            fallback = fallback if fallback[0] else (column, index)
    return fallback


def _fits(values: Any, index: Any) -> bool:
    """Whether the first cells of a column are ids of a table."""
    with suppress(ValueError, TypeError):  # lists
        known = values.dropna().iloc[:CHECKED_EDGES]
        known = known[~is_empty(known)]
        return len(known) > 0 and bool((index.get_indexer(canonical_names(known)) >= 0).all())
    return False


def _stem(name: str) -> str:
    """`device` of device_id, devices and deviceId."""
    return _ENDING.sub("", Path(name).name.split(".")[0]).lower()


Keys = Mapping[str, tuple[str, Any]]


def _matching(column: str, values: Any, keys: Keys, nodes: Any, *, strict: bool) -> list[str]:
    """The tables that a column holds ids of; of several, or if strict, those it is called like."""
    found = [kind for kind, (key, index) in keys.items() if key and _fits(values, index)]
    called = [
        kind
        for kind in found
        if _stem(column) in {_stem(kind or table_name(nodes, "nodes")), _stem(keys[kind][0])}
    ]
    return called if strict else called or found


def _ends(name: str, edges: Any, keys: Keys, nodes: Any) -> tuple[str, str, str, str]:
    """Near table, its column, far table and its column of an edges table."""
    table, ends = table_name(edges, name), dict[str, str]()
    fits = {c: _matching(c, edges[c], keys, nodes, strict=False) for c in edges.columns}
    called = [c for c in fits if _matching(c, edges[c], keys, nodes, strict=True)]
    for column in [*called, *(c for c in fits if fits[c] and c not in called)][:2]:
        if len(fits[column]) > 1:
            kinds = " and ".join(kind or table_name(nodes, "nodes") for kind in fits[column])
            text = f"Column {column!r} of {table} fits the ids of {kinds}; call it like one of them"
            raise ArgumentError(f"{text}.", argument="edges")
        ends[column] = fits[column][0]
    free = [column for column in edges.columns if column not in ends]
    if not ends or len(ends) + len(free) < 2:
        raise ValueError(f"{table} needs two columns, one of them with ids of a table's rows.")
    if len(ends) == 1:  # of a kind without a table, which is called like the column
        for kind, (key, index) in keys.items():
            if kind and _stem(free[0]) == _stem(kind) and not key:
                raise ValueError(f"The table {kind} has no column of distinct values for ids.")
            if _stem(free[0]) in (_stem(kind), _stem(key)) and key:
                edge_rows(edges[free[0]], edges[free[0]], index, table)  # raises an error
        ends[free[0]] = free[0]
    (near_end, near), (far_end, far) = ends.items()
    return near, near_end, far, far_end
