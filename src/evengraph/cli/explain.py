"""evengraph explain: where a prediction came from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evengraph.cli.options import OWN_FILES, Columns, column_options


@column_options("label", "id", "source", "target")
def explain(
    model: Annotated[Path, typer.Argument(help="Folder that evengraph run --save wrote.")],
    node: Annotated[str, typer.Argument(help="Id of a node.")],
    columns: Columns,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", "--known", help="Where the known graph is; by default where it was."
        ),
    ] = None,
    new_nodes: Annotated[
        Path | None, typer.Option(help="Table of new nodes, if the node is one of them.")
    ] = None,
    new_edges: Annotated[Path | None, typer.Option(help="Table of their edges.")] = None,
    to: Annotated[Path | None, typer.Option("--out", help="A picture, .svg.")] = None,
    edges: Annotated[
        str | None,
        typer.Option(
            "--edges", "--known-edges", help="Table of known edges.", rich_help_panel=OWN_FILES
        ),
    ] = None,
) -> None:
    """Say which labelled nodes and clusters a prediction came from, and draw them."""
    from evengraph.cli.explaining import explain_node

    new = new_nodes, new_edges
    explain_node(model, node, data=data, columns={**columns, "edges": edges}, new=new, to=to)
