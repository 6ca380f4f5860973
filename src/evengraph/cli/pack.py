"""evengraph pack: write a graph as a folder of memory-mapped arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evengraph.cli.completion import complete_data
from evengraph.cli.console import err, out, print_notes, print_written
from evengraph.cli.options import COLUMN_HELP, Columns, DataRoot, column_options

if TYPE_CHECKING:
    from evengraph.disk import PackedGraph
    from evengraph.packing.engine import Progress

GENERATED = "Generated graphs (toy)"
LINE_EVERY = 5.0
OTHERS = ("edges", "type", "edge_time", "directed")
"""Options that mean something else here, or that a packed graph does not hold."""


@column_options(*(name for name in COLUMN_HELP if name not in OTHERS))
def pack(
    data: Annotated[
        list[str],
        typer.Argument(
            help="Nodes table and edges table (Parquet or CSV; files, folders or patterns such as "
            "'nodes-*.parquet'), or DATA as in other commands.",
            metavar="NODES [EDGES]",
            autocompletion=complete_data,
        ),
    ],
    columns: Columns,
    to: Annotated[Path, typer.Option("--out", help="Folder to write; it must not exist.")],
    edges: Annotated[
        str | None, typer.Option(help="Edges table, if there are several NODES files.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="Memory limit, such as 4GB. Default: half of the free memory."),
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="Type of the features: float32 or float16.")
    ] = "float32",
    data_root: DataRoot = None,
    nodes: Annotated[
        int | None, typer.Option(help="Number of nodes.", rich_help_panel=GENERATED)
    ] = None,
    degree: Annotated[
        float, typer.Option(help="Mean number of neighbours.", rich_help_panel=GENERATED)
    ] = 20,
    features: Annotated[
        int, typer.Option(help="Number of features.", rich_help_panel=GENERATED)
    ] = 64,
    classes: Annotated[int, typer.Option(help="Number of classes.", rich_help_panel=GENERATED)] = 5,
    seed: Annotated[int, typer.Option(help="Random seed.", rich_help_panel=GENERATED)] = 0,
) -> None:
    """Convert a graph, even one larger than memory, to a folder that all commands take."""
    from evengraph.packing.generated import pack_toy
    from evengraph.packing.pack import memory_limit
    from evengraph.packing.pack import pack as pack_data

    started, arguments = monotonic(), _arguments(data, edges, columns)
    with _progress() as progress:
        if nodes is not None:
            if data != ["toy"]:
                raise ValueError("--nodes is for generated graphs: evengraph pack toy --nodes N.")
            packed = pack_toy(
                to,
                num_nodes=nodes,
                degree=degree,
                num_features=features,
                num_classes=classes,
                seed=seed,
                dtype=dtype,
                memory=memory_limit(memory),
                progress=progress,
            )
        else:
            packed = pack_data(
                path=to,
                memory=memory,
                dtype=dtype,
                root=data_root,
                progress=progress,
                **arguments,
            )
    print_notes(packed.header["notes"], err)
    _print_counts(packed, monotonic() - started)
    print_written(to)


def _arguments(data: list[str], edges: str | None, columns: Columns) -> dict[str, Any]:
    """The tables and the column arguments of `pack`."""
    arguments: dict[str, Any] = dict(columns)
    for name in {"drop", "unlabelled"} & arguments.keys():
        arguments[name] = [item.strip() for item in columns[name].split(",") if item.strip()]
    if edges is None and len(data) == 2:
        data, edges = data[:1], data[1]
    if edges is None and len(data) > 1:
        raise ValueError(
            "with many files, give the edges by --edges: evengraph pack nodes-*.parquet --edges "
            "'edges-*.parquet'."
        )
    return {"data": data[0] if len(data) == 1 else data, "edges": edges, **arguments}


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on a terminal; elsewhere a line every few seconds."""
    if not err.is_terminal:
        latest = monotonic()

        def write(stage: str, share: float | None) -> None:
            nonlocal latest
            if monotonic() - latest >= LINE_EVERY:
                latest = monotonic()
                err.print(stage + ("" if share is None else f": {share:.0%}"))

        yield write
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("[bold]{task.description}"), BarColumn(bar_width=20), TimeElapsedColumn()
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def show(stage: str, share: float | None) -> None:
            total = None if share is None else 1.0
            bar.update(task, description=stage, total=total, completed=share or 0)

        yield show


def _print_counts(packed: PackedGraph, seconds: float) -> None:
    from evengraph.core.sizes import format_size

    size = sum(path.stat().st_size for path in packed.path.iterdir())
    counts = (
        f"{packed.num_nodes:,} nodes, {packed.num_edges // 2:,} edges, "
        f"{packed.num_features:,} features, {packed.num_classes} classes"
    )
    out.print(f"{counts}; {format_size(size)} in {seconds:.0f} s", soft_wrap=True)
