"""The edges of a packed graph, by SQL: ids to row numbers, both directions, sorted, no repeats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evengraph.disk import PackWriter
from evengraph.disk.engine import Engine, TableFiles, quote_name
from evengraph.disk.packed_graph import ArrayFile
from evengraph.disk.writer import index_dtype
from evengraph.tables import TableColumns, UnknownNodeError
from evengraph.tables.cells import location, plural

Ints = NDArray[np.int64]
Keys = tuple[Ints, NDArray[np.float64] | None]

INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
REALS = ("FLOAT", "DOUBLE", "DECIMAL")
SPACES = "' ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13) || chr(160)"
RANGES = 4096  # of nodes; edges are counted in each before they are sorted
SORT_BYTES = 80
"""Memory that DuckDB takes to sort an edge, and as much again to be safe."""
WHOLE_NUMBER = r"'^(-?\d+)\.0+$'"  # pandas writes 3 as 3.0 in a column with empty cells


class Ends(NamedTuple):
    """SQL of the ids of nodes and of both ends of an edge, in one type.

    `id` is empty if ids are row numbers.
    """

    id: str
    source: str
    target: str


def canonical_ends(
    engine: Engine, nodes: TableFiles, edges: TableFiles, columns: TableColumns
) -> Ends:
    """How ids are compared: as integers where all are, else as the names of `canonical_name`."""
    names = [str(columns.source), str(columns.target)]
    types = edges.types(engine, names)
    if columns.id is not None:
        names, types = [columns.id, *names], nodes.types(engine, [columns.id]) + types
    cells = [quote_name(name) for name in names]
    if not INTEGERS.issuperset(types):
        cells = [as_name(cell, type) for cell, type in zip(cells, types, strict=True)]
    if columns.id is None:
        return Ends("", *(f"TRY_CAST({cell} AS BIGINT)" for cell in cells))
    return Ends(*cells)


def as_name(cell: str, type: str) -> str:
    """SQL of the canonical name of a cell, NULL if it is empty."""
    if type == "VARCHAR":
        return f"nullif(trim({cell}, {SPACES}), '')"
    if type.startswith(REALS):
        whole = f"CAST(CAST({cell} AS HUGEINT) AS VARCHAR)"
        return f"CASE WHEN {cell} = trunc({cell}) THEN {whole} ELSE CAST({cell} AS VARCHAR) END"
    return f"CAST({cell} AS VARCHAR)"


def number_nodes(engine: Engine, nodes: TableFiles, ends: Ends, id: str, where: str) -> None:
    """Make the table `ids`, whose row ids are the numbers of nodes; ids must be unique."""
    query = f"SELECT {ends.id} AS name FROM ({nodes.query([id])})"
    engine.run(f"CREATE OR REPLACE TABLE ids AS {query}", "reading ids")
    (empty,) = engine.values("SELECT count(*) FROM ids WHERE name IS NULL")
    if empty:
        raise ValueError(f"{where} is empty; every node needs an id (empty ids: {empty}).")
    total, distinct = engine.values("SELECT count(*), count(DISTINCT name) FROM ids")
    if distinct < total:
        (name,) = engine.values("SELECT name FROM ids GROUP BY name HAVING count(*) > 1 LIMIT 1")
        raise ValueError(
            f"{where} repeats the id {str(name)!r}; ids must be unique (repeated ids: "
            f"{total - distinct})."
        )


def link(
    engine: Engine, edges: TableFiles, ends: Ends, columns: TableColumns, num_nodes: int
) -> list[str]:
    """Make the table `links` of row numbers s and t, and weights w if there are any.

    Returns notes about edges that are left out.
    """
    used = [str(column) for column in (columns.source, columns.target)]
    cells = [f"{ends.source} AS a", f"{ends.target} AS b"]
    if columns.weight is not None:
        used.append(columns.weight)
        cells.append(f"TRY_CAST({quote_name(columns.weight)} AS DOUBLE) AS w")
    rows = f"SELECT {', '.join(cells)} FROM ({edges.query(used)})"
    lost = _look_up(engine, rows, ends, num_nodes, columns.weight is not None)
    if lost and "trim(" in ends.source + ends.target:
        a, b = (rf"regexp_replace({end}, {WHOLE_NUMBER}, '\1') AS {end}" for end in "ab")
        rows = f"SELECT * REPLACE ({a}, {b}) FROM ({rows})"
        lost = _look_up(engine, rows, ends, num_nodes, columns.weight is not None)
    if lost:
        _raise_lost(engine, edges, rows, ends, columns, lost)
    if columns.weight is None:
        return []
    return _check_weights(engine, location(edges.name, columns.weight))


def _look_up(engine: Engine, rows: str, ends: Ends, num_nodes: int, weighted: bool) -> int:
    """Look up both ends of every edge; returns for how many that failed."""
    s, t = "source.rowid", "target.rowid"
    tables = f"({rows})"
    if ends.id:
        for alias, end in (("source", "a"), ("target", "b")):
            tables += f" LEFT JOIN ids AS {alias} ON {end} = {alias}.name"
    else:
        s, t = (f"CASE WHEN {end} BETWEEN 0 AND {num_nodes - 1} THEN {end} END" for end in "ab")
    type = "INTEGER" if num_nodes <= np.iinfo(np.int32).max else "BIGINT"
    weight = ", w" if weighted else ""
    query = f"SELECT CAST({s} AS {type}) AS s, CAST({t} AS {type}) AS t{weight} FROM {tables}"
    engine.run(f"CREATE OR REPLACE TABLE links AS {query}", "linking edges", ordered=False)
    (lost,) = engine.values("SELECT count(*) FROM links WHERE s IS NULL OR t IS NULL")
    return int(lost)


def _raise_lost(
    engine: Engine, edges: TableFiles, rows: str, ends: Ends, columns: TableColumns, lost: int
) -> None:
    """Raise an error about an end that is empty or that no node has as its id."""
    for end, column in (("a", columns.source), ("b", columns.target)):
        where = location(edges.name, column)
        (empty,) = engine.values(f"SELECT count(*) FROM ({rows}) WHERE {end} IS NULL")
        if empty and ends.id:
            raise ValueError(
                f"{where} is empty in {plural(empty, 'row')}; an edge needs both ends."
            )
        unknown = "" if not ends.id else f"ANTI JOIN ids ON {end} = name"
        found = engine.values(f"SELECT {end}, count(*) OVER () FROM ({rows}) {unknown} LIMIT 1")
        if not ends.id:
            raise ValueError(
                f"{where} must hold row numbers of nodes from 0 on: there is no id column "
                f"({plural(lost, 'edge')} with other values)."
            )
        if found is not None:
            (total,) = engine.values("SELECT count(*) FROM links")
            hint = "; is the id column the right one?" if lost == total else "."
            raise UnknownNodeError(
                f"{where} names {str(found[0])!r}, which is not the id of a node; {lost} of "
                f"{total} edges have such an end{hint}",
                node=str(found[0]),
                num_edges=lost,
            )


def _check_weights(engine: Engine, where: str) -> list[str]:
    """Drop edges of weight 0; other weights must be positive numbers."""
    wrong, zero = engine.values(
        "SELECT count(*) FILTER (w IS NULL OR NOT isfinite(w) OR w < 0), count(*) FILTER (w = 0) "
        "FROM links"
    )
    if wrong:
        raise ValueError(
            f"{where}: a weight must be a number from 0 on, leave out other rows (there are "
            f"{wrong})."
        )
    if zero:
        engine.run("DELETE FROM links WHERE w = 0")
        return [f"Dropped {plural(zero, 'edge')}: weight 0."]
    return []


def write_edges(engine: Engine, writer: PackWriter, num_nodes: int, weighted: bool) -> list[str]:
    """Write indptr, indices and weights from the table `links`; returns notes."""
    links, loops = engine.values("SELECT count(*), count(*) FILTER (s = t) FROM links")
    degrees = np.zeros(num_nodes, dtype=np.int64)
    with (
        ArrayFile(writer.folder / "indices.npy", index_dtype(num_nodes)) as indices,
        ArrayFile(writer.folder / "edge_weight.npy", np.float32) as weights,
    ):
        for keys, weight in _sorted_keys(engine, num_nodes, weighted):
            sources, targets = np.divmod(keys, num_nodes)
            indices.append(targets)
            first = int(sources[0])
            counts = np.bincount(sources - first)
            degrees[first : first + len(counts)] += counts
            if weight is not None:
                weights.append(weight)
    if not weighted:
        weights.path.unlink()
    writer.write("indptr", np.concatenate([[0], np.cumsum(degrees)]))
    merged = links - loops - indices.length // 2
    summed = ", their weights summed" if weighted else ""
    notes = [f"Dropped {plural(loops, 'self-loop')}."] if loops else []
    if merged:
        notes.append(f"Merged {plural(merged, 'repeated or reverse edge')}{summed}.")
    isolated = int((degrees == 0).sum())
    if isolated:
        notes.append(f"Nodes without edges: {isolated} of {num_nodes}.")
    return notes


def _sorted_keys(engine: Engine, num_nodes: int, weighted: bool) -> Iterator[Keys]:
    """Batches of distinct keys source * N + target, ascending, both directions of every edge.

    Ranges of sources are sorted one by one, each small enough for the memory of the engine.
    Weights of repeated edges are summed; where both directions are given, the larger sum counts.
    """
    table, weight = "links", ""
    if weighted:
        query = "SELECT s, t, sum(w) AS w FROM links GROUP BY s, t"
        engine.run(f"CREATE OR REPLACE TABLE sums AS {query}", "adding weights", ordered=False)
        table, weight = "sums", ", w"
    for start, stop in _source_ranges(engine, table, num_nodes):
        ahead, back = (
            f"SELECT {a}::BIGINT * {num_nodes} + {b} AS k{weight} FROM {table} "
            f"WHERE s <> t AND {a} >= {start} AND {a} < {stop}"
            for a, b in ("st", "ts")
        )
        query = f"SELECT * FROM ({ahead} UNION ALL {back}) ORDER BY k"
        span = start / num_nodes, stop / num_nodes
        yield from _distinct(engine.batches(query, "sorting edges", span), weighted)


def _source_ranges(engine: Engine, table: str, num_nodes: int) -> list[tuple[int, int]]:
    """Ranges of nodes whose edges can be sorted in memory."""
    width = -(-num_nodes // RANGES)
    ends = " UNION ALL ".join(f"SELECT {end} // {width} AS part FROM {table}" for end in "st")
    query = f"SELECT part, count(*) AS count FROM ({ends}) GROUP BY part"
    counts = np.zeros(RANGES, dtype=np.int64)
    frame = engine.frame(query)
    counts[frame["part"]] = frame["count"]
    ranges, start, size, most = [], 0, 0, engine.memory // SORT_BYTES
    for part, count in enumerate(counts.tolist()):
        if size and size + count > most:
            ranges.append((start, part * width))
            start, size = part * width, 0
        size += count
    return [*ranges, (start, num_nodes)]


def _distinct(batches: Iterator[Any], weighted: bool) -> Iterator[Keys]:
    """Merge equal keys of sorted batches, also where a batch ends between them."""
    rest: tuple[Ints, NDArray[Any]] = np.empty(0, np.int64), np.empty(0)
    for batch in batches:
        columns = [np.asarray(batch.column(i)) for i in range(batch.num_columns)]
        keys = np.concatenate([rest[0], columns[0]])
        values = np.concatenate([rest[1], columns[1]]) if weighted else np.empty(0)
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        last = starts[-1]  # the next batch may repeat it
        rest = keys[last:], values[last:]
        starts = starts[:-1]
        if len(starts):
            yield keys[starts], np.maximum.reduceat(values[:last], starts) if weighted else None
    if len(rest[0]):
        yield rest[0][:1], rest[1].max(keepdims=True) if weighted else None
