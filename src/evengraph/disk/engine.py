"""DuckDB with a memory limit: files of tables, ids of nodes, and edges, by SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evengraph.core.lazy import import_optional
from evengraph.core.machine import format_size
from evengraph.disk.graphs import PackWriter, index_dtype
from evengraph.disk.packed_graph import ArrayFile, PackedGraph, Progress, TextArray, no_progress
from evengraph.tables import TableColumns, UnknownNodeError
from evengraph.tables.cells import location, plural
from evengraph.tables.read import check_parquet, csv_header, table_suffix

BATCH_ROWS = 1 << 20
STREAMED = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz")  # can be larger than memory
Keys = tuple[NDArray[np.int64], NDArray[np.float64] | None]
INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
SPACES = "' ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13) || chr(160)"
RANGES = 4096  # of nodes; edges are counted in each before they are sorted
SORT_BYTES = 80  # memory that DuckDB takes to sort an edge, and as much again to be safe
WHOLE_NUMBER = r"'^(-?\d+)\.0+$'"  # pandas writes 3 as 3.0 in a column with empty cells


class Engine:
    """A DuckDB database in a file, whose tables survive a kill; `memory` is what it may hold."""

    def __init__(self, path: Path, memory: int, progress: Progress = no_progress) -> None:
        duckdb = import_optional("duckdb", "'.[disk]'")
        self.progress, self.memory = progress, max(memory, 2**27)
        self.connection = duckdb.connect(str(path))
        self.errors, self.out_of_memory = duckdb.Error, duckdb.OutOfMemoryException
        for name, value in (
            ("memory_limit", f"{self.memory // 2**20}MiB"),
            ("temp_directory", str(path.with_suffix(".spill"))),
            ("scheduler_process_partial", True),  # otherwise Ctrl-C waits for the end of a query
        ):
            self.connection.execute(f"SET {name} = {quote_value(value)}")

    def close(self) -> None:
        self.connection.close()

    def run(self, query: str, stage: str = "", *, ordered: bool = True) -> None:
        """Run a statement; rows need not keep their order unless `ordered`, which saves memory."""
        self.connection.execute(f"SET preserve_insertion_order = {ordered}")
        if stage:
            self.progress(stage, None)
        with self._own_errors():
            self.connection.execute(query)

    def values(self, query: str) -> Any:
        """The row of a result of one row; None if there is none."""
        with self._own_errors():
            rows = self.connection.execute(query).fetchall()
        return rows[0] if rows else None  # not `fetchone`, which leaves the result open

    def frame(self, query: str) -> Any:
        """A small result as a pandas DataFrame, with the types that Arrow gives it."""
        with self._own_errors():
            return self.connection.sql(query).to_arrow_table().to_pandas()

    def batches(self, query: str) -> Iterator[Any]:
        """The result as Arrow record batches, in order."""
        self.connection.execute("SET preserve_insertion_order = true")
        with self._own_errors():
            yield from self.connection.sql(query).to_arrow_reader(BATCH_ROWS)

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        try:
            yield
        except self.errors as error:
            if isinstance(error, self.out_of_memory):
                share = format_size(self.memory)
                raise ValueError(
                    f"memory must be larger: DuckDB needs more than its share, {share}."
                ) from None
            # the file and the reason, without advice about DuckDB's options
            file = re.search(r"^\s*file ?= ?(.+)$", str(error), flags=re.MULTILINE)
            reason = re.split(r"Possible (?:fixes|[Ss]olution)|LINE \d", str(error))[0]
            reason = " ".join(reason.split())[:300].rstrip(".")
            name = file[1] if file else "The tables"
            raise ValueError(f"{name} cannot be read: {reason}.") from None
        except RuntimeError as error:
            if "interrupted" in str(error):  # DuckDB takes Ctrl-C while it runs a query
                raise KeyboardInterrupt from None
            raise


def quote_name(name: str) -> str:
    """A column name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_value(value: Any) -> str:
    """A text, number, truth value or list of them in SQL."""
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(quote_value(item) for item in value)}]"
    return "'" + str(value).replace("'", "''") + "'"


