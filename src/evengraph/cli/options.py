"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DATA = (
    "Name of a graph (evengraph data list), a folder with nodes.csv and edges.csv, a nodes table "
    "with --edges, or a graph file (.graphml, .npz, .pt)."
)
OWN = "Your own files"

Data = Annotated[str, typer.Argument(help=DATA, metavar="DATA")]
DataRoot = Annotated[
    Path | None, typer.Option(help="Folder of graphs in PyG's layout, read-only.", metavar="DIR")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Edges = Annotated[str | None, typer.Option(help="Table of edges.", rich_help_panel=OWN)]
Label = Annotated[str | None, typer.Option(help="Column with the classes.", rich_help_panel=OWN)]
Id = Annotated[str | None, typer.Option(help="Column with the ids.", rich_help_panel=OWN)]
Source = Annotated[
    str | None, typer.Option(help="Column of one end of an edge.", rich_help_panel=OWN)
]
Target = Annotated[str | None, typer.Option(help="Column of the other end.", rich_help_panel=OWN)]
Weight = Annotated[
    str | None, typer.Option(help="Column of weights; 0 is no edge.", rich_help_panel=OWN)
]
SplitColumn = Annotated[
    str | None, typer.Option(help="Column that says train, val or test.", rich_help_panel=OWN)
]
Drop = Annotated[
    str | None, typer.Option(help="Columns to leave out, such as a,b.", rich_help_panel=OWN)
]
TimeColumn = Annotated[
    str | None,
    typer.Option(help="Column of times: train on the past.", rich_help_panel=OWN),
]


def columns_of(
    edges: str | None,
    label: str | None,
    id: str | None,
    source: str | None,
    target: str | None,
    weight: str | None = None,
    split: str | None = None,
    time: str | None = None,
    drop: str | None = None,
) -> dict[str, str | None]:
    """What the options of one's own files say, by the names that `open_graph` has for them."""
    return dict(locals())
