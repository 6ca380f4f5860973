"""evengraph data: list and fetch graphs."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from evengraph.cli.console import err, out
from evengraph.cli.options import DataRoot

data_app = typer.Typer(no_args_is_help=True, help="Graphs: what there is, and fetching it.")


@data_app.command("list")
def data_list(data_root: DataRoot = None) -> None:
    """Show every graph, its size and where it would come from."""
    from rich.table import Table

    from evengraph.datasets import available

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("name", no_wrap=True)
    for title in ("nodes", "edges", "features", "classes"):
        table.add_column(title, justify="right", no_wrap=True)
    for title in ("source", "what"):
        table.add_column(title)
    for item in available(data_root):
        counts = item.counts
        sizes = (
            (counts.nodes, counts.edges, counts.features, counts.classes)
            if counts
            else ("any",) * 4
        )
        shown = (f"{size:,}" if isinstance(size, int) else size for size in sizes)
        table.add_row(item.name, *shown, item.status, item.title)
    out.print(table)


@data_app.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(help="Name of a graph.")], data_root: DataRoot = None
) -> None:
    """Bring a graph into the cache, or say where it already is."""
    from evengraph.datasets import fetch

    with err.status(f"fetching {name}") as status:
        place = fetch(name, root=data_root, progress=status.update)
    out.print(f"{name}: {escape(str(place))}")