@dataclass(frozen=True)
class TableFiles:
    """Files of one format with the same columns, whose rows follow one another."""

    paths: tuple[Path, ...]

    def __post_init__(self) -> None:
        suffixes = {table_suffix(path).removesuffix(".gz") for path in self.paths}
        if len(suffixes) > 1:
            raise ValueError(
                f"The files of a table must have one format, got {' and '.join(sorted(suffixes))}."
            )

    @property
    def name(self) -> str:
        """What messages call the table."""
        more = len(self.paths) - 1
        return str(self.paths[0]) + (f" and {more} more" if more else "")

    @property
    def is_parquet(self) -> bool:
        return table_suffix(self.paths[0]) == ".parquet"

    @property
    def signature(self) -> list[list[Any]]:
        """Path, size and time of every file: whether they are still the same."""
        stats = [(str(path.absolute()), path.stat()) for path in self.paths]
        return [[path, stat.st_size, stat.st_mtime_ns] for path, stat in stats]

    @cached_property
    def columns(self) -> list[str]:
        if not self.is_parquet:
            return self._csv_header[1]
        from pyarrow.parquet import read_schema

        names = [str(name) for name in read_schema(self.paths[0]).names]
        stripped = [name.strip() for name in names]
        for name in stripped:
            if stripped.count(name) > 1:
                raise ValueError(f"{self.name} has two columns called {name!r}.")
        return stripped

    def query(self, columns: Sequence[str] | None = None) -> str:
        """A SELECT of all rows in order; cells of CSV stay text, empty ones are NULL."""
        names = self.columns if columns is None else columns
        paths = quote_value([str(path) for path in self.paths])
        if self.is_parquet:
            return f"SELECT {', '.join(map(quote_name, names))} FROM read_parquet({paths})"
        separator, header = self._csv_header
        types = ", ".join(f"{quote_value(name)}: 'VARCHAR'" for name in header)
        cells = (f"nullif(ltrim({name}, ' '), '') AS {name}" for name in map(quote_name, names))
        return (
            f"SELECT {', '.join(cells)} FROM read_csv({paths}, auto_detect = false, "
            f"header = true, delim = {quote_value(separator)}, quote = '\"', escape = '\"', "
            f"columns = {{{types}}}, max_line_size = 100000000, buffer_size = 100000000)"
        )

    @cached_property
    def _csv_header(self) -> tuple[str, list[str]]:
        first = csv_header(self.paths[0])
        for path in self.paths[1:]:
            if csv_header(path) != first:
                raise ValueError(f"{path} must have the columns of {self.paths[0]}.")
        return first

    def types(self, engine: Engine, columns: Sequence[str]) -> list[str]:
        rows = engine.connection.execute(f"DESCRIBE {self.query(columns)}").fetchall()
        return [str(row[1]) for row in rows]

    def to_parquet(self, engine: Engine, path: Path) -> TableFiles:
        """Write all rows of CSV files as one Parquet file, whose columns can be read one by one."""
        query = self.query()
        if self._csv_header[0] == ";":  # decimal commas where every cell of a column is a number
            pattern = quote_value(r"\s*[+-]?\d*(,\d+)?([eE][+-]?\d+)?\s*")
            names = [quote_name(column) for column in self.columns]
            checks = (f"bool_and(regexp_full_match({name}, {pattern}))" for name in names)
            numeric = engine.values(f"SELECT {', '.join(checks)} FROM ({query})")
            cells = (
                f"replace({name}, ',', '.') AS {name}" if is_numeric else name
                for name, is_numeric in zip(names, numeric, strict=True)
            )
            query = f"SELECT {', '.join(cells)} FROM ({query})"
        options = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 65536"
        engine.run(f"COPY ({query}) TO {quote_value(str(path))} ({options})", "reading nodes")
        return TableFiles((path,))


def find_files(table: str | Path | Sequence[str | Path]) -> TableFiles:
    """The files of a table: a path, a folder, a pattern such as nodes-*.csv, or several of them."""
    parts = [table] if isinstance(table, str | Path) else list(table)
    if isinstance(table, str) and "," in table and not Path(table).expanduser().exists():
        parts = [part.strip() for part in table.split(",")]
    paths: list[Path] = []
    for part in parts:
        path = Path(part).expanduser()
        if path.is_dir():
            found = sorted(item for item in path.iterdir() if table_suffix(item) in STREAMED)
        else:
            found = [path] if path.exists() else sorted(map(Path, glob(str(path))))
        if not found:
            what = "holds no Parquet or CSV files" if path.is_dir() else "does not exist"
            raise FileNotFoundError(f"{part} {what}.")
        paths += found
    for path in paths:
        if table_suffix(path) not in STREAMED:
            raise ValueError(f"{path} must end in {', '.join(STREAMED)}.")
        if table_suffix(path) == ".parquet":
            check_parquet(path)
    return TableFiles(tuple(paths))


class Ends(NamedTuple):
    """SQL of ids of nodes (empty if they are row numbers) and of both ends of an edge.

    `known` is that of an `id` of a known graph.
    """

    id: str
    source: str
    target: str
    known: str = "id"


