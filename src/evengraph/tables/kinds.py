"""Other kinds of nodes: tables of devices or cards that tell of the accounts to classify.

Only rows of the nodes table are nodes of the graph, so that no device can be predicted, drawn as a
pseudo-label or scored. What an account's devices hold becomes columns of the account, and accounts
that share a device are linked (`tables.links`), which takes linear time however many share it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from evengraph.core.errors import ArgumentError, listed
from evengraph.tables.cells import (
    Floats,
    Ints,
    canonical_names,
    check_columns,
    column_kind,
    date_form,
    import_pandas,
    is_empty,
    plural,
    seconds_of,
    table_name,
    to_numbers,
    to_signs,
)
from evengraph.tables.columns import NODE_NAMES, is_id_name, normalize_table
from evengraph.tables.edges import UnknownNodeError, edge_rows, id_index
from evengraph.tables.notes import NoteKind, Notes

CHECKED = 1000  # cells that decide what a column refers to
SEVERAL, REPEATED = "several", "repeated"
SUMMED = ("number", "boolean", "date")
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
    several: str  # whether a row may lead to more than one, or to the same one repeatedly

    @property
    def own(self) -> bool:
        """Whether it joins nodes with nodes."""
        return self.near == self.far == ""


@dataclass(frozen=True, kw_only=True, eq=False)
class OtherTables:
    """Tables of other kinds, edges of all kinds by their type, and columns to leave out."""

    tables: Mapping[str, Any]
    edges: Mapping[str, Any]
    drop: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, tables: Mapping[str, Any], edges: Mapping[str, Any], steps: Sequence[Step] | None
    ) -> Self:
        """The tables with text column names; new ones are called as those of training."""
        kinds, names = ([s.far for s in steps or ()], [s.name for s in steps or ()])
        if steps is not None:
            tables = {_known_as(name, kinds, "table"): table for name, table in tables.items()}
            edges = {_known_as(name, names, "edges table"): e for name, e in edges.items()}
        for name in tables:
            if not name or name in edges:
                raise ValueError(f"Two tables are called {name!r}; rename one.")
        tables = {name: normalize_table(table, name) for name, table in tables.items()}
        return cls(tables=tables, edges={n: normalize_table(t, n) for n, t in edges.items()})

    def joined(self, new: OtherTables, steps: Sequence[Step]) -> OtherTables:
        """These rows with new ones, which replace those of the same id."""
        concat, keys = import_pandas().concat, {step.far: step.far_key for step in steps}
        tables, edges = dict(self.tables), dict(self.edges)
        for kind, table in new.tables.items():
            both = concat([tables[kind], table], ignore_index=True) if kind in tables else table
            if keys.get(kind):
                check_columns(both, [keys[kind]], kind)
                names = import_pandas().Series(canonical_names(both[keys[kind]]))
                both = both[~names.duplicated(keep="last")].reset_index(drop=True)
            tables[kind] = both
        for name, rows in new.edges.items():
            edges[name] = concat([edges[name], rows], ignore_index=True) if name in edges else rows
        return OtherTables(tables=tables, edges=edges, drop=self.drop)

    def until(self, time: float, times: Mapping[str, Floats]) -> OtherTables:
        """The tables without later edges, and without those that have no time."""
        edges = {
            name: rows[times[name] <= time].reset_index(drop=True) if name in times else rows
            for name, rows in self.edges.items()
        }
        return OtherTables(tables=self.tables, edges=edges, drop=self.drop)

    def times(self, column: str | None, order: str | None) -> dict[str, Floats]:
        """Times of the edges of every type that has a column of them."""
        found = {}
        for name, rows in self.edges.items():
            usual = [column] if column else ["time", "timestamp", "date", "edge_time"]
            for one in (c for c in rows.columns if c in usual or c.lower() in usual):
                with suppress(ValueError):
                    found[name] = _number_cells(rows[one], table_name(rows, name), order)
                    break
        return found

    def own_edges(self, steps: Sequence[Step]) -> dict[str, Any]:
        """The edges tables between nodes."""
        return {s.name: self.edges[s.name] for s in steps if s.own and s.name in self.edges}

    def attach(
        self, nodes: Any, steps: Sequence[Step], order: str | None
    ) -> tuple[Any, tuple[str, ...]]:
        """The nodes table with what other tables tell of its rows, and the names of the columns."""
        frames, made = {"": nodes, **self.tables}, list[str]()
        for step in reversed(steps):  # those of the most distant tables first
            if step.own:
                continue
            near = frames.get(step.near)
            if near is None:
                continue
            columns = self._columns(step, near, frames.get(step.far), order)
            if step.near == "":
                made += [name for name in columns if name not in made]
            for name in columns:
                if name in near.columns:
                    table = table_name(near, step.near or "nodes")
                    text = f"{table} has a column {name!r}, a name of features from other tables"
                    raise ValueError(f"{text}; rename it.")
            attributes, pandas = near.attrs, import_pandas()
            near = pandas.concat([near, pandas.DataFrame(columns, index=near.index)], axis=1)
            near.attrs = attributes
            frames[step.near] = near
        return frames[""], tuple(made)

    def _columns(self, step: Step, near: Any, far: Any, order: str | None) -> dict[str, Any]:
        """What the rows of the far table tell of those of the near one."""
        size, edges, found = len(near), self.edges.get(step.name), dict[str, Any]()
        rows, ids = _pairs(step, near, far, edges)
        if step.far_end and (step.near == "" or far is None):
            found[step.name] = _cells(rows, ids, size, step.several)
        if far is not None:
            index = import_pandas().Index(canonical_names(far[step.far_key]), dtype=object)
            places = np.asarray(index.get_indexer(ids), np.int64)
            for column in far.columns:
                name = f"{step.name}.{column}"
                if column != step.far_key and name not in self.drop:
                    found[name] = _told(far[column], rows, places, size, step, order)
        if step.several:
            found[f"{step.name}.count"] = np.bincount(rows, minlength=size).astype(float)
        ends = (step.near_end, step.far_end)
        for column in () if edges is None else edges.columns.difference(ends, sort=False):
            assert edges is not None
            kind, name = _kind(edges[column], order), f"{step.name}: {column}"
            if kind not in SUMMED:
                continue
            numbers = _number_cells(edges[column], step.name, order)
            if kind == "date":  # days from the newest of all to the newest of the row
                last = np.full(size, np.nan)
                np.fmax.at(last, rows, numbers)
                found[f"{name}, age"] = (np.nanmax(numbers, initial=-np.inf) - last) / 86_400
                continue
            found[f"{name}, mean"], sums = _means(numbers, rows, size)
            if step.several:
                found[f"{name}, sum"] = sums
        return found


def _known_as(name: str, known: Sequence[str], what: str) -> str:
    """The name that a table has in training: new_devices.csv holds devices."""
    found = [one for one in known if one and one in name]
    if not found:
        names = listed(list(dict.fromkeys(filter(None, known))))
        raise ValueError(f"The {what} {name!r} is called like none of those of training: {names}.")
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
    table = table_name(edges, step.name)
    index = id_index(near[step.near_key], table_name(near, step.near or "nodes"))
    rows, _ = edge_rows(edges[step.near_end], edges[step.near_end], index, table)
    if far is not None:
        known = id_index(far[step.far_key], table_name(far, step.far))
        edge_rows(edges[step.far_end], edges[step.far_end], known, table)
    return rows, canonical_names(edges[step.far_end])


def _cells(rows: Ints, values: Any, size: int, several: str) -> Any:
    """The values of every row as cells: the first, or a list of all that differ."""
    cells = np.full(size, None, object)
    if several != SEVERAL:
        cells[rows[::-1]] = values[::-1]
        return cells
    order = np.lexsort((values.astype(str), rows))
    starts = np.flatnonzero(np.diff(rows[order], prepend=-1))
    for start, part in zip(starts, np.split(values[order], starts[1:]), strict=True):
        cells[rows[order[start]]] = list(dict.fromkeys(part.tolist()))
    return cells


def _kind(values: Any, order: str | None) -> str:
    with suppress(ValueError):
        return "date" if date_form(values, "", order) is not None else column_kind(values, "")
    return "text"


def _number_cells(values: Any, table: str, order: str | None) -> Floats:
    """Numbers, signs of booleans and seconds of dates, NaN where empty."""
    form = date_form(values, table, order)
    kind = "date" if form is not None else column_kind(values, table)
    if kind == "boolean":
        return np.where(is_empty(values), np.nan, to_signs(values, table))
    return seconds_of(values, table, form or "") if kind == "date" else to_numbers(values, table)


def _means(numbers: Floats, rows: Ints, size: int) -> tuple[Floats, Floats]:
    """Mean, NaN without any, and sum of the numbers of every row."""
    known = ~np.isnan(numbers)
    sums = np.bincount(rows[known], numbers[known], minlength=size)
    counts = np.bincount(rows[known], minlength=size)
    with np.errstate(invalid="ignore"):  # 0 / 0
        return sums / counts, sums.astype(float)


def _told(values: Any, rows: Ints, places: Ints, size: int, step: Step, order: str | None) -> Any:
    """A column of the far table as one of the near one: cells as they are, means, or lists."""
    rows, places = rows[places >= 0], places[places >= 0]
    if step.several != SEVERAL:
        row = np.full(size, -1)
        row[rows[::-1]] = places[::-1]
        return values.reset_index(drop=True).reindex(row).array  # no row is called -1
    if _kind(values, order) in SUMMED:
        return _means(_number_cells(values, step.far, order)[places], rows, size)[0]
    known = ~is_empty(values)[places]
    cells = import_pandas().Series(values.to_numpy(object)[places][known], index=rows[known])
    cells = cells.explode().dropna()  # of lists
    return _cells(cells.index.to_numpy(), cells.to_numpy().astype(str), size, SEVERAL)


# Which table refers to which.


def find_steps(
    nodes: Any, others: OtherTables, id: str | None, roles: Sequence[str], notes: Notes
) -> tuple[list[Step], str | None]:
    """The steps from the nodes to every other table, the nearest first, and the id column."""
    frames = {"": nodes, **others.tables}
    keys = {kind: _keys(table, id if not kind else None, roles) for kind, table in frames.items()}
    used, links = dict[str, str](), list[tuple[str, str, str, str, str]]()
    for name, edges in others.edges.items():
        links.append((name, *_ends(name, edges, keys, frames, used)))
    for near, table in frames.items():
        for column in table.columns:
            own = used.get(near) or next((key for key, _ in keys[near]), None)
            if column in roles or column == own:
                continue
            if far := _refers(column, table[column], near, keys, frames, used):
                links.append((column, near, column, far, ""))
    key = id or used.get("")
    if key is None:
        key = next((column for column, _ in keys[""]), None)
    used[""] = key or ""
    steps, reached, level = list[Step](), {""}, {""}
    while level:
        found = set[str]()
        for name, *ends in links:
            near, near_end, far, far_end = ends
            if far in level and far_end and near not in level:  # towards the nodes
                near, near_end, far, far_end = far, far_end, near, near_end
            if near in level and (far not in reached or near == far == ""):
                found |= {far} - {""}
                step = Step(
                    name, near, used.get(near, ""), near_end, far, used.get(far, ""), far_end, ""
                )
                steps.append(_counted(step, others.edges.get(name)))
        reached, level = reached | found, found
    for kind in others.tables:
        if kind not in reached:
            text = f"Nothing leads from {table_name(nodes, 'nodes')} to the table {kind}: name an "
            raise ValueError(f"{text}edges table with --edges, or a column that holds its ids.")
    for step in steps:
        if not step.own:
            _note(step, others, notes)
    return steps, key


def _counted(step: Step, edges: Any) -> Step:
    """The step, with whether a row of the near table leads to several."""
    if edges is None or not step.far_end:
        return step
    pairs = edges[[step.near_end, step.far_end]].drop_duplicates()
    repeated = REPEATED if len(pairs) < len(edges) else ""
    return step._replace(several=SEVERAL if pairs[step.near_end].duplicated().any() else repeated)


def _note(step: Step, others: OtherTables, notes: Notes) -> None:
    rows = len(others.tables[step.far]) if step.far in others.tables else 0
    what = plural(rows, "row") if rows else "without a table"
    by = f"{step.near_end} and {step.far_end} of {step.name}" if step.far_end else step.near_end
    count = ", several for a row" if step.several == SEVERAL else ""
    notes.add(NoteKind.RELATIONS, f"{step.far.capitalize()} ({what}), found by {by}{count}: "
              f"columns {step.name}.* and a link.")  # fmt: skip


def _keys(table: Any, named: str | None, roles: Sequence[str]) -> list[tuple[str, Any]]:
    """The columns that may hold the ids of a table, the likeliest first, and their values."""
    columns = [named] if named else [c for c in table.columns if c not in roles]
    order = sorted(columns, key=lambda c: (c.lower() not in NODE_NAMES["id"], not is_id_name(c)))
    found = []
    for column in order:
        values = table[column]
        with suppress(TypeError, ValueError):
            if values.dtype.kind not in "bmM" and values.is_unique and not is_empty(values).any():
                found.append((column, import_pandas().Index(canonical_names(values))))
    return found[:3]


def _fits(values: Any, index: Any) -> bool:
    """Whether the first cells of a column are ids of a table."""
    with suppress(ValueError, TypeError):  # lists
        known = values[~is_empty(values)].iloc[:CHECKED]
        return len(known) > 0 and bool((index.get_indexer(canonical_names(known)) >= 0).all())
    return False


def _stem(name: str) -> str:
    """`device` of device_id, devices and deviceId."""
    return _ENDING.sub("", Path(name).name.split(".")[0]).lower()


def _called(column: str, kind: str, key: str, nodes: Any) -> bool:
    """Whether a column is called like a table or its id column."""
    names = {_stem(kind or table_name(nodes, "nodes")), _stem(key)} - {""}
    return _stem(column) in names


Keys = Mapping[str, list[tuple[str, Any]]]


def _matches(column: str, values: Any, keys: Keys, nodes: Any) -> Iterator[tuple[str, str, bool]]:
    for kind, candidates in keys.items():
        for key, index in candidates:
            if _fits(values, index):
                yield kind, key, _called(column, kind, key, nodes)
                break


def _ends(
    name: str, edges: Any, keys: Keys, frames: Mapping[str, Any], used: dict[str, str]
) -> tuple[str, str, str, str]:
    """Near table, its column, far table and its column of an edges table."""
    found = {}
    for column in edges.columns:
        fits = list(_matches(column, edges[column], keys, frames[""]))
        if fits:
            found[column] = [fit for fit in fits if fit[2]] or fits
    called = [column for column, fits in found.items() if fits[0][2]]
    ends = list(dict.fromkeys([*called, *found]))[:2]
    table = table_name(edges, name)
    for column in ends:
        if len(found[column]) > 1:
            kinds = " and ".join(
                kind or table_name(frames[""], "nodes") for kind, *_ in found[column]
            )
            text = f"Column {column!r} of {table} fits the ids of {kinds}; call it like one of them"
            raise ArgumentError(
                f"{text}, such as {_stem(found[column][-1][0])}_id.", argument="edges"
            )
    if not ends:
        text = f"{table}: no column holds ids of {listed([k or 'the nodes' for k in keys])}"
        raise UnknownNodeError(f"{text}.", node="", num_edges=len(edges))
    parts = []
    for column in ends:
        kind, key, _ = found[column][0]
        if used.setdefault(kind, key) != key:
            text = f"Columns {used[kind]!r} and {key!r} both hold ids of "
            raise ArgumentError(f"{text}{kind or 'the nodes'}; keep one.", argument="id")
        parts += [kind, column]
    if len(parts) == 2:  # a kind without a table
        other = next((column for column in edges.columns if column not in ends), None)
        if other is None:
            raise ValueError(f"{table} needs two columns, one for each end of an edge.")
        partly = [
            k for k, known in keys.items() if known and _called(other, k, known[0][0], frames[""])
        ]
        for kind in partly:
            edge_rows(edges[other], edges[other], keys[kind][0][1], table)  # which raises an error
        parts += [other, other]
    return parts[0], parts[1], parts[2], parts[3]


def _refers(
    column: str, values: Any, near: str, keys: Keys, frames: Mapping[str, Any], used: dict[str, str]
) -> str | None:
    """The table that a column holds ids of: numbers only if it is called like it."""
    rest = {kind: known for kind, known in keys.items() if kind not in ("", near)}
    for kind, key, called in _matches(column, values, rest, frames[""]):
        numbers = values.dtype.kind in "iuf" or canonical_names(values.iloc[:1])[0].isdecimal()
        if (called or not numbers) and used.setdefault(kind, key) == key:
            return kind
    return None
