"""A JSON file {node: [items]} beside the tables, as a column of lists of the nodes table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evengraph.tables.cells import distinct_names, import_pandas, plural
from evengraph.tables.list_encoders import LIST_FILE
from evengraph.tables.read import read_lists


def attach_lists(
    nodes: Any,
    path: str | Path | None,
    beside: Path | None = None,
    find_id: Callable[[], str | None] = lambda: None,
) -> Any:
    """A nodes table with the lists of a file as the column features.json.

    The keys of the file are values of one column of distinct values, the id if several fit as
    well, or else row numbers from 0. Nodes without a list get an empty cell.

    Args:
        nodes: The nodes table.
        path: The file; None looks for features.json.
        beside: The folder to look in; None for nowhere.
        find_id: Finds the id column.
    """
    if path is None:
        found = None if beside is None else beside / LIST_FILE
        if found is None or not found.is_file() or LIST_FILE in nodes.columns:
            return nodes
        path = found
        lists = read_lists(path)
        names = _matching_names(nodes, lists.index, find_id)
        if names is None:
            note = f"{path} is not used: its keys are not ids of nodes."
            return _with_note(nodes, note)
    else:
        lists = read_lists(Path(path).expanduser())
        names = _matching_names(nodes, lists.index, find_id)
        if names is None:
            raise ValueError(
                f"{path}: its keys, such as {lists.index[0]!r}, are not the values of a column of "
                "the nodes table; they must be ids."
            )
    column = lists.reindex(names).set_axis(nodes.index)
    unknown = len(lists) - int(lists.index.isin(names).sum())
    nodes = nodes.assign(**{LIST_FILE: column})
    if unknown:
        text = f"{Path(path).name}: {plural(unknown, 'key')} of {len(lists)} left out: no such id."
        nodes = _with_note(nodes, text)
    return nodes


def _matching_names(nodes: Any, keys: Any, find_id: Callable[[], str | None]) -> Any:
    """The names of all nodes in the column that the keys fit best; None if no column fits."""
    pandas = import_pandas()
    found: dict[Any, tuple[int, Any]] = {}
    for column in nodes.columns:
        try:
            codes, names = distinct_names(nodes[column])
        except ValueError:  # lists
            continue
        count = int(keys.isin(names).sum()) if len(names) == len(nodes) else 0
        if count > min(len(keys), len(nodes)) / 2:
            found[column] = count, names[codes]
    most = max((count for count, _ in found.values()), default=0)
    best = {column: names for column, (count, names) in found.items() if count == most}
    if len(best) == 1 and most == len(keys):
        return best.popitem()[1]
    id, numbers = find_id(), pandas.RangeIndex(len(nodes)).astype(str)
    if id not in best and most < len(keys) and keys.isin(numbers).all():
        return numbers
    return best.get(id, next(iter(best.values()), None))


def _with_note(nodes: Any, text: str) -> Any:
    nodes = nodes.copy(deep=False)
    nodes.attrs["notes"] = [*nodes.attrs.get("notes", ()), text]
    return nodes
