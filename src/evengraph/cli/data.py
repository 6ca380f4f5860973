"""evengraph data: list and fetch data sets."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from evengraph.cli.console import Command, Group, err, out

data_app = typer.Typer(cls=Group, no_args_is_help=True, help="List and fetch data sets.")


@data_app.command("list", cls=Command)
def data_list() -> None:
    """List every data set with its size and source."""
    from evengraph.datasets import available
    from evengraph.report.terminal import plain_table

    table = plain_table(["name"], ["nodes", "edges", "features", "classes"])
    for title in ("source", "description"):
        table.add_column(title)
    for item in available():
        sizes = ["any"] * 4
        if item.counts:  # each edge once; files list it in both directions
            counts = item.counts._replace(edges=item.counts.edges // 2)
            sizes = [f"{count:,}" for count in counts]
        table.add_row(item.name, *sizes, item.status, item.title)
    out.print(table)


@data_app.command("fetch", cls=Command)
def data_fetch(name: Annotated[str, typer.Argument(help="Name of a data set.")]) -> None:
    """Download a data set into the cache, or show where it already is."""
    from evengraph.datasets import fetch

    with err.status(f"fetching {name}") as status:
        path = fetch(name, progress=status.update)
    out.print(f"{name}: {escape(str(path))}")