def canonical_ends(
    engine: Engine,
    nodes: TableFiles,
    edges: TableFiles,
    columns: TableColumns,
    known: PackedGraph | None,
) -> Ends:
    """How ids are compared: as integers where all are, else as the names of `canonical_name`."""
    names = [str(columns.source), str(columns.target)]
    types = edges.types(engine, names)
    if columns.id is not None:
        names, types = [columns.id, *names], nodes.types(engine, [columns.id]) + types
    if known is not None:
        names.append("id")
        types.append("VARCHAR" if isinstance(known.ids, TextArray) else "BIGINT")
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
    if type.startswith(("FLOAT", "DOUBLE", "DECIMAL")):
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

    Drops edges of weight 0; returns notes about edges that are left out.
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
    bad = "w IS NULL OR NOT isfinite(w) OR w < 0"
    query = f"SELECT count(*) FILTER ({bad}), count(*) FILTER (w = 0) FROM links"
    wrong, zero = engine.values(query)
    if wrong:
        raise ValueError(
            f"{location(edges.name, columns.weight)}: a weight must be a number from 0 on, leave "
            f"out other rows (there are {wrong})."
        )
    engine.run("DELETE FROM links WHERE w = 0")
    return [f"Dropped {plural(zero, 'edge')}: weight 0."] if zero else []


def _look_up(engine: Engine, rows: str, ends: Ends, num_nodes: int, weighted: bool) -> int:
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
    for end, column in (("a", columns.source), ("b", columns.target)):
        where = location(edges.name, column)
        if not ends.id:
            raise ValueError(
                f"{where} must hold row numbers of nodes from 0 on: there is no id column "
                f"({plural(lost, 'edge')} with other values)."
            )
        (empty,) = engine.values(f"SELECT count(*) FROM ({rows}) WHERE {end} IS NULL")
        if empty:
            raise ValueError(
                f"{where} is empty in {plural(empty, 'row')}; an edge needs both ends."
            )
        unknown = f"ANTI JOIN ids ON {end} = name"
        found = engine.values(f"SELECT {end} FROM ({rows}) {unknown} LIMIT 1")
        if found is not None:
            (total,) = engine.values("SELECT count(*) FROM links")
            hint = "; is the id column the right one?" if lost == total else "."
            raise UnknownNodeError(
                f"{where} names {str(found[0])!r}, which is not the id of a node; {lost} of "
                f"{total} edges have such an end{hint}",
                node=str(found[0]),
                num_edges=lost,
            )


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
    write_pointers(writer, degrees)
    merged = links - loops - indices.length // 2
    summed = ", their weights summed" if weighted else ""
    notes = [f"Dropped {plural(loops, 'self-loop')}."] if loops else []
    if merged:
        notes.append(f"Merged {plural(merged, 'repeated or reverse edge')}{summed}.")
    return notes


def write_pointers(writer: PackWriter, degrees: NDArray[np.int64]) -> None:
    writer.write("indptr", np.concatenate([[0], np.cumsum(degrees)]))


def isolated_notes(writer: PackWriter) -> list[str]:
    degrees = np.diff(writer.read("indptr"))
    isolated = int((degrees == 0).sum())
    return [f"Nodes without edges: {isolated} of {len(degrees)}."] if isolated else []


def _sorted_keys(engine: Engine, num_nodes: int, weighted: bool) -> Iterator[Keys]:
    """Batches of distinct keys source * N + target, ascending, both directions of every edge."""
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
        yield from _distinct(engine.batches(query), weighted)
        engine.progress("sorting edges", stop / num_nodes)


def _source_ranges(engine: Engine, table: str, num_nodes: int) -> list[tuple[int, int]]:
    width = -(-num_nodes // RANGES)
    ends = " UNION ALL ".join(f"SELECT {end} // {width} AS part FROM {table}" for end in "st")
    frame = engine.frame(f"SELECT part, count(*) AS count FROM ({ends}) GROUP BY part")
    counts = np.zeros(RANGES, dtype=np.int64)
    counts[frame["part"]] = frame["count"]
    ranges, start, size, most = [], 0, 0, engine.memory // SORT_BYTES
    for part, count in enumerate(counts.tolist()):
        if size and size + count > most:
            ranges.append((start, part * width))
            start, size = part * width, 0
        size += count
    return [*ranges, (start, num_nodes)]


def _distinct(batches: Iterator[Any], weighted: bool) -> Iterator[Keys]:
    rest: tuple[NDArray[Any], NDArray[Any]] = np.empty(0, np.int64), np.empty(0)
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
