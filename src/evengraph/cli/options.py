"""Options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from evengraph.cli.completion import complete_data

OWN_FILES = "Your own files"

Data = Annotated[
    str,
    typer.Argument(
        help="A data set (evengraph data list), a folder with nodes.csv and edges.csv, a nodes "
        "table with --edges, a graph file (.graphml, .npz, .pt), or a packed graph.",
        metavar="DATA",
        autocompletion=complete_data,
    ),
]
DataRoot = Annotated[
    Path | None, typer.Option(help="Folder of data sets in PyG's layout, read-only.", metavar="DIR")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Minority = Annotated[int | None, typer.Option(help="Number of minority classes.")]
Ratio = Annotated[
    float | None, typer.Option(help="Size of the smallest class divided by that of the largest.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Set a parameter of every method that has it, or of one method: "
        "iceberg.learning_rate=0.1. May be repeated.",
        metavar="NAME=VALUE",
    ),
]

CostMiss = Annotated[
    float | None,
    typer.Option(
        help="Two classes: cost of missing a node of the rarer class. The threshold then minimises "
        "cost instead of maximising F1."
    ),
]
CostAlarm = Annotated[
    float | None, typer.Option(help="Two classes: cost of a false alarm. Default: 1.")
]

Align = Annotated[
    bool,
    typer.Option(
        "--align/--no-align",
        help="In a graph without known nodes, undo shifts of whole numeric columns since training.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        help="Packed graphs: work from disk within this much memory, such as 4GB. By default this "
        "happens only if the graph does not fit, with half of the free memory.",
        metavar="SIZE",
    ),
]

Columns = dict[str, str]
"""The column options that the user gave, by the names of `open_graph`'s parameters."""

COLUMN_HELP = {
    "edges": "Edges table. Several, such as pays.csv,knows.csv, are edge types.",
    "label": "Label column.",
    "unlabelled": "Labels to treat as missing, such as unknown,-1.",
    "id": "Id column.",
    "source": "Column of the edges table with the source id.",
    "target": "Column of the edges table with the target id.",
    "weight": "Column of edge weights; 0 means no edge.",
    "type": "Column of edge types, which some methods aggregate separately.",
    "edge_time": "Column of edge times; a split by time hides later edges from training.",
    "directed": "Treat outgoing and incoming edges as two relations.",
    "split": "Column that says train, val or test for each node.",
    "time": "Column of times for a split by time: train on the oldest nodes.",
    "date_order": "dmy or mdy, to read dates such as 03/04/2024.",
    "drop": "Columns to ignore, such as a,b; or an item of a list column, tags=red.",
    "lists": "JSON file with a list per node. features.json beside the nodes table is found.",
}
FLAGS = {
    "split": "--split-column",
    "time": "--time-column",
    "edge_time": "--edge-time",
    "date_order": "--date-order",
}
SWITCHES = ("directed",)


def column_options(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the parameter `columns` of a command by one option per column, by default all.

    Typer reads options from the signature, so the wrapper declares one with these options last.
    """
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                bool | None if name in SWITCHES else str | None,
                typer.Option(
                    FLAGS.get(name, f"--{name}"), help=COLUMN_HELP[name], rich_help_panel=OWN_FILES
                ),
            ],
        )
        for name in names or COLUMN_HELP
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapper(**values: Any) -> None:
            columns = {option.name: values.pop(option.name) for option in options}
            given = {name: value for name, value in columns.items() if value is not None}
            command(columns=given, **values)

        hints = get_type_hints(command, include_extras=True)
        parameters = [
            parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[name])
            for name, parameter in inspect.signature(command).parameters.items()
            if name != "columns"
        ]
        signature = inspect.Signature([*parameters, *options], return_annotation=None)
        vars(wrapper)["__signature__"] = signature
        wrapper.__annotations__ = {n: p.annotation for n, p in signature.parameters.items()}
        return wrapper

    return decorate
