"""evengraph inspect: look at a graph before training."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evengraph.cli.console import err, out, print_sentence, print_written, typed_command
from evengraph.cli.opening import check_names
from evengraph.cli.options import Columns, Data, column_options
from evengraph.core.lazy import is_packed, wing

if TYPE_CHECKING:
    from evengraph.pipeline.sources import GraphSource

# memory of the usual inspection of a packed graph at most, and how often it holds the graph
LARGE, SLOWER = 4 * 2**30, 4


@column_options()
def inspect(
    data: Data,
    columns: Columns,
    hops: Annotated[int, typer.Option(help="Largest distance from labelled nodes to report.")] = 4,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    to: Annotated[
        Path | None, typer.Option("--out", help="Folder for inspect.json and inspect.html.")
    ] = None,
) -> None:
    """Describe a graph before training: classes, homophily, reach of labels, leaks, advice."""
    check_names(data)
    from evengraph.cli.opening import next_commands, open_data
    from evengraph.cli.training import given_split
    from evengraph.core.files import write_json
    from evengraph.inspection import inspect_graph
    from evengraph.report.inspect_page import render_inspection
    from evengraph.report.page import Link, write_html
    from evengraph.report.terminal import inspection_view
    from evengraph.splits import SPLITS

    packed = _packed_content(data, columns)
    if packed is not None and packed["large"]:
        if to is not None:
            message = "is too large to be read: it takes no other option than --json."
            raise ValueError(f"{data} {message}")
        if json:
            out.print(dumps(packed, indent=1), soft_wrap=True, markup=False)
        else:
            out.print(wing("disk").packed_view(packed))
        return
    source = open_data(data, columns)
    if to is not None and to.exists() and not to.is_dir():
        raise ValueError(f"--out takes a folder, and {to} is a file.")
    with err.status("inspecting"):
        arguments, described = _table_arguments(source, described=json or to is not None)
        inspection = inspect_graph(source.graph, hops=hops, **arguments)
    content = inspection.as_dict() | {
        "columns": described,
        "name": source.name,
        "notes": [] if source.tables is None else list(source.tables.notes),
        "commands": next_commands(data, columns, source, inspection),
        "command": typed_command(),
    }
    if json:
        out.print(dumps(content, indent=1), soft_wrap=True, markup=False)
    else:
        out.print(inspection_view(content))
        if not source.is_dataset and source.default_split == "given":
            split = given_split(source.graph, SPLITS["given"]().val)
            print_sentence(f"Split: run uses {split}.")
        commands = content["commands"]
        for line in ("", "Next:", *commands) if commands else ():  # unwrapped, to be pasted
            out.print(line, soft_wrap=True, markup=False, highlight=False)
    if to is not None:
        paths = to / "inspect.json", to / "inspect.html"
        write_json(content, paths[0])
        links = [Link("inspect.json", "Inspection as JSON")]
        write_html(render_inspection(content, links=links), paths[1])
        print_written(*paths, console=err if json else out)


def _packed_content(data: str, columns: Columns) -> dict[str, Any] | None:
    """What to know about a packed graph without reading it; None for any other graph."""
    if columns or not is_packed(data):
        return None
    disk = wing("disk")
    packed = disk.PackedGraph.open(data)
    with err.status("inspecting"):
        packed.check()
        inspection = disk.inspect_packed(packed)
    large = SLOWER * disk.memory_to_read(packed) > min(inspection["free_memory"], LARGE)
    return {**inspection, "large": large}


def _table_arguments(
    source: GraphSource, *, described: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The arguments of `inspect_graph` for a user's graph, and every column of its nodes table."""
    from evengraph.inspection.measures import describe_columns
    from evengraph.tables.columns import known_labels, normalize_table
    from evengraph.tables.open import read_nodes_table

    if source.tables is None or source.data is None:
        return {}, []
    encoder = source.tables.encoder
    names = {"feature_names": encoder.names}
    table, columns = read_nodes_table(source.data), source.tables.columns
    if table is None or columns.label is None:
        return names, []
    table = normalize_table(table, "nodes")
    table[columns.label] = known_labels(table[columns.label], columns.unlabelled)
    about = describe_columns(table, columns.label, columns.id, encoder) if described else []
    used = {*encoder.input_columns, columns.label, columns.id}
    table = table[[column for column in table.columns if column in used]].copy()
    return {"table": table, "label": columns.label, "id": columns.id, **names}, about
