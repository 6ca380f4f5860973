"""pack: write any graph as a folder of memory-mapped arrays, in stages that survive a kill."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from evengraph.core.errors import one_line_errors
from evengraph.core.lazy import is_packed
from evengraph.datasets import DATASETS, load
from evengraph.disk.engine import (
    STREAMED,
    Engine,
    TableFiles,
    as_name,
    canonical_ends,
    find_files,
    isolated_notes,
    link,
    number_nodes,
    quote_name,
    write_edges,
)
from evengraph.disk.graphs import PackWriter, memory_limit, pack_graph
from evengraph.disk.joining import Earlier, join_edges, join_nodes, place_nodes
from evengraph.disk.pack_nodes import (
    NodeTable,
    fit_encoder,
    fitting_stride,
    write_features,
    write_ids,
    write_roles,
    write_structural,
)
from evengraph.disk.packed_graph import PackedGraph, Progress, no_progress
from evengraph.tables import NoteKind, TableColumns, open_graph
from evengraph.tables.cells import check_columns, location
from evengraph.tables.columns import (
    CHECKED_EDGES,
    check_no_copy,
    edge_ends,
    is_usual,
    resolve_columns,
)
from evengraph.tables.notes import Notes
from evengraph.tables.open import edge_tables_of, find_table
from evengraph.tables.read import table_suffix

BASE = 2**29  # memory of the process before it reads anything: Python, torch and Arrow
ENGINE_SHARE = 0.75  # of the other memory for DuckDB; the rest is for batches of rows
Tables = str | Path | Sequence[str | Path]


@dataclass(kw_only=True)
class TablePacker:
    """Packs a nodes table and an edges table; `columns` are those that were named.

    With `earlier` columns and encoders are those, and nodes may join a known graph: what is made of
    the new tables is then in a folder inside that of the writer, until both are joined.
    """

    nodes: TableFiles
    edges: TableFiles
    columns: TableColumns
    drop: Sequence[str]
    dtype: str
    memory: int
    progress: Progress
    earlier: Earlier | None = None

    def pack(self, path: Path) -> PackedGraph:
        """Run all stages that were not finished before a kill."""
        self._known = self.earlier and self.earlier.known
        source = {
            "nodes": self.nodes.signature,
            "edges": self.edges.signature,
            "columns": asdict(self.columns),
            "drop": list(self.drop),
            "dtype": self.dtype,
            **({"earlier": self.earlier.source} if self.earlier else {}),
        }
        self._room = max(self.memory - BASE, self.memory // 4)  # bytes for data
        with PackWriter(path, source) as self.writer:
            self.new = copy(self.writer)
            if self._known:
                self.new.folder = self.writer.folder / "new"
                self.new.folder.mkdir(exist_ok=True)
            database = self.writer.folder / "work.duckdb"
            self.engine = Engine(database, int(ENGINE_SHARE * self._room), self.progress)
            try:
                for stage in (self._convert, self._plan, self._ids, self._edges):
                    self._run(stage)
            finally:
                self.engine.close()
            self._run(self._roles)
            self._run(self._features)
            if self._known:
                self.progress("joining graphs", None)
                for join in (self._join_edges, self._join_nodes):
                    self._run(join)
            self.progress("writing checksums", None)
            facts = self.writer.facts
            return self.writer.publish(
                class_names=facts["roles"]["class_names"],
                class_counts=facts["join_nodes" if self._known else "roles"]["class_counts"],
                encoder=facts["features"]["encoder"],
                columns=facts["plan"]["columns"],
                notes=[note for stage in facts.values() for note in stage.get("notes", ())],
            )

    def _run(self, stage: Any) -> None:
        name = stage.__name__.removeprefix("_")
        if not self.writer.is_done(name):
            self.writer.finish(name, **stage())
        if name == "convert":
            converted = TableFiles((self.writer.folder / "nodes.parquet",))
            self.table = self.nodes if self.nodes.is_parquet else converted
        if name == "plan":
            self.columns = TableColumns(**self.writer.facts["plan"]["columns"])

    def _convert(self) -> dict[str, Any]:
        if not self.nodes.is_parquet:
            self.nodes.to_parquet(self.engine, self.writer.folder / "nodes.parquet")
        return {}

    def _plan(self) -> dict[str, Any]:
        nodes, notes = self._node_table(), Notes()
        if not len(nodes):
            raise ValueError(f"{self.nodes.name} has no rows; at least one node is needed.")
        edge_columns = [name for name in self.edges.columns if name not in self.drop]
        known = [*self.edges.columns, *self.table.columns]
        check_columns(nodes, [name for name in self.drop if name not in known], "nodes")
        head = self.engine.frame(f"{self.edges.query(edge_columns)} LIMIT {CHECKED_EDGES}")
        head.attrs["file"] = self.edges.name
        given, earlier = self.columns, self.earlier
        if earlier is not None:
            given = earlier.columns_of(nodes.columns, given)
            check_columns(nodes, earlier.encoder.input_columns, "nodes")
            check_columns(head, filter(None, [given.weight]), "edges")
        ends = edge_ends(head, given, Notes())
        columns = resolve_columns(
            nodes, head, given, notes, guess=earlier is None, fits=lambda c: self._fits(c, ends)
        )
        if columns.label is None:
            notes.add(NoteKind.NO_LABEL, "No label column: every node is unlabelled.")
        used = {columns.source, columns.target, columns.weight}
        if names := ", ".join(repr(name) for name in edge_columns if name not in used):
            notes.add(NoteKind.FEATURES, f"Left out columns of {self.edges.name}: {names}.")
        columns = replace(columns, type=None, edge_time=None, directed=False)
        return {"columns": asdict(columns), "notes": list(notes), "num_nodes": nodes.num_rows}

    def _fits(self, column: str, ends: tuple[str, str]) -> bool:
        (type,) = self.table.types(self.engine, [column])
        if type == "BOOLEAN" or type.startswith(("DATE", "TIME")) or type.endswith("[]"):
            return False
        types = self.edges.types(self.engine, ends)
        rows = f"{self.edges.query(ends)} LIMIT {CHECKED_EDGES}"
        named = " UNION ALL ".join(
            f"SELECT {as_name(quote_name(end), kind)} AS name FROM ({rows})"
            for end, kind in zip(ends, types, strict=True)
        )
        cells = as_name(quote_name(column), type)
        ids = f"SELECT {cells} AS name FROM ({self.table.query([column])})"
        query = f"SELECT count(*) FROM ({named}) ANTI JOIN ({ids}) USING (name)"
        (unknown,) = self.engine.values(query)
        if unknown or is_usual("id", column):  # repeated ids of a usual column are an error
            return not unknown
        return bool(self.engine.values(f"SELECT count(*) = count(DISTINCT name) FROM ({ids})")[0])

    def _ids(self) -> dict[str, Any]:
        known = self._known
        ends = canonical_ends(self.engine, self.table, self.edges, self.columns, known)
        id, size = self.columns.id, self.writer.facts["plan"]["num_nodes"]
        if id is not None:
            number_nodes(self.engine, self.table, ends, id, location(self.nodes.name, id))
        joined = None
        if known:
            places = place_nodes(self.engine, known, ends.known)
            self.new.write("places", places)
            joined = known, places >= known.num_nodes
            size = known.num_nodes + int(joined[1].sum())
        write_ids(self.engine, self.writer, self.table, id, joined)
        notes = link(self.engine, self.edges, ends, self.columns, size)
        return {"notes": notes, "num_nodes": size}

    def _edges(self) -> dict[str, Any]:
        size, weighted = self.writer.facts["ids"]["num_nodes"], self.columns.weight is not None
        notes = write_edges(self.engine, self.new, size, weighted)
        return {"notes": notes + ([] if self._known else isolated_notes(self.writer))}

    def _roles(self) -> dict[str, Any]:
        self.progress("reading classes", None)
        nodes, label, id = self._node_table(), self.columns.label, self.columns.id
        if label is not None and id is not None:
            head = next(nodes.blocks([label, id], CHECKED_EDGES))
            check_no_copy(head[label], head[id], self.nodes.name)
        return write_roles(self.new, nodes, self.columns, self.earlier and self.earlier.classes)

    def _features(self) -> dict[str, Any]:
        nodes, roles = self._node_table(), self.columns.of_nodes.values()
        self.progress("fitting encoders", None)
        free = [column for column in nodes.columns if column not in roles]
        notes: list[str] = []
        if self.earlier is not None:
            encoder = self.earlier.encoder
        else:
            stride = fitting_stride(nodes, free, self._room)
            encoder, notes = fit_encoder(self._node_table(stride), self.columns)
        if encoder.structural:
            fitted = self.earlier and encoder
            encoder = write_structural(self.writer, nodes, self.dtype, self._room, fitted)
        else:
            write_features(self.new, nodes, encoder, self.dtype, self._room, self.progress)
        return {"encoder": encoder.as_dict(), "notes": notes}

    def _join_edges(self) -> dict[str, Any]:
        assert self._known is not None
        join_edges(self.writer, self.new, self._known)
        return {"notes": isolated_notes(self.writer)}

    def _join_nodes(self) -> dict[str, Any]:
        assert self._known is not None
        return {"class_counts": join_nodes(self.writer, self.new, self._known)}

    def _node_table(self, stride: int = 1) -> NodeTable:
        return NodeTable(self.table, self.nodes.name, stride=stride, drop=self.drop)


@one_line_errors()
def pack(
    data: Tables,
    path: str | Path,
    *,
    edges: Tables | None = None,
    like: str | Path | None = None,
    known: str | Path | None = None,
    memory: str | int | None = None,
    dtype: str = "float32",
    drop: Sequence[str] = (),
    progress: Progress = no_progress,
    **columns: Any,
) -> PackedGraph:
    """Write a graph as a folder of memory-mapped arrays, which may be larger than memory.

    Tables in Parquet and CSV files are read by DuckDB, which spills to disk what does not fit.
    Columns of edges other than ends and weight are left out. Everything else is read into memory
    first. If the process is killed, the same call resumes after the last finished stage.

    Args:
        data: The nodes table: a path, a folder of files, a pattern such as nodes-*.csv, or several
            of them. Without `edges`, the name of a data set, or a folder or file as `open_graph`
            takes it.
        path: The folder to write; it must not exist.
        edges: The edges table, likewise.
        like: A saved model, whose columns, encoders and classes are used for tables to predict.
        known: A packed graph that new nodes are joined to: edges may refer to its nodes. Encoders
            are those of `like`, by default those of the graph. `predict` then leaves out nodes that
            were known and are not given again.
        memory: How much memory to use, such as `4GB`. Default: half of what is available.
        dtype: float32 or float16, of the features.
        drop: Columns of nodes or edges to leave out.
        progress: Called with the name of a stage and the share of it that is done.
        columns: The column arguments of `from_frames`.
    """
    if dtype not in ("float32", "float16"):
        raise ValueError(f"dtype must be one of float32, float16, got {dtype!r}.")
    limit = memory_limit(memory)
    if is_packed(data):
        raise ValueError(f"{data} is packed already.")
    tables = _find_tables(data, edges)
    earlier = Earlier.of(like, known)
    if tables is None:
        if earlier is not None:
            raise ValueError(f"like and known are for tables in Parquet or CSV files, got {data}.")
        return _pack_in_memory(data, path, edges, dtype, drop=drop, **columns)
    packer = TablePacker(
        nodes=tables[0],
        edges=tables[1],
        columns=TableColumns(**columns),
        drop=drop,
        dtype=dtype,
        memory=limit,
        progress=progress,
        earlier=earlier,
    )
    try:
        return packer.pack(Path(path))
    except Exception as error:
        full = os.strerror(errno.ENOSPC)
        if full not in str(error):
            raise
        # name the folder: DuckDB and NumPy name a file of theirs or none
        raise OSError(errno.ENOSPC, full, str(path)) from None


def _find_tables(data: Tables, edges: Tables | None) -> tuple[TableFiles, TableFiles] | None:
    """The files of both tables; None if the graph has to be read into memory."""
    if edges is not None:
        paths = [path for path in (data, edges) if isinstance(path, str | Path)]
        if any(table_suffix(Path(path)) not in ("", *STREAMED) for path in paths):
            return None
        return find_files(data), find_files(edges)
    if not isinstance(data, str | Path):
        raise ValueError("edges must name the edges table.")
    folder = Path(data).expanduser()
    if data in DATASETS or not folder.is_dir():
        return None
    if (folder / "nodes").is_dir() and (folder / "edges").is_dir():
        return find_files(folder / "nodes"), find_files(folder / "edges")
    links = list(edge_tables_of(folder).values()) or [find_table(folder, "edges")]
    tables = [find_table(folder, "nodes"), *links]
    if any(table_suffix(table) not in STREAMED for table in tables):
        return None
    return find_files(tables[0]), find_files(tables[1:])


def _pack_in_memory(
    data: Any, path: str | Path, edges: Any, dtype: str, **columns: Any
) -> PackedGraph:
    """Pack a data set, or a user's graph that is no table in Parquet or CSV files."""
    if isinstance(data, str) and data in DATASETS:
        graph = load(data)
        return pack_graph(graph, path, dtype=dtype, source={"data": data}, name=data, notes=[])
    tables = open_graph(data, edges=edges, **columns)
    notes: list[str] = list(tables.notes)
    if "relation_index" in tables.graph:
        notes.append("Relations are left out: the edges of all types are one graph.")
    return pack_graph(
        tables.graph,
        path,
        ids=tables.ids,
        dtype=dtype,
        source={"data": str(Path(data).absolute())},
        encoder=tables.encoder.as_dict(),
        columns=asdict(replace(tables.columns, type=None, relations=None)),
        notes=notes,
    )
