"""The commands to run after inspect, complete, so that they can be pasted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from evengraph.cli.options import FLAGS, Columns

if TYPE_CHECKING:
    from evengraph.inspection import Inspection
    from evengraph.pipeline.graph_source import GraphSource

FOUND = ("label", "id", "source", "target", "split")
"""Roles whose column may have been found, where the user named none."""


def next_commands(
    data: str, columns: Columns, source: GraphSource, inspection: Inspection
) -> list[str]:
    """Train, predict and compare, with all that was given and found.

    If a class may mean unlabelled, inspecting without it comes first, and the others follow suit.
    """
    from evengraph.inspection.recommendation import HETEROPHILY_OPTIONS, avoids_neighbours
    from evengraph.metrics.selection import has_rare_class
    from evengraph.tables.label_checks import doubtful_classes

    if sum(count > 0 for count in inspection.labels.labelled) < 2:
        return []
    doubtful = [] if source.is_dataset else doubtful_classes(inspection.labels.names)
    if doubtful:
        unlabelled = ",".join([*filter(None, [columns.get("unlabelled")]), *doubtful])
        columns = {**columns, "unlabelled": unlabelled}
    words = [data, *_options(columns, source, inspection)]
    compare = ["evengraph", "compare", *words]
    if avoids_neighbours(inspection):
        compare += HETEROPHILY_OPTIONS
    if has_rare_class(inspection.labels.labelled):
        compare += ["--metric", "positive_average_precision"]
    if source.is_dataset:
        return [join(["evengraph", "run", *words]), join(compare)]
    commands = []
    if doubtful:
        commands.append(["evengraph", "inspect", data, *option_words(columns)])
    commands.append(["evengraph", "run", *words, "--save", "model"])
    if graph := predict_words(data, columns):
        commands.append(["evengraph", "predict", "model", *graph, "--out", "predictions.csv"])
    return [join(command) for command in (*commands, compare)]


def _options(columns: Columns, source: GraphSource, inspection: Inspection) -> list[str]:
    """Options of the columns that were given or found, and those to drop."""
    options: dict[str, str] = dict(columns)
    if source.tables is not None:
        options |= {role: name for role, name in _found(source).items() if role not in columns}
        leaks = [leak.column for leak in inspection.leaks if _can_drop(leak.column, source)]
        if leaks:
            options["drop"] = ",".join([*filter(None, [columns.get("drop")]), *leaks])
    return option_words(options)


def option_words(options: Mapping[str, Any]) -> list[str]:
    """The options as on the command line; a switch is a word of its own."""
    return [
        word
        for role, value in options.items()
        for word in (FLAGS.get(role, f"--{role}"), *([] if value is True else [value]))
    ]


def _found(source: GraphSource) -> Mapping[str, str]:
    """Columns that were found and are not called as usual, which the next command would find."""
    from evengraph.tables.columns import is_usual

    tables = source.tables
    if tables is None or source.data is None or not _is_folder_or_table(Path(source.data)):
        return {}
    roles = {role: getattr(tables.columns, role) for role in FOUND}
    return {role: name for role, name in roles.items() if name and not is_usual(role, name)}


def _can_drop(column: str, source: GraphSource) -> bool:
    """Whether a leak is a column of the nodes table, or an item of lists, that --drop can name."""
    assert source.tables is not None
    encoder = source.tables.encoder
    return column in {*encoder.input_columns, *encoder.item_names} and "," not in column


def _is_folder_or_table(path: Path) -> bool:
    from evengraph.tables.open import is_graph_file
    from evengraph.tables.read import table_suffix

    return (path.is_dir() and not is_graph_file(path)) or bool(table_suffix(path))


def predict_words(data: str, columns: Columns) -> list[str]:
    """DATA of `predict` that names the same graph, with its lists; empty for a packed graph."""
    from evengraph.disk import is_packed

    if is_packed(Path(data).expanduser()):
        return []
    edges = [columns["edges"]] if "edges" in columns else []
    lists = ["--lists", columns["lists"]] if "lists" in columns else []
    return [data, *edges, *lists]
