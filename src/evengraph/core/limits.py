"""Limits on what a file may ask for, so that a few bytes cannot fill the memory.

Each limit grows with the file: what a user's own data needs is far below it, and the error says how
to save a file that passes it. docs/limits.md lists them.
"""

from __future__ import annotations

import math

from evengraph.core.sizes import format_size

FREE_BYTES = 256 * 2**20
"""What any file may unpack to."""

BYTES_PER_BYTE = 100
"""What a larger file may unpack to, per byte on disk."""

FREE_VALUES = 2**25
"""How many values a sparse array may have as a dense one, whatever it stores."""

VALUES_PER_VALUE = 1000
"""How many it may have per value that it stores."""

FREE_NODES = 1_000_000
"""How many nodes a file may name without features and labels."""

NODES_PER_EDGE = 100
"""How many more it may name per edge."""

MAX_COLUMNS = 20_000
"""Columns of a table."""

MAX_INTEGER = 2**31 - 1
"""The largest whole number that a parameter of a method or a protocol may be."""

MAX_HOPS, MAX_STEPS = 100, 1000
"""How far a method may reach along edges: hops that it treats apart, steps of a diffusion."""

MAX_TEXT_BYTES = 2**20
"""The size of a file that describes an experiment."""


class LimitError(ValueError):
    """A file asks for more than a limit allows."""


def check_unpacked(unpacked: int, packed: int, name: str, fix: str) -> None:
    """Raise LimitError if a file unpacks to more than its size allows."""
    limit = max(FREE_BYTES, BYTES_PER_BYTE * packed)
    if unpacked > limit:
        raise LimitError(
            f"{name} unpacks to {format_size(unpacked)}; a file of {format_size(packed)} may "
            f"unpack to {format_size(limit)}: {fix}."
        )


def check_dense(shape: tuple[int, int], stored: int, name: str) -> None:
    """Raise LimitError if a sparse array would be too large as a dense one."""
    limit = max(FREE_VALUES, VALUES_PER_VALUE * stored)
    if math.prod(shape) > limit:
        raise LimitError(
            f"{name} of shape {shape} with {stored} stored values must hold at most "
            f"{limit:,} values as a dense array: leave out empty columns."
        )


def check_columns(count: int, name: str) -> None:
    """Raise LimitError if a table has too many columns."""
    if count > MAX_COLUMNS:
        raise LimitError(
            f"{name} has {count:,} columns; a table may have at most {MAX_COLUMNS:,}: put sparse "
            "features into lists, one column of lists or a JSON file."
        )


def check_nodes(num_nodes: int, num_edges: int, name: str) -> None:
    """Raise LimitError if edges alone stand for far more nodes than they connect."""
    limit = FREE_NODES + NODES_PER_EDGE * num_edges
    if num_nodes > limit:
        raise LimitError(
            f"{name}: {num_edges} edges without features may name at most {limit:,} nodes, got "
            f"{num_nodes:,}: number the nodes from 0 without gaps."
        )
