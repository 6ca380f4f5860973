"""DATA on the command line: open it, and show what was done to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape

from evengraph.cli.console import err, print_notes
from evengraph.cli.options import FLAGS, Columns
from evengraph.cli.stages import StageLines
from evengraph.core.ranks import ALONE, Ranks
from evengraph.core.task import Task
from evengraph.datasets import DATASETS
from evengraph.disk import PackedGraph, is_packed
from evengraph.pipeline.graph_source import (
    GraphSource,
    open_dataset,
    open_on_disk,
    open_tables,
)

LISTS = {"drop", "unlabelled"}
"""Column options with values such as a,b."""


def open_data(
    data: str,
    root: Path | None,
    columns: Columns,
    *,
    on_disk: bool = False,
    memory: str | None = None,
    device: str = "cpu",
    ranks: Ranks | None = None,
) -> GraphSource:
    """Open a data set by its name, or a user's files, and print the notes.

    A packed graph may stay on disk; `memory` is then the limit, and `ranks` work on it together.
    """
    if is_packed(data) and not PackedGraph.open(data).num_classes:
        raise ValueError(f"{data} was packed without labels; pack it again with a label column.")
    if on_disk:
        if columns and is_packed(data):
            flags = ", ".join(FLAGS.get(name, f"--{name}") for name in columns)
            raise ValueError(f"{data} is packed: `pack` has chosen its columns; leave out {flags}.")
        progress = StageLines()
        return open_on_disk(data, memory, device=device, progress=progress, ranks=ranks or ALONE)
    if data in DATASETS:
        if columns:
            flag = FLAGS.get(next(iter(columns)), f"--{next(iter(columns))}")
            raise ValueError(
                f"{flag} is for files of your own, and {data} is a data set of evengraph; write "
                f"./{data} for a folder of that name."
            )
        with err.status(f"loading {escape(data)}"):
            return open_dataset(data, root=root)
    arguments = split_lists(columns)
    with err.status(f"reading {escape(data)}"):
        try:
            source = open_tables(data, **arguments)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{error}{_suggested(data)}") from None
    print_notes(source.tables.notes if source.tables else (), err)
    return source


def _suggested(data: str) -> str:
    """How to name the two largest tables of a folder that are not called nodes and edges."""
    from shlex import quote

    from evengraph.tables.read import table_suffix

    folder = Path(data).expanduser()
    paths = folder.iterdir() if folder.is_dir() else ()
    tables = [path for path in paths if path.is_file() and table_suffix(path)]
    if len(tables) < 2:
        return ""
    largest = sorted(tables, key=lambda path: -path.stat().st_size)[:2]
    edges, nodes = sorted(largest, key=_num_columns)  # of equally many columns, the larger: edges
    return f" Or pass both tables: {quote(str(nodes))} --edges {quote(str(edges))}"


def _num_columns(path: Path) -> int:
    """Columns of a CSV file; 0 for any other table, which may have to be read as a whole."""
    from evengraph.tables.read import csv_header, table_suffix

    if not table_suffix(path).startswith((".csv", ".tsv")):
        return 0
    try:
        return len(csv_header(path)[1])
    except (OSError, ValueError):
        return 0


def split_lists(columns: Columns) -> dict[str, Any]:
    """The column options as arguments of `open_graph`."""
    arguments: dict[str, Any] = dict(columns)
    for name in LISTS & arguments.keys():
        arguments[name] = [item.strip() for item in columns[name].split(",") if item.strip()]
    return arguments


def warn_of_gaps(task: Task) -> None:
    """Print which classes have no validation node, so that nothing is selected for them."""
    names = task.class_names or tuple(map(str, range(task.num_classes)))
    missing = [name for name, size in zip(names, task.val_counts, strict=True) if not size]
    if missing:
        err.print(
            f"Warning: no validation node is of class {escape(', '.join(missing))}: the best epoch "
            "and model are selected without regard to it.",
            soft_wrap=True,
        )


def show_classes(source: GraphSource) -> None:
    """Print the number of nodes per class of a user's graph."""
    labels = source.graph.y
    counts = labels[labels >= 0].bincount().tolist()
    names = source.graph.get("class_names") or ()
    if source.tables is not None:
        names = source.tables.class_names
    text = ", ".join(f"{name} {count:,}" for name, count in zip(names, counts, strict=False))
    if text:
        print_notes([f"{text}; {int((labels < 0).sum()):,} unlabelled"])
