"""DATA on the command line: open it, and show what was done to it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from evengraph.cli.console import StageLines, err, print_notes
from evengraph.cli.options import FLAGS, Columns, data_sets
from evengraph.core.errors import ArgumentError, short
from evengraph.core.lazy import is_packed, wing

if TYPE_CHECKING:
    from evengraph.core.task import Task
    from evengraph.inspection import Inspection
    from evengraph.pipeline.model_info import NewNodes
    from evengraph.pipeline.sources import GraphSource
    from evengraph.pipeline.table_model import TableModel
    from evengraph.training.ranks import Ranks

LISTS = {"drop", "unlabelled", "link"}
"""Column options with values such as a,b."""


def check_names(data: str | Path | None = None, *, model: Path | None = None) -> None:
    """Raise for a path or data set that does not exist, before torch is imported, which is slow."""
    if "torch" in sys.modules:  # then what opens it says so as quickly
        return
    if model is not None and not model.exists():
        raise ValueError(f"{model} does not exist: give the folder that a model was saved in.")
    if data is not None and not Path(data).expanduser().exists():
        names = data_sets()
        if isinstance(data, Path) or Path(data).suffix or Path(data).name != data:
            raise FileNotFoundError(f"{data} does not exist.")
        if data not in names:
            close = get_close_matches(data.lower(), names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            one = f"name must be one of {', '.join(names)}, got {short(data)}.{hint}"
            raise ValueError(f"There is no folder {data} and no such data set: {one}")


def open_data(
    data: str,
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
    from evengraph.datasets import DATASETS
    from evengraph.pipeline.sources import open_dataset, open_tables
    from evengraph.training.ranks import ALONE

    if is_packed(data) and not wing("disk").PackedGraph.open(data).num_classes:
        raise ValueError(f"{data} was packed without labels; pack it again with a label column.")
    if on_disk:
        if columns and is_packed(data):
            flags = ", ".join(FLAGS.get(name, f"--{name}") for name in columns)
            raise ValueError(f"{data} is packed: `pack` has chosen its columns; leave out {flags}.")
        options = {"device": device, "progress": StageLines(), "ranks": ranks or ALONE}
        source: GraphSource = wing("disk").open_on_disk(data, memory, **options)
        return source
    if data in DATASETS:
        if columns:
            flag = FLAGS.get(next(iter(columns)), f"--{next(iter(columns))}")
            raise ValueError(
                f"{flag} is for files of your own, and {data} is a data set of evengraph; write "
                f"./{data} for a folder of that name."
            )
        with err.status(f"loading {escape(data)}"):
            return open_dataset(data)
    arguments = split_lists(columns)
    with err.status(f"reading {escape(data)}"):
        source = open_tables(data, **arguments)
    print_notes(source.tables.notes if source.tables else (), err)
    return source


def check_tables(
    model: TableModel, nodes: Any, edges: Any, tables: Any, *, whose: str = "known"
) -> tuple[Any, Any, Any] | None:
    """The known or new tables together, as `known` of `TableModel.open`; None if none are given."""
    from evengraph.tables.read import table_suffix

    option = "--known" if whose == "known" else f"--{whose}-nodes"
    for name, value in (("edges", edges), ("tables", tables)):
        if nodes is None and value is not None:
            raise ValueError(f"--{whose}-{name} goes with {option}, which names the nodes table.")
    if nodes is None:
        return None
    linked = model.info.columns.link or model.info.columns.kinds
    if edges is None and not linked and table_suffix(Path(nodes)) and Path(nodes).exists():
        raise ValueError(f"--{whose}-edges must name the edges table that belongs to {nodes}.")
    return nodes, edges, tables


def open_new(model: TableModel, data: Path, edges: Any, known: Any, **given: Any) -> NewNodes:
    """Open new nodes, with the known tables that they attach to, and print the notes."""
    from evengraph.tables import UnknownNodeError

    try:
        new = model.open(data, edges, known=known, **given)
    except ArgumentError as error:
        if error.argument != "edges":
            raise
        raise ValueError(f"{error} Name it after {data}.") from None
    except UnknownNodeError as error:
        if known is None:
            hint = "Nodes of the known graph? Name its folder with --known, or both of its tables "
            hint += "with --known and --known-edges."
        elif model.info.columns.kinds and given["tables"] is None:
            hint = "Rows of another table? Name it with --tables."
        else:
            raise
        raise ValueError(f"{error} {hint}") from None
    print_notes(new.notes, err)
    return new


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
        text = f"Warning: no validation node is of class {escape(', '.join(missing))}: the best "
        err.print(f"{text}epoch and model are selected without regard to it.", soft_wrap=True)


def show_classes(source: GraphSource) -> None:
    """Print the number of nodes per class of a user's graph."""
    labels, tables = source.graph.y, source.tables
    counts = labels[labels >= 0].bincount().tolist()
    names = tables.class_names if tables is not None else source.graph.get("class_names") or ()
    text = ", ".join(f"{name}: {count:,}" for name, count in zip(names, counts, strict=False))
    if text:
        print_notes([f"{text}; {int((labels < 0).sum()):,} unlabelled"])


