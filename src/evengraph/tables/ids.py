"""Ids of nodes: each once, and found again in the edge table however it spells them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evengraph.tables.cells import coded, empty, name_of, names_of, need_pandas, place, were

Ints = NDArray[np.int64]
_WHOLE = re.compile(r"(-?\d+)\.0+")


class UnknownNodeError(ValueError):
    """Edges name an id that no node has.

    Args:
        message: What is wrong.
        node: The first such id.
        num_edges: How many edges have such an end.
    """

    def __init__(self, message: str, *, node: str, num_edges: int) -> None:
        super().__init__(message)
        self.node = node
        self.num_edges = num_edges


def node_names(values: Any, table: str) -> Any:
    """An index of the names of the nodes; refuses an id that is missing or there twice."""
    column = str(values.name)
    gone = empty(values)
    if gone.any():
        row = int(gone.argmax())
        raise ValueError(
            f"{place(table, column, row)} is empty; every node needs an id "
            f"({were(int(gone.sum()), 'id')} empty)."
        )
    names = need_pandas().Index(names_of(values), dtype=object)
    again = names.duplicated()
    if again.any():
        row = int(again.argmax())
        earlier = int(names.get_indexer_for([names[row]])[0])
        raise ValueError(
            f"{place(table, column, row)} repeats the id {names[row]!r} of row {earlier + 1}; ids "
            f"must differ ({were(int(again.sum()), 'id')} there before)."
        )
    return names


def find(values: Any, names: Any, table: str) -> Ints:
    """Where the nodes of a column of ids are, -1 for one that no node has, (M,)."""
    codes, different = coded(values)
    called = [name_of(value) for value in different]
    blank = np.array([*(not name for name in called), True])  # the last is where -1, missing, looks
    if blank[codes].any():
        row = int(blank[codes].argmax())
        raise ValueError(
            f"{place(table, str(values.name), row)} is empty; an edge needs both ends."
        )
    found = np.asarray(names.get_indexer(np.array(called, dtype=object)), dtype=np.int64)
    for index in np.flatnonzero(found < 0):
        # a column with one word in it makes "3.0" out of 3
        whole = _WHOLE.fullmatch(called[index])
        if whole is not None:
            found[index] = names.get_indexer([whole[1]])[0]
    return found[codes] if len(found) else found


def find_both(sources: Any, targets: Any, names: Any, table: str) -> tuple[Ints, Ints]:
    """Where both ends of every edge are; refuses an end that no node has."""
    source, target = find(sources, names, table), find(targets, names, table)
    unknown = (source < 0) | (target < 0)
    if unknown.any():
        row = int(unknown.argmax())
        end = sources if source[row] < 0 else targets
        many = int(unknown.sum())
        hint = "; is the id column the right one?" if unknown.all() else "."
        raise UnknownNodeError(
            f"{place(table, str(end.name), row)} names {name_of(end.iloc[row])!r}, an id that no "
            f"node has; {many} of {len(unknown)} edges have such an end{hint}",
            node=name_of(end.iloc[row]),
            num_edges=many,
        )
    return source, target


def are_row_numbers(values: Any, num_nodes: int) -> bool:
    """Whether a column can be positions of nodes, counted from 0."""
    different = {name_of(value) for value in need_pandas().unique(values.dropna())}
    return all(name.isdecimal() and int(name) < num_nodes for name in different)
