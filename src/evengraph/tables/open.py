"""open_graph: build a graph from a user's files or DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evengraph.tables.build import from_frames
from evengraph.tables.cells import table_name
from evengraph.tables.column_encoders import check_columns
from evengraph.tables.graph_files import read_graphml, read_npz, read_pyg
from evengraph.tables.read import TABLE_SUFFIXES, read_table, table_suffix
from evengraph.tables.table_graph import TableGraph

GRAPH_SUFFIXES = (".graphml", ".npz", ".pt", ".pth")
"""What a file may end in that holds a whole graph."""


def open_graph(
    data: Any,
    *,
    edges: Any = None,
    label: str | None = None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    split: str | None = None,
    time: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
) -> TableGraph:
    """Open a graph of your own.

    Args:
        data: The path of a folder with a nodes table and an edges table (such as nodes.csv and
            edges.csv), of a nodes table, or of a graph file: .graphml, .npz, or .pt by torch.save;
            or a DataFrame with one row per node.
        edges: The edges table, a path or a DataFrame, where `data` is a nodes table.
        label: As in `from_frames`, and so are the other arguments; a file of arrays (.npz, .pt)
            says by itself what is what and takes none of them.
        drop: Columns of the nodes table to leave out.
    """
    path = Path(data).expanduser() if isinstance(data, str | Path) else Path()
    given: dict[str, Any] = {
        "label": label,
        "id": id,
        "source": source,
        "target": target,
        "weight": weight,
        "split": split,
        "time": time,
        "features": features,
    }
    if path.suffix.lower() in GRAPH_SUFFIXES and not path.is_dir():
        _refuse(path, {"drop": drop or None}, "that is for tables")
        return _open_file(path, edges, given)
    nodes, ends = both_tables(data, edges)
    if drop:
        check_columns(nodes, drop, table_name(nodes, "nodes"))
        nodes = nodes.drop(columns=list(drop))
    return from_frames(nodes, ends, **given)


def both_tables(data: Any, edges: Any = None) -> tuple[Any, Any]:
    """The nodes table and the edges table of a folder, of two paths, or of two DataFrames."""
    if not isinstance(data, str | Path):
        return data, _read(edges)
    path = Path(data).expanduser()
    if path.is_dir():
        _refuse(path, {"edges": edges}, "a folder holds both tables")
        return _table(path, "nodes"), _table(path, "edges")
    if table_suffix(path):
        if edges is None:
            nodes = "" if path.is_file() else f"{path} does not exist, and "
            raise ValueError(
                f"{nodes}edges must name the edges table that belongs to {path.name}; or put both "
                "into a folder as nodes.csv and edges.csv and name that."
            )
        return read_table(path), _read(edges)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; {_allowed()}.")
    raise ValueError(f"{path} cannot be opened; {_allowed()}.")


def nodes_table(data: str | Path) -> Any:
    """The nodes table of what `open_graph` opens; none where a file holds the whole graph."""
    path = Path(data).expanduser()
    if path.is_dir():
        return _table(path, "nodes")
    return read_table(path) if table_suffix(path) else None


def _read(table: Any) -> Any:
    """A DataFrame as it is, or that of a path."""
    return read_table(Path(table).expanduser()) if isinstance(table, str | Path) else table


def _open_file(path: Path, edges: Any, given: dict[str, Any]) -> TableGraph:
    """A file that holds a whole graph, and the arguments that it takes."""
    if path.suffix.lower() == ".graphml":
        ends = {name: given.pop(name) for name in ("id", "source", "target")}
        _refuse(path, {"edges": edges} | ends, "it holds nodes and edges")
        return read_graphml(path, **given)
    _refuse(path, {"edges": edges} | given, "its arrays have fixed names (x, edge_index, y)")
    return read_npz(path) if path.suffix.lower() == ".npz" else read_pyg(path)


def _table(folder: Path, stem: str) -> Any:
    """The nodes or the edges table of a folder."""
    found = [
        path
        for path in sorted(folder.iterdir())
        if path.name.lower() in {stem + suffix for suffix in TABLE_SUFFIXES}
    ]
    if not found:
        raise FileNotFoundError(
            f"{folder} has no {stem} table; it must be called {stem}.csv, or end in another of "
            f"{', '.join(TABLE_SUFFIXES[1:])}."
        )
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise ValueError(f"{folder} has several {stem} tables: {names}; keep one.")
    return read_table(found[0])


def _refuse(path: Path, given: dict[str, Any], reason: str) -> None:
    named = [name for name, value in given.items() if value is not None]
    if named:
        raise ValueError(f"{path} takes no {named[0]}: {reason}.")


def _allowed() -> str:
    return (
        "name a folder with a nodes and an edges table, a nodes table "
        f"({', '.join(TABLE_SUFFIXES)}) or a graph ({', '.join(GRAPH_SUFFIXES)})"
    )
