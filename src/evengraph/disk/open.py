"""Packed graphs as the readers of tables and files give them, where they fit into memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from evengraph.core.errors import first_line
from evengraph.core.machine import available_memory, format_size
from evengraph.disk import PackedGraph, unpack_graph
from evengraph.disk.packed_graph import HEADER, PackError
from evengraph.tables.build import TableGraph
from evengraph.tables.columns import TableColumns
from evengraph.tables.feature_encoder import FeatureEncoder

BYTES_PER_EDGE = 40
"""Memory that reading takes for an entry of the edges: both ends as int64, and a copy."""


def read_packed(path: Path, encoder: FeatureEncoder | None = None) -> TableGraph:
    """Read a packed graph into memory; an error says how much it needs if that is too little.

    Args:
        path: The folder.
        encoder: What must have made the features; None stands for anything.
    """
    packed = PackedGraph.open(path)
    check_encoder(packed, encoder)
    needed, free = memory_to_read(packed), available_memory()
    if needed > free:
        raise ValueError(
            f"{path} must fit into memory to be read as a whole: it needs about "
            f"{format_size(needed)}, and {format_size(free)} are free."
        )
    packed.check()
    made_by, columns = packed_encoding(packed)
    try:
        ids = np.asarray(packed.ids[:])
    except ValueError as error:
        raise PackError(f"{path} is damaged: ids: {error}. Pack the graph again.") from None
    return TableGraph(
        graph=unpack_graph(packed),
        ids=ids,
        encoder=made_by,
        columns=columns,
    )


def packed_encoding(packed: PackedGraph) -> tuple[FeatureEncoder, TableColumns]:
    """The encoder that made the features, and the columns of the tables."""
    try:
        encoder = packed_encoder(packed)
        return encoder, replace(packed_columns(packed), features=list(encoder.input_columns))
    except (ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
        message = f"{packed.path / HEADER} is damaged: {first_line(error)}. Pack the graph again."
        raise PackError(message) from None


def check_encoder(packed: PackedGraph, encoder: FeatureEncoder | None) -> None:
    """Raise ValueError if another encoder made the features; None stands for anything."""
    if encoder is None:
        return
    if replace(packed_encoder(packed), notes=()) != replace(encoder, notes=()):
        raise ValueError(f"{packed.path} must hold the features that the model was trained on.")


def memory_to_read(packed: PackedGraph) -> int:
    """Bytes that a graph takes in memory while it is read."""
    return packed.num_nodes * (8 * packed.num_features + 100) + BYTES_PER_EDGE * packed.num_edges


def packed_encoder(packed: PackedGraph) -> FeatureEncoder:
    """The encoder that made the features; those of a data set are features already."""
    stored = packed.header.get("encoder")
    if stored is not None:
        return FeatureEncoder.from_dict(stored)
    names = [f"x{index}" for index in range(packed.num_features)]
    return FeatureEncoder.passthrough(names, np.zeros((1, packed.num_features)))


def packed_columns(packed: PackedGraph) -> TableColumns:
    """The columns of the tables that a graph was packed from."""
    return TableColumns(**packed.header.get("columns", {}))
