"""open_graph: build a graph from a user's files or DataFrames."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from evengraph.core.errors import one_line_errors, short
from evengraph.core.lazy import is_packed, wing
from evengraph.tables.build import TableGraph, build_graph
from evengraph.tables.cells import (
    canonical_name,
    canonical_names,
    check_columns,
)
from evengraph.tables.columns import (
    TableColumns,
    join_edges,
    known_labels,
    likely_id,
    takes_columns,
)
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.tables.graph_files import (
    hetero_tables,
    is_hetero,
    read_graphml,
    read_npz,
    read_pyg,
)
from evengraph.tables.kinds import OtherTables, Step
from evengraph.tables.links import suggest_links
from evengraph.tables.read import (
    TABLE_SUFFIXES,
    read_table,
    reject_spreadsheet,
    table_suffix,
)

SHOWN = 5  # replaced labels that a note names
EDGES_PREFIX = re.compile(r"edges[_-]", re.IGNORECASE)
Ends = tuple[str | None, str | None]
GRAPH_SUFFIXES = (".graphml", ".npz", ".pt", ".pth")


@takes_columns
@one_line_errors()
def open_graph(
    data: Any,
    *,
    edges: Any = None,
    tables: Any = None,
    drop: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    **columns: Any,
) -> TableGraph:
    """Open a graph of your own.

    Args:
        data: The path of a folder with a nodes table and an edges table (such as nodes.csv and
            edges.csv), of a nodes table, or of a graph file: .graphml, .npz, or .pt by torch.save;
            or a DataFrame with one row per node; or a packed graph. A folder may hold several
            edges tables, such as edges_pays.csv and edges_knows.csv: one type of edges each.
        edges: The edges table, a path or a DataFrame, if `data` is a nodes table; or several, a
            list of paths or a dict of types and tables. With `link` there need be none.
        tables: Tables of other kinds of nodes, such as devices: paths, or a dict of names and
            tables. Edges, or a column of ids, lead to them. Only rows of `data` are predicted.
        drop: Columns of the nodes table, or of the edges table, to leave out; of other tables
            `device.colour`, as the notes name them.
        labels: Further classes by id, which replace those of the label column.
        columns: The fields of `TableColumns`: label, id, source, target and others, as in
            `from_frames`. Files of arrays (.npz, .pt) have fixed names and take none of them.
    """
    roles = TableColumns(**columns)
    if is_graph_file(data):
        path = Path(data).expanduser()
        named = {"edges": edges, "drop": drop or None, **asdict(roles)}
        named |= {"tables": tables, "labels": labels}
        if is_packed(path):
            reason = "it is packed, and `pack` has chosen its columns"
        elif path.suffix.lower() == ".graphml":
            taken = ("edges", "tables", "drop", "id", "source", "target")
            named = {name: named[name] for name in taken}
            reason = "it holds nodes and edges"
        else:
            reason = "its arrays have fixed names (x, edge_index, y)"
        _reject(path, named, reason)
        return open_graph_file(path, roles)
    nodes_table, edges_table = read_tables(data, edges, tables, columns=roles)
    if labels is not None:
        nodes_table = _merged_labels(nodes_table, edges_table, labels, roles)
    if drop:
        edge_columns = [name for name in drop if name in getattr(edges_table, "columns", ())]
        check_columns(nodes_table, [name for name in drop if name not in edge_columns], "nodes")
        nodes_table = nodes_table.drop(columns=list(drop), errors="ignore")
        edges_table = edges_table.drop(columns=edge_columns) if edge_columns else edges_table
    return build_graph(nodes_table, edges_table, roles)


def _merged_labels(nodes: Any, edges: Any, labels: Mapping[str, str], columns: TableColumns) -> Any:
    """The nodes table with further labels, and a note that names those that replace others."""
    id, label = likely_id(nodes, edges, replace(columns, label=None)), columns.label
    if id is None or label is None:
        raise ValueError("labels need the columns with ids and labels; name both: id, label.")
    ids, before = canonical_names(nodes[id]), [None] * len(nodes)
    if label in nodes.columns:
        before = known_labels(nodes[label], columns.unlabelled).tolist()
    changed, after = list[str](), list[Any](before)
    for row in [row for row, name in enumerate(ids) if name in labels]:
        old, after[row] = before[row], labels[ids[row]]
        if old is not None and canonical_name(old) != after[row]:
            changed.append(f"{short(ids[row])} from {short(old)} to {short(after[row])}")
    missing = len(labels.keys() - set(ids))
    text = f"Labels merged: {len(labels) - missing:,}; replaced: {len(changed):,}"
    text += f" ({', '.join(changed[:SHOWN])}{', ...' * (len(changed) > SHOWN)})" * bool(changed)
    text += f"; of nodes that the table does not have: {missing:,}." if missing else "."
    notes = [*nodes.attrs.get("notes", ()), text]
    nodes = nodes.assign(**{label: pd.Series(after, nodes.index, dtype=object)})
    nodes.attrs["notes"] = notes
    return nodes


@one_line_errors()
def read_tables(
    data: Any,
    edges: Any = None,
    tables: Any = None,
    *,
    columns: TableColumns | None = None,
) -> tuple[Any, Any]:
    """The nodes table and the edges table of a folder, two paths or DataFrames.

    With tables of other kinds of nodes the second is `OtherTables`.
    """
    columns = columns or TableColumns()
    if is_hetero(data):
        data, edges, tables = hetero_tables(data, columns.id)
    several = tables is not None or columns.kinds is not None

    def read_edges(edges: Any) -> Any:
        if several and not isinstance(edges, OtherTables):
            return _read_others(tables, edges, columns)
        return _read_edges(edges, (columns.source, columns.target))

    if not isinstance(data, str | Path):
        return data, read_edges(edges)
    path = Path(data).expanduser()
    if path.is_dir():
        _reject(path, {"edges": edges}, "a folder holds both tables")
        edges, nodes = edge_tables_of(path), read_table(find_table(path, "nodes"))
        with suppress(*((FileNotFoundError,) if columns.link or several else ())):
            edges = edges or find_table(path, "edges")
        return nodes, read_edges(edges or None)
    if table_suffix(path):
        if edges is None and not columns.link and not several:
            links = suggest_links(read_table(path), columns.label)
            perhaps = f", such as {'; '.join(links[:3])}" if links else ""
            raise ValueError(
                f"{path.name} needs edges: link must name columns whose equal values "
                f"connect rows{perhaps}; or edges must name its edges table; or put both into a "
                "folder as nodes.csv and edges.csv and name the folder."
            )
        return read_table(path), read_edges(edges)
    reject_spreadsheet(path)
    expected = (
        "expected a folder with a nodes and an edges table, a nodes table "
        f"({', '.join(TABLE_SUFFIXES)}) or a graph file ({', '.join(GRAPH_SUFFIXES)})"
    )
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; {expected}.")
    raise ValueError(f"{path} cannot be opened; {expected}.")


def _read_others(tables: Any, edges: Any, columns: TableColumns) -> OtherTables:
    """Tables of other kinds and the edges of all types, by name."""
    found = []
    for part in (tables, edges):
        if isinstance(part, str | Path):
            whole = Path(part).expanduser().exists()
            part = [part] if whole else [item.strip() for item in str(part).split(",")]
        if isinstance(part, list | tuple):
            part = {_edge_type(Path(path)): path for path in part}
        elif not isinstance(part, Mapping):
            part = {} if part is None else {"edges": part}
        found.append({str(name): _read_edges(item, (None, None)) for name, item in part.items()})
    steps = None if columns.kinds is None else [Step(*item) for item in columns.kinds]
    return OtherTables.of(found[0], found[1], steps)


def is_graph_file(data: Any) -> bool:
    """Whether it is the path of a file that holds a whole graph, or of a packed graph."""
    if not isinstance(data, str | Path):
        return False
    path = Path(data).expanduser()
    return (path.suffix.lower() in GRAPH_SUFFIXES and not path.is_dir()) or is_packed(path)


@one_line_errors()
def open_graph_file(
    path: Path, columns: TableColumns, encoder: FeatureEncoder | None = None
) -> TableGraph:
    """Open a file that holds a whole graph; a fitted encoder makes the features as in training."""
    path = path.expanduser()
    if is_packed(path):
        return cast(TableGraph, wing("disk").read_packed(path, encoder))
    if path.suffix.lower() == ".graphml":
        if encoder is not None:  # of a model, whose other columns are those of its own file
            columns = TableColumns(label=columns.label, **columns.edge_options)
        return read_graphml(path, columns, encoder)
    tables = read_npz(path) if path.suffix.lower() == ".npz" else read_pyg(path)
    if encoder is None:
        return tables
    if encoder.columns:
        trained = f"on tables, with columns such as {', '.join(encoder.input_columns[:3])}"
        raise ValueError(f"{path} holds arrays; the model was trained {trained}.")
    graph, width = tables.graph.clone(), len(encoder.plain)
    if width and graph.num_features != width:
        raise ValueError(f"{path}: x must have {width} columns, got {graph.num_features}.")
    names = list(encoder.input_columns)
    values = graph.x.numpy() if names else np.empty((graph.num_nodes, 0))
    nodes = pd.DataFrame(values, columns=names)
    graph.x = encoder.transform(nodes, edge_index=graph.edge_index)
    return replace(tables, graph=graph, encoder=encoder)


def read_nodes_table(data: str | Path) -> Any:
    """Read only the nodes table of what `open_graph` opens; None for a file of a whole graph."""
    path = Path(data).expanduser()
    if is_packed(path):
        return None
    if path.is_dir():
        return read_table(find_table(path, "nodes"))
    return read_table(path) if table_suffix(path) else None


def _read_edges(edges: Any, ends: Ends) -> Any:
    if isinstance(edges, str | Path):
        paths = str(edges).split(",")
        if len(paths) == 1 or Path(edges).expanduser().exists():
            return read_table(Path(edges).expanduser())
        edges = paths
    if isinstance(edges, list | tuple):
        edges = {_edge_type(Path(path)): path for path in (str(path).strip() for path in edges)}
    if isinstance(edges, Mapping):
        return join_edges({str(k): _read_edges(table, ends) for k, table in edges.items()}, ends)
    return edges


def edge_tables_of(folder: Path) -> dict[str, Path]:
    """Type and path of the tables edges_TYPE.csv of a folder, unless one is called edges.csv."""
    tables = _tables_of(folder)
    if any(path.name.lower().startswith("edges.") for path in tables):
        return {}
    return {_edge_type(path): path for path in tables if EDGES_PREFIX.match(path.name)}


def _edge_type(path: Path) -> str:
    name = path.name.removesuffix(table_suffix(path) or path.suffix)
    return EDGES_PREFIX.sub("", name)


def _tables_of(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if table_suffix(path)]


def find_table(folder: Path, stem: str) -> Path:
    """The path of the nodes or the edges table of a folder."""
    names, tables = {stem + suffix for suffix in TABLE_SUFFIXES}, _tables_of(folder)
    paths = [path for path in tables if path.name.lower() in names]
    if not paths and stem == "nodes":  # the only table beside the edges, whatever its name
        others = [path for path in tables if not path.name.lower().startswith("edges")]
        paths = others if len(others) == 1 else []
    if not paths:
        for path in folder.iterdir():
            if path.stem.lower() == stem:
                reject_spreadsheet(path)
        raise FileNotFoundError(
            f"{folder} has no {stem} table; name it {stem}.csv; "
            f"{', '.join(TABLE_SUFFIXES[1:])} work as well. Or give both tables: nodes and edges."
        )
    if len(paths) > 1:
        several = ", ".join(path.name for path in paths)
        raise ValueError(f"{folder} has several {stem} tables: {several}; keep one.")
    return paths[0]


def _reject(path: Path, arguments: dict[str, Any], reason: str) -> None:
    for name, value in arguments.items():
        if value not in (None, False):
            raise ValueError(f"{path} does not take {name}: {reason}.")
