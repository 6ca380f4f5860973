"""Tables that a model reads: those of new nodes, and those that it was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evengraph.core.errors import ArgumentError, one_line_errors
from evengraph.pipeline.model_info import ModelInfo
from evengraph.pipeline.new_nodes import NewNodes, build_new_nodes
from evengraph.tables import TableColumns
from evengraph.tables.cells import has_class
from evengraph.tables.open import is_graph_file, open_graph_file, read_tables


@one_line_errors()
def open_new_nodes(
    info: ModelInfo,
    classes: Sequence[str],
    nodes: Any,
    edges: Any = None,
    *,
    known: Any = None,
    only_unlabelled: bool = False,
    lists: str | Path | None = None,
    columns: Mapping[str, str],
) -> NewNodes:
    """Encode new tables as those of training; the arguments are those of `TableModel.open`."""
    if is_graph_file(nodes):
        return _open_file(info, Path(nodes), edges, known, only_unlabelled)
    if info.encoder is None:
        raise ValueError("This model was trained on a graph and cannot encode tables.")
    names = {role: getattr(info.columns, role) for role in ("id", "source", "target")}
    names |= {**info.columns.edge_options, **columns}
    roles = TableColumns(**names)
    known_tables = None if known is None else read_tables(*as_pair(known), columns=roles)
    tables = read_tables(nodes, edges, lists, columns=roles)
    new = build_new_nodes(tables, known_tables, roles, info.encoder)
    if not only_unlabelled:
        return new
    return new.without(has_class(tables[0], info.columns.label, classes))


def _open_file(
    info: ModelInfo, path: Path, edges: Any, known: Any, only_unlabelled: bool
) -> NewNodes:
    """Open a file that holds a whole graph."""
    for name, value in (("edges", edges), ("known", known)):
        if value is not None:
            raise ValueError(f"{path} does not take {name}: it holds a whole graph.")
    tables = open_graph_file(path, info.columns, info.encoder)
    new = NewNodes(tables=tables, rows=slice(None))
    return new.without((tables.graph.y >= 0).numpy()) if only_unlabelled else new


def training_paths(info: ModelInfo) -> tuple[str | None, ...]:
    """The paths of the training tables, and of a file of lists if one was named."""
    trained_on = info.trained_on
    if trained_on is None or trained_on.columns.get("edges") == "":  # in memory
        raise ArgumentError(
            "known must be given: the model was not trained on files.", argument="known"
        )
    edges = trained_on.columns.get("edges")
    lists = [trained_on.columns["lists"]] if "lists" in trained_on.columns else []
    several = [] if edges is None or Path(edges).exists() else edges.split(",")
    for path in (trained_on.data, *several, *lists):
        if not Path(path).exists():
            raise ArgumentError(
                f"{path} no longer exists; known must be the tables that the model was "
                "trained on, a folder or a nodes and an edges table.",
                argument="known",
            )
    return trained_on.data, edges, *lists


def as_pair(known: Any) -> tuple[Any, ...]:
    """Known tables as a pair: a folder has no edges table of its own."""
    return known if isinstance(known, tuple) else (known, None)


def holds_integers(nodes: Any, label: str | None, classes: Sequence[str]) -> bool:
    """Whether the classes in a DataFrame are integers, or floats because some are missing."""
    kind = getattr(getattr(nodes, "dtypes", {}).get(label), "kind", None)
    return kind in ("i", "u", "f") and all(name.lstrip("-").isdigit() for name in classes)
