"""evengraph data: list and fetch data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from evengraph.cli.console import Command, Group, err, out
from evengraph.cli.options import DataRoot, complete_data_set

if TYPE_CHECKING:
    from evengraph.datasets.registry import Counts

data_app = typer.Typer(cls=Group, no_args_is_help=True, help="List and fetch data sets.")


@data_app.command("list", cls=Command)
def data_list(data_root: DataRoot = None) -> None:
    """List every data set with its size and source."""
    from evengraph.datasets import available
    from evengraph.report.terminal import plain_table

    table = plain_table(["name"], ["nodes", "edges", "features", "classes"])
    for title in ("source", "description"):
        table.add_column(title)
    for item in available(data_root):
        sizes = [f"{count:,}" for count in _shown(item.counts)] if item.counts else ["any"] * 4
        table.add_row(item.name, *sizes, item.status, item.title)
    out.print(table)


def _shown(counts: Counts) -> Counts:
    """The counts with each edge once; files list it in both directions."""
    return counts._replace(edges=counts.edges // 2)


@data_app.command("fetch", cls=Command)
def data_fetch(
    name: Annotated[
        str, typer.Argument(help="Name of a data set.", autocompletion=complete_data_set)
    ],
    data_root: DataRoot = None,
) -> None:
    """Download a data set into the cache, or show where it already is."""
    from evengraph.datasets import fetch

    with err.status(f"fetching {name}") as status:
        path = fetch(name, root=data_root, progress=status.update)
    out.print(f"{name}: {escape(str(path))}")
