"""The nodes of a packed graph: ids, and features that are encoded in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike

from evengraph.core.sizes import format_size
from evengraph.disk import PackWriter
from evengraph.disk.array_file import ArrayFile
from evengraph.packing.edges import INTEGERS
from evengraph.packing.engine import Engine, Progress, quote_name
from evengraph.packing.node_table import NodeTable
from evengraph.packing.table_files import TableFiles
from evengraph.tables import FeatureEncoder, TableColumns
from evengraph.tables.columns import feature_columns, note_mixed_columns
from evengraph.tables.notes import NoteKind, Notes

FIT_ROWS = 1_000_000
"""Rows that encoders are fitted to; of a larger table every second, third, ... row."""

BYTES_PER_CELL = 1000
"""Memory that fitting an encoder takes for a row, at most: text is held several times."""

EDGE_BYTES = 120
"""Memory that features from the edges take for an entry of the edges."""


def write_ids(engine: Engine, writer: PackWriter, nodes: TableFiles, id: str | None) -> None:
    """Write the ids as given: integers, or text."""
    if id is None:
        (count,) = engine.values(f"SELECT count(*) FROM ({nodes.query()})")
        writer.write("ids", np.arange(count))
        return
    (type,) = nodes.types(engine, [id])
    if type in INTEGERS:
        with ArrayFile(writer.folder / "ids.npy", np.int64) as ids:
            for batch in engine.batches(nodes.query([id]), "writing ids"):
                ids.append(np.asarray(batch.column(0)))
        return
    query = f"SELECT CAST({quote_name(id)} AS VARCHAR) FROM ({nodes.query([id])})"
    with (
        ArrayFile(writer.folder / "ids.npy", np.uint8) as texts,
        ArrayFile(writer.folder / "ids_offsets.npy", np.int64) as offsets,
    ):
        offsets.append(np.zeros(1))
        for batch in engine.batches(query, "writing ids"):
            content, ends = _text_bytes(batch.column(0))
            offsets.append(ends + texts.length)
            texts.append(content)


def _text_bytes(cells: Any) -> tuple[Any, Any]:
    """The bytes of an Arrow array of text, and where each text ends among them."""
    import pyarrow as pa

    cells = cells.cast(pa.large_string())
    _, offsets, content = cells.buffers()
    bounds = np.frombuffer(offsets, np.int64)[cells.offset : cells.offset + len(cells) + 1]
    size = bounds[-1] - bounds[0]
    content = np.frombuffer(content, np.uint8, size, bounds[0]) if size else np.empty(0, np.uint8)
    return content, bounds[1:] - bounds[0]


def fit_encoder(nodes: NodeTable, columns: TableColumns) -> tuple[FeatureEncoder, list[str]]:
    """Fit encoders to one column after the other; `structural` ones are left to the caller."""
    notes, no_edges = Notes(), torch.empty((2, 0), dtype=torch.int64)
    features = feature_columns(nodes, columns, notes)
    order = columns.date_order
    encoder = FeatureEncoder.fit(nodes, features, edge_index=no_edges, date_order=order)
    notes += encoder.notes
    note_mixed_columns(nodes, features, encoder, notes)
    if nodes.stride > 1 and encoder.columns:
        text = f"Encoders are fitted to {len(nodes):,} of {nodes.num_rows:,} rows."
        notes.add(NoteKind.FEATURES, text)
    return encoder, list(notes)


def write_structural(
    writer: PackWriter, nodes: NodeTable, dtype: DTypeLike, memory: int
) -> FeatureEncoder:
    """Write features that are computed from the edges, for nodes without columns."""
    indptr, indices = writer.read("indptr"), writer.read("indices")
    needed = EDGE_BYTES * len(indices)
    if needed > memory:
        raise ValueError(
            f"memory must be at least {format_size(needed)} to compute features from the edges, "
            f"got {format_size(memory)}; or give the nodes columns."
        )
    rows = np.repeat(np.arange(nodes.num_rows), np.diff(indptr))
    edge_index = torch.from_numpy(np.stack([rows, indices]))
    encoder = FeatureEncoder.fit(nodes, [], edge_index=edge_index)
    writer.write("x", encoder.transform(nodes, edge_index=edge_index).numpy().astype(dtype))
    return encoder


def fitting_stride(nodes: NodeTable, columns: Sequence[str], memory: int) -> int:
    """Of how many rows one is needed, so that a column for fitting has at most so many."""
    bytes_per_row = BYTES_PER_CELL + 32 * nodes.cell_bytes(columns)
    rows = min(FIT_ROWS, max(memory // bytes_per_row, 1000))
    return -(-nodes.num_rows // rows)


def write_features(
    writer: PackWriter,
    nodes: NodeTable,
    encoder: FeatureEncoder,
    dtype: DTypeLike,
    memory: int,
    progress: Progress,
) -> None:
    """Encode the rows in blocks and write them."""
    columns, width = list(encoder.input_columns), len(encoder.names)
    row_bytes = 16 * width + sum(200 + 8 * nodes.cell_bytes([column]) for column in columns)
    size = int(min(max(memory // 4 // row_bytes, 1000), 1 << 18))
    with ArrayFile(writer.folder / "x.npy", dtype, width) as x:
        for block in nodes.blocks(columns, size):
            rows = encoder.transform(block).numpy()
            with np.errstate(over="ignore"):
                rows = rows.astype(dtype)
            if not np.isfinite(rows).all():
                raise ValueError(f"features must fit into {np.dtype(dtype)}; use float32.")
            x.append(rows)
            progress("encoding features", x.length / nodes.num_rows)
