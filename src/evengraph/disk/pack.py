"""pack: write any graph as a folder of memory-mapped arrays."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from evengraph.core.errors import one_line_errors
from evengraph.core.machine import available_memory, parse_size
from evengraph.datasets import DATASETS, load
from evengraph.datasets.toy import PairSampler, class_sizes, word_features, word_orders, word_ranks
from evengraph.disk import PackedGraph, PackWriter, is_packed, pack_graph
from evengraph.disk.engine import STREAMED, Progress, TableFiles, find_files, no_progress
from evengraph.disk.pack_tables import TablePacker
from evengraph.disk.packed_graph import ArrayFile
from evengraph.disk.writer import EdgeSorter
from evengraph.tables import TableColumns, open_graph
from evengraph.tables.encoders import LIST_FILE
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


NODE_BYTES = 100
"""Memory per node: class, popularity, order by class, and copies while they are made."""

BLOCK_PAIRS, BLOCK_ROWS = 1 << 20, 1 << 17
"""Drawn at once: the same for any memory, so that the graph is the same."""


def pack_toy(
    path: str | Path,
    *,
    num_nodes: int,
    degree: float = 20,
    num_features: int = 64,
    num_classes: int = 5,
    seed: int = 0,
    homophily: float = 0.8,
    size_ratio: float = 0.2,
    dtype: str = "float32",
    memory: int = 2**31,
    progress: Progress = no_progress,
) -> PackedGraph:
    """Generate a graph as `evengraph.datasets.toy` does, but in blocks, and pack it.

    Repeated edges are merged and not replaced, so the mean degree is a little lower.

    Args:
        path: The folder to write; it must not exist.
        num_nodes: N.
        degree: Mean number of neighbours.
        num_features: Size of the vocabulary.
        num_classes: At least two.
        seed: Seed of the generator.
        homophily: Share of the edges that stay within a class.
        size_ratio: Smallest class over largest class.
        dtype: float32 or float16, of the features.
        memory: Bytes to use.
        progress: Called with the name of a stage and the share of it that is done.
    """
    for valid, message in (
        (num_classes >= 2, f"num_classes must be at least 2, got {num_classes}."),
        (num_nodes >= num_classes, f"num_nodes must be at least {num_classes}, got {num_nodes}."),
        (num_features >= 1, f"num_features must be at least 1, got {num_features}."),
        (0 <= degree < num_nodes, f"degree must lie in [0, {num_nodes}), got {degree}."),
        (seed >= 0, f"seed must not be negative, got {seed}."),
        (
            NODE_BYTES * num_nodes < memory,
            f"memory must be above {NODE_BYTES} bytes per node, got {memory} for {num_nodes}.",
        ),
    ):
        if not valid:
            raise ValueError(message)
    streams = np.random.default_rng(seed).spawn(3)
    sizes = class_sizes(num_nodes, num_classes, size_ratio)
    labels = np.repeat(np.arange(num_classes), sizes)
    streams[0].shuffle(labels)
    options = {"degree": degree, "features": num_features, "classes": num_classes, "seed": seed}
    source = {"data": "toy", "nodes": num_nodes, **options, "dtype": dtype, "ratio": size_ratio}
    with PackWriter(path, source | {"homophily": homophily}) as writer:
        if not writer.is_done("edges"):
            draw = PairSampler(streams[1], labels, sizes, homophily)
            _write_edges(writer, draw, round(num_nodes * degree / 2), memory, progress)
            writer.finish("edges")
        _write_features(writer, streams[2], labels, num_features, num_classes, dtype, progress)
        writer.write("y", labels.astype(np.int32))
        writer.write("ids", np.arange(num_nodes))
        progress("writing checksums", None)
        names = [str(label) for label in range(num_classes)]
        return writer.publish(name="toy", class_names=names, class_counts=sizes.tolist(), notes=[])


def _write_edges(
    writer: PackWriter, draw: PairSampler, num_pairs: int, memory: int, progress: Progress
) -> None:
    num_nodes = len(draw.labels)
    sorter = EdgeSorter(writer, num_nodes, num_pairs, memory // 2)
    for start in range(0, num_pairs, BLOCK_PAIRS):
        progress("drawing edges", start / num_pairs)
        sorter.add(*np.divmod(draw(min(BLOCK_PAIRS, num_pairs - start)), num_nodes))
    progress("sorting edges", None)
    sorter.write()


def _write_features(
    writer: PackWriter,
    rng: np.random.Generator,
    labels: np.ndarray[tuple[int], np.dtype[np.int64]],
    num_features: int,
    num_classes: int,
    dtype: str,
    progress: Progress,
) -> None:
    orders = word_orders(rng, num_features, num_classes)
    with ArrayFile(writer.folder / "x.npy", dtype, num_features) as x:
        for start in range(0, len(labels), BLOCK_ROWS):
            progress("drawing features", start / len(labels))
            block = labels[start : start + BLOCK_ROWS]
            rank = word_ranks(rng, len(block), num_features)
            x.append(word_features(rng, block, rank, orders))
