"""Many columns of 0 and 1: encoded together and as they are, with one note for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evengraph.tables.cells import canonical_name, distinct_names, location
from evengraph.tables.list_encoders import MAX_BYTES

MIN_COLUMNS = 50
"""From this many columns of 0 and 1 on they are a list of items, spread over columns. Fewer are
numbers like any other."""

ONES, ZEROS = ("1", "1.0", "true"), ("0", "0.0", "false", "")


def find_indicators(nodes: Any, columns: Sequence[str]) -> dict[str, int]:
    """The columns of nothing but 0, 1 (or false, true) and empty cells, and how many 1s each has.

    None if they are few.
    """
    if len(columns) < MIN_COLUMNS:
        return {}
    first = nodes.iloc[0].to_dict()
    likely = [column for column in columns if _name(first[column]) in (*ONES, *ZEROS)]
    if len(likely) < MIN_COLUMNS:
        return {}
    counts = {column: float(values.sum()) for column, values in _parsed(nodes, likely)}
    found = {column: int(count) for column, count in counts.items() if not np.isnan(count)}
    return found if len(found) >= MIN_COLUMNS else {}


def select_indicators(counts: dict[str, int], num_nodes: int) -> tuple[tuple[str, ...], str]:
    """The columns that vary, at most as many as fit into the bounded memory, and a note."""
    varying = [column for column, count in counts.items() if 0 < count < num_nodes]
    most = max(1, MAX_BYTES // (4 * num_nodes))
    frequent = set(sorted(varying, key=lambda column: -counts[column])[:most])
    names = ", ".join(list(counts)[:2])
    note = f"{len(frequent):,} columns of 0 and 1 ({names}, ...) as 0/1 features"
    if len(varying) < len(counts):
        note += f"; constant ones left out: {len(counts) - len(varying):,}"
    if len(frequent) < len(varying):
        note += f"; less frequent ones left out to save memory: {len(varying) - len(frequent):,}"
    return tuple(column for column in varying if column in frequent), f"{note}."


def indicator_features(nodes: Any, columns: Sequence[str], table: str) -> NDArray[np.float32]:
    """1 and 0 as they are, 0 for an empty cell, (N, F); anything else raises an error."""
    features = np.empty((len(columns), len(nodes)), dtype=np.float32)
    for index, (_, values) in enumerate(_parsed(nodes, columns)):
        features[index] = values
    wrong = np.argwhere(np.isnan(features))
    if len(wrong):
        column, row = columns[wrong[0, 0]], int(wrong[0, 1])
        raise ValueError(
            f"{location(table, column, row)} holds {canonical_name(nodes[column].iloc[row])!r}; "
            "expected 0, 1 or an empty cell."
        )
    return features.T


def _name(value: Any) -> str:
    missing = value is None or value != value  # NaN
    return "" if missing is True else canonical_name(value).lower()


def _parsed(nodes: Any, columns: Sequence[str]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Each of some columns as 1, 0 and NaN."""
    table = nodes[list(columns)]
    table.attrs = {}  # which pandas copies with every column
    for column in columns:
        yield column, _parse(table[column])


def _parse(values: Any) -> NDArray[np.float32]:
    """1, 0 or, for any other cell, NaN, (N,)."""
    if values.dtype.kind in "biuf":
        numbers = np.nan_to_num(values.to_numpy(np.float32), nan=0.0)
        return np.where((numbers == 0) | (numbers == 1), numbers, np.float32(np.nan))
    from evengraph.tables.text_column import read_bits

    bits = read_bits(values)
    if bits is not None:
        return bits
    try:
        codes, names = distinct_names(values)
    except ValueError:  # lists
        return np.full(len(values), np.nan, dtype=np.float32)
    if len(names) > len(ONES + ZEROS) * 2:
        return np.full(len(values), np.nan, dtype=np.float32)
    known = {**dict.fromkeys(ONES, 1.0), **dict.fromkeys(ZEROS, 0.0)}
    numbers = [*(known.get(name.lower(), np.nan) for name in names), 0.0]  # 0: missing
    return np.array(numbers, dtype=np.float32)[codes]
