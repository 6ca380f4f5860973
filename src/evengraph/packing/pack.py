"""pack: write any graph as a folder of memory-mapped arrays."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from evengraph.core.errors import one_line_errors
from evengraph.core.sizes import available_memory, parse_size
from evengraph.datasets import DATASETS, load
from evengraph.disk import PackedGraph, is_packed, pack_graph
from evengraph.packing.engine import Progress, no_progress
from evengraph.packing.table_files import STREAMED, TableFiles, find_files
from evengraph.packing.tables import TablePacker
from evengraph.tables import TableColumns, open_graph
from evengraph.tables.list_encoders import LIST_FILE
from evengraph.tables.open import edge_tables_of, find_table
from evengraph.tables.read import table_suffix

MIN_MEMORY = 2**28
DTYPES = ("float32", "float16")
Tables = str | Path | Sequence[str | Path]


@one_line_errors()
def pack(
    data: Tables,
    path: str | Path,
    *,
    edges: Tables | None = None,
    memory: str | int | None = None,
    dtype: str = "float32",
    drop: Sequence[str] = (),
    root: Path | None = None,
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
        memory: How much memory to use, such as `4GB`. Default: half of what is available.
        dtype: float32 or float16, of the features.
        drop: Columns of nodes or edges to leave out.
        root: Folder of data sets.
        progress: Called with the name of a stage and the share of it that is done.
        columns: The column arguments of `from_frames`.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}.")
    limit = memory_limit(memory)
    if is_packed(data):
        raise ValueError(f"{data} is packed already.")
    tables = _find_tables(data, edges, columns)
    if tables is None:
        return _pack_in_memory(data, path, edges, dtype, root, drop=drop, **columns)
    nodes_files, edges_files = tables
    packer = TablePacker(
        nodes=nodes_files,
        edges=edges_files,
        columns=TableColumns(**columns),
        drop=drop,
        dtype=dtype,
        memory=limit,
        progress=progress,
    )
    with _full_disk(path):
        return packer.pack(Path(path))


@contextmanager
def _full_disk(path: str | Path) -> Iterator[None]:
    """Let the error of a full disk name the folder; DuckDB and NumPy name a file of theirs or none.

    What was packed stays, so that the same call goes on when there is space.
    """
    try:
        yield
    except Exception as error:
        full = os.strerror(errno.ENOSPC)
        if full not in str(error):
            raise
        raise OSError(errno.ENOSPC, full, str(path)) from None


def memory_limit(memory: str | int | None) -> int:
    """Bytes to use: those that were given, else half of what is free."""
    limit = available_memory() // 2 if memory is None else parse_size(memory)
    if limit < MIN_MEMORY:
        raise ValueError(f"memory must be at least 256MiB, got {memory or limit}.")
    return limit


def _find_tables(
    data: Tables, edges: Tables | None, columns: dict[str, Any]
) -> tuple[TableFiles, TableFiles] | None:
    """The files of both tables; None if the graph has to be read into memory."""
    if columns.get("lists") is not None:
        return None
    if edges is not None:
        paths = [path for path in (data, edges) if isinstance(path, str | Path)]
        if any(table_suffix(Path(path)) not in ("", *STREAMED) for path in paths):
            return None
        return find_files(data), find_files(edges)
    if not isinstance(data, str | Path):
        raise ValueError("edges must name the edges table.")
    folder = Path(data).expanduser()
    if data in DATASETS or not folder.is_dir() or (folder / LIST_FILE).is_file():
        return None
    if (folder / "nodes").is_dir() and (folder / "edges").is_dir():
        return find_files(folder / "nodes"), find_files(folder / "edges")
    links = list(edge_tables_of(folder).values()) or [find_table(folder, "edges")]
    tables = [find_table(folder, "nodes"), *links]
    if any(table_suffix(table) not in STREAMED for table in tables):
        return None
    return find_files(tables[0]), find_files(tables[1:])


def _pack_in_memory(
    data: Any, path: str | Path, edges: Any, dtype: str, root: Path | None, **columns: Any
) -> PackedGraph:
    """Pack a data set, or a user's graph that is no table in Parquet or CSV files."""
    if isinstance(data, str) and data in DATASETS:
        graph = load(data, root=root)
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