def written(path: Path) -> str:
    """The line to print for a file that is about to be written."""
    return f"{'replaced' if path.exists() else 'wrote'} {escape(str(path))}"


def check_folder(folder: Path) -> None:
    """Check that a folder can be written to, before hours of training; leaves none behind."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".evengraph-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"Cannot write to {folder}: {error.strerror}.") from None
    finally:
        with suppress(OSError):  # another process may have put something there
            for path in missing:
                path.rmdir()


def next_commands(
    data: str, columns: Columns, source: GraphSource, inspection: Inspection
) -> list[str]:
    """Train, predict and compare, with all that was given and found.

    If a class may mean unlabelled, inspecting without it comes first, and the others follow suit.
    """
    from evengraph.inspection.inspection import HETEROPHILY_OPTIONS, avoids_neighbours
    from evengraph.metrics.multiclass import has_rare_class
    from evengraph.tables.columns import doubtful_classes, is_usual
    from evengraph.tables.open import is_graph_file
    from evengraph.tables.read import table_suffix

    if sum(count > 0 for count in inspection.labels.labelled) < 2:
        return []
    doubtful = [] if source.is_dataset else doubtful_classes(inspection.labels.names)
    if doubtful:
        unlabelled = ",".join([*filter(None, [columns.get("unlabelled")]), *doubtful])
        columns = {**columns, "unlabelled": unlabelled}
    options, tables = dict(columns), source.tables
    if tables is not None:
        path = Path(source.data or "")
        in_folder = path.is_dir() and not is_graph_file(path)
        if source.data and (in_folder or table_suffix(path)):
            for role in ("label", "id", "source", "target", "split"):  # found, but not as usual
                name = getattr(tables.columns, role)
                if name and not is_usual(role, name):
                    options.setdefault(role, name)
        known = tables.encoder.input_columns
        leaks = [leak.column for leak in inspection.leaks if leak.column in known]
        leaks = [column for column in leaks if "," not in column]  # which --drop can name
        if leaks:
            options["drop"] = ",".join([*filter(None, [columns.get("drop")]), *leaks])
    words = [data, *option_words(options)]
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


def option_words(options: Mapping[str, Any]) -> list[str]:
    """The options as on the command line; a switch is a word of its own."""
    return [
        word
        for role, value in options.items()
        for word in (FLAGS.get(role, f"--{role}"), *([] if value is True else [value]))
    ]


def predict_words(data: str, columns: Columns) -> list[str]:
    """DATA of `predict` that names the same graph; empty for a packed graph."""
    if is_packed(Path(data).expanduser()):
        return []
    edges = [columns["edges"]] if "edges" in columns else []
    tables = ["--tables", columns["tables"]] if "tables" in columns else []
    return [data, *edges, *tables]
