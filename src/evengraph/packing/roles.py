"""Classes, masks and times of a packed graph, in blocks of rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from evengraph.disk import PackWriter
from evengraph.disk.array_file import ArrayFile
from evengraph.packing.node_table import NodeTable
from evengraph.tables import NoteKind, TableColumns
from evengraph.tables.cells import import_pandas, location
from evengraph.tables.notes import Notes
from evengraph.tables.roles import encode_labels, read_split, read_times

BLOCK_ROWS = 1 << 20
MAX_VALUES = 100_000
"""Distinct labels that are counted; a column with more holds no classes."""

MAX_CELLS = 1000
"""Cells of each label that are shown to `encode_labels`: enough to tell rare classes."""


def write_roles(writer: PackWriter, nodes: NodeTable, columns: TableColumns) -> dict[str, Any]:
    """Write classes, masks and times; returns class names, class sizes and notes."""
    notes, codes = Notes(), dict[Any, int]()
    class_names: tuple[str, ...] = ()
    if columns.label is not None:
        codes, class_names = _classes(nodes, columns.label, columns.unlabelled or (), notes)
    sizes = np.zeros(len(class_names), dtype=np.int64)
    with ArrayFile(writer.folder / "y.npy", np.int32) as file:
        if columns.label is None:
            file.append(np.full(nodes.num_rows, -1))
        else:
            for block in nodes.blocks([columns.label], BLOCK_ROWS):
                labels = block[columns.label].map(codes).fillna(-1).to_numpy(np.int64)
                sizes += np.bincount(labels[labels >= 0], minlength=len(sizes))
                file.append(labels)
    if columns.split is not None:
        _write_masks(writer, nodes, columns.split, notes, columns.label is not None)
    if columns.time is not None:
        times = read_times(nodes[columns.time], nodes.attrs["file"], columns.date_order)
        writer.write("time", times)
    return {"class_names": list(class_names), "class_counts": sizes.tolist(), "notes": list(notes)}


def _classes(
    nodes: NodeTable, column: str, unlabelled: Any, notes: Notes
) -> tuple[dict[Any, int], tuple[str, ...]]:
    """The class of every distinct label, and the names of the classes."""
    counts: Counter[Any] = Counter()
    name = nodes.attrs["file"]
    for block in nodes.blocks([column], BLOCK_ROWS):
        counts.update(block[column].dropna().value_counts().to_dict())
        if len(counts) > MAX_VALUES:
            encode_labels(block[column], name, Notes(), unlabelled)  # may say what is wrong
            raise ValueError(f"{location(name, column)} holds more than {MAX_VALUES:,} labels.")
    empty = nodes.num_rows - counts.total()
    shown = [min(count, MAX_CELLS) for count in counts.values()]
    rows = [value for value, times in zip(counts, shown, strict=True) for _ in range(times)]
    rows += [None] * min(empty, 1)
    cells = import_pandas().Series(rows, name=column)
    labels, class_names = encode_labels(cells, name, notes, unlabelled)
    if max(counts.values(), default=0) > MAX_CELLS:  # this note counts cells
        notes[:] = [note for note in notes if note.kind != NoteKind.EMPTY_LABELS]
    firsts = np.cumsum([0, *shown[:-1]])
    return dict(zip(counts, labels[firsts].tolist(), strict=True)), class_names


def _write_masks(
    writer: PackWriter, nodes: NodeTable, column: str, notes: Notes, labelled: bool
) -> None:
    """Write the masks of the parts that have nodes."""
    parts: dict[str, list[Any]] = {}
    for block in nodes.blocks([column], BLOCK_ROWS):
        for part, mask in read_split(block[column], nodes.attrs["file"]).items():
            parts.setdefault(part, []).append(mask)
    labels = writer.read("y")
    for part, masks in parts.items():
        mask = np.concatenate(masks)
        if not mask.any():
            continue
        writer.write(f"{part}_mask", mask)
        unlabelled = int((mask & (labels < 0)).sum())
        if unlabelled and labelled:
            text = f"Nodes marked {part} but left out, because they have no label: {unlabelled}."
            notes.add(NoteKind.SPLIT, text)
