"""Pack a nodes table: read it in columns or blocks, fit the encoder, write features and roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import DTypeLike, NDArray

from evengraph.core.machine import format_size
from evengraph.disk.engine import INTEGERS, Engine, TableFiles, quote_name
from evengraph.disk.graphs import PackWriter
from evengraph.disk.packed_graph import ArrayFile, PackedGraph, Progress, TextArray
from evengraph.disk.tables import row_slices
from evengraph.tables import FeatureEncoder, TableColumns
from evengraph.tables.cells import canonical_names, location
from evengraph.tables.columns import (
    encode_labels,
    feature_columns,
    note_mixed_columns,
    read_split,
    read_times,
)
from evengraph.tables.notes import NoteKind, Notes

READ_ROWS = 1 << 17
INDEX_COLUMN = "__index_level_"  # what pandas calls an index without a name
FIT_ROWS = 1_000_000  # that encoders are fitted to; of a larger table every second, third, ... row
BYTES_PER_CELL = 1000  # to fit an encoder, of a row, at most: text is held several times
EDGE_BYTES = 120  # to compute features from the edges, of an entry
BLOCK_ROWS = 1 << 20
MAX_VALUES = 100_000  # distinct labels that are counted; a column with more holds no classes
MAX_CELLS = 1000  # of each label that `encode_labels` sees: enough to tell rare classes


class NodeTable:
    """Looks like a DataFrame to those who ask for columns, but holds none of them.

    Of every `stride` rows only the first counts. `name` is what messages call the table.
    """

    def __init__(
        self, files: TableFiles, name: str, *, stride: int = 1, drop: Collection[str] = ()
    ) -> None:
        from pyarrow.parquet import ParquetFile

        self._files = [ParquetFile(path) for path in files.paths]
        self.num_rows: int = sum(file.metadata.num_rows for file in self._files)
        self.stride, self.attrs = stride, {"file": name}
        names = [str(name) for name in self._files[0].schema_arrow.names]
        self._names = {
            name.strip(): name
            for name in names
            if name.strip() not in drop and not name.startswith(INDEX_COLUMN)
        }

    @property
    def columns(self) -> list[str]:
        return list(self._names)

    @property
    def iloc(self) -> Any:
        """Rows by number, of which only the first are there."""
        return next(self.blocks(self.columns, 1)).iloc

    def __len__(self) -> int:
        return -(-self.num_rows // self.stride)

    def __getitem__(self, column: str) -> Any:
        import pyarrow as pa

        parts, start = [], 0
        for batch in self._batches([column], READ_ROWS):
            cells = batch.column(0)
            if self.stride > 1:
                rows = np.arange(-start % self.stride, len(cells), self.stride)
                start += len(cells)
                cells = cells.take(pa.array(rows))
            parts.append(cells)
        table = pa.table({column: pa.chunked_array(parts)})
        return table.to_pandas()[column]

    def blocks(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        """DataFrames of some columns and at most so many rows, which follow one another."""
        for batch in self._batches(columns, size):
            frame = batch.to_pandas(ignore_metadata=True)
            frame.columns = list(columns)
            frame.attrs = dict(self.attrs)
            yield frame

    def cell_bytes(self, columns: Collection[str]) -> int:
        """Bytes of the largest cell among some columns, on average over the rows."""
        sizes: dict[str, int] = {}
        for file in self._files:
            for index in range(file.metadata.num_row_groups):
                group = file.metadata.row_group(index)
                for place in range(group.num_columns):
                    column = group.column(place)
                    name = column.path_in_schema.split(".")[0].strip()
                    sizes[name] = sizes.get(name, 0) + column.total_uncompressed_size
        largest: int = max((sizes.get(column, 0) for column in columns), default=0)
        return largest // max(self.num_rows, 1)

    def _batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        names = [self._names[column] for column in columns]
        for file in self._files:
            for batch in file.iter_batches(batch_size=size, columns=names):
                yield batch.select(names)


def ids_in_arrow(packed: PackedGraph, rows: slice) -> Any:
    """Some ids of a packed graph as an Arrow array: integers, or text."""
    import pyarrow as pa

    ids = packed.ids
    if not isinstance(ids, TextArray):
        return pa.array(np.array(ids[rows]))
    bounds = np.array(ids.offsets[rows.start : rows.stop + 1])
    content = np.array(ids.content[bounds[0] : bounds[-1]])
    buffers = pa.py_buffer(bounds - bounds[0]), pa.py_buffer(content)
    return pa.LargeStringArray.from_buffers(len(bounds) - 1, *buffers)


def write_ids(
    engine: Engine,
    writer: PackWriter,
    nodes: TableFiles,
    id: str | None,
    known: tuple[PackedGraph, NDArray[np.bool_]] | None = None,
) -> None:
    """Write the ids as given: integers, or text.

    A known graph comes first; then of the nodes those of a mask, (M,).
    """
    if id is None:
        (count,) = engine.values(f"SELECT count(*) FROM ({nodes.query()})")
        writer.write("ids", np.arange(count))
        return
    import pyarrow as pa

    (type,) = nodes.types(engine, [id])
    is_text = type not in INTEGERS or (known and isinstance(known[0].ids, TextArray))
    query = f"SELECT CAST({quote_name(id)} AS VARCHAR) FROM ({nodes.query([id])})"

    def parts() -> Iterator[Any]:
        start, mask = 0, None
        if known is not None:
            graph, mask = known
            yield from (ids_in_arrow(graph, rows) for rows in row_slices(graph.num_nodes))
        for batch in engine.batches(query if is_text else nodes.query([id])):
            cells = batch.column(0)
            end = start + len(cells)
            yield cells if mask is None else cells.filter(pa.array(mask[start:end]))
            start = end

    if not is_text:
        with ArrayFile(writer.folder / "ids.npy", np.int64) as ids:
            for cells in parts():
                ids.append(np.asarray(cells))
        return
    with (
        ArrayFile(writer.folder / "ids.npy", np.uint8) as texts,
        ArrayFile(writer.folder / "ids_offsets.npy", np.int64) as offsets,
    ):
        offsets.append(np.zeros(1))
        for part in parts():
            cells = part.cast(pa.large_string())
            _, places, content = cells.buffers()
            bounds = np.frombuffer(places, np.int64)[cells.offset : cells.offset + len(cells) + 1]
            offsets.append(bounds[1:] - bounds[0] + texts.length)
            if size := bounds[-1] - bounds[0]:
                texts.append(np.frombuffer(content, np.uint8, size, bounds[0]))


def fit_encoder(nodes: NodeTable, columns: TableColumns) -> tuple[FeatureEncoder, list[str]]:
    """Fit encoders to one column after the other; `structural` ones are left to the caller."""
    notes, options = Notes(), {"date_order": columns.date_order}
    features = feature_columns(nodes, columns, notes)
    no_edges = torch.empty((2, 0), dtype=torch.int64)
    encoder = FeatureEncoder.fit(nodes, features, edge_index=no_edges, **options)
    notes += encoder.notes
    note_mixed_columns(nodes, features, encoder, notes)
    if nodes.stride > 1 and encoder.columns:
        text = f"Encoders are fitted to {len(nodes):,} of {nodes.num_rows:,} rows."
        notes.add(NoteKind.FEATURES, text)
    return encoder, list(notes)


def write_structural(
    writer: PackWriter,
    nodes: NodeTable,
    dtype: DTypeLike,
    memory: int,
    encoder: FeatureEncoder | None,
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
    encoder = encoder or FeatureEncoder.fit(nodes, [], edge_index=edge_index)
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


def write_roles(
    writer: PackWriter,
    nodes: NodeTable,
    columns: TableColumns,
    earlier: tuple[str, ...] | None = None,
) -> dict[str, Any]:
    """Write classes, masks and times; returns class names, class sizes and notes.

    With `earlier` classes, nodes of others are unlabelled.
    """
    notes, codes = Notes(), dict[Any, int]()
    class_names = earlier or ()
    if columns.label is not None:
        missing = columns.unlabelled or ()
        codes, class_names = _classes(nodes, columns.label, missing, notes, earlier)
    sizes = np.zeros(len(class_names), dtype=np.int64)
    with ArrayFile(writer.folder / "y.npy", np.int32) as file:
        if columns.label is None:
            file.append(np.full(nodes.num_rows, -1))
        else:
            for block in nodes.blocks([columns.label], BLOCK_ROWS):
                labels = block[columns.label].map(codes).fillna(-1).to_numpy(np.int64)
                sizes += np.bincount(labels[labels >= 0], minlength=len(sizes))
                file.append(labels)
    parts: dict[str, list[Any]] = {}
    for block in nodes.blocks([columns.split], BLOCK_ROWS) if columns.split is not None else ():
        for part, mask in read_split(block[columns.split], nodes.attrs["file"]).items():
            parts.setdefault(part, []).append(mask)
    for part, masks in parts.items():
        mask = np.concatenate(masks)
        if mask.any():
            writer.write(f"{part}_mask", mask)
        unlabelled = int((mask & (writer.read("y") < 0)).sum())
        if unlabelled and columns.label is not None:
            text = f"Nodes marked {part} but left out, because they have no label: {unlabelled}."
            notes.add(NoteKind.SPLIT, text)
    if columns.time is not None:
        times = read_times(nodes[columns.time], nodes.attrs["file"], columns.date_order)
        writer.write("time", times)
    return {"class_names": list(class_names), "class_counts": sizes.tolist(), "notes": list(notes)}


def _classes(
    nodes: NodeTable, column: str, unlabelled: Any, notes: Notes, earlier: tuple[str, ...] | None
) -> tuple[dict[Any, int], tuple[str, ...]]:
    counts: Counter[Any] = Counter()
    name = nodes.attrs["file"]
    for block in nodes.blocks([column], BLOCK_ROWS):
        counts.update(block[column].dropna().value_counts().to_dict())
        if len(counts) > MAX_VALUES:
            encode_labels(block[column], name, Notes(), unlabelled)  # may say what is wrong
            raise ValueError(f"{location(name, column)} holds more than {MAX_VALUES:,} labels.")
    if earlier is not None:
        names = canonical_names(pd.Series(list(counts), dtype=object)).astype(str)
        numbers = {name: number for number, name in enumerate(earlier)}
        found = {cell: numbers.get(name, -1) for cell, name in zip(counts, names, strict=True)}
        others = sum(count for cell, count in counts.items() if found[cell] < 0)
        if others:
            text = f"Nodes whose label is none of {', '.join(earlier)}, now unlabelled: {others:,}."
            notes.add(NoteKind.MISSING_LABELS, text)
        return found, earlier
    empty = nodes.num_rows - counts.total()
    shown = [min(count, MAX_CELLS) for count in counts.values()]
    rows = [value for value, times in zip(counts, shown, strict=True) for _ in range(times)]
    rows += [None] * min(empty, 1)
    cells = pd.Series(rows, name=column)
    labels, class_names = encode_labels(cells, name, notes, unlabelled)
    if max(counts.values(), default=0) > MAX_CELLS:  # this note counts cells
        notes[:] = [note for note in notes if note.kind != NoteKind.EMPTY_LABELS]
    firsts = np.cumsum([0, *shown[:-1]])
    return dict(zip(counts, labels[firsts].tolist(), strict=True)), class_names
