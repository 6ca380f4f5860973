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
        help="Name of a data set (evengraph data list), a folder with nodes.csv and edges.csv, a "
        "nodes table with --edges, a packed graph, or a graph file (.graphml, .npz, .pt).",
        metavar="DATA",
        autocompletion=complete_data,
    ),
]
DataRoot = Annotated[
    Path | None, typer.Option(help="Folder of data sets in PyG's layout, read-only.", metavar="DIR")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Minority = Annotated[int | None, typer.Option(help="Number of minority classes.")]
Ratio = Annotated[float | None, typer.Option(help="Smallest class over largest.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Set a parameter of all methods that have it, or of one method, as in "
        "iceberg.learning_rate=0.1; may be repeated.",
        metavar="NAME=VALUE",
    ),
]

CostMiss = Annotated[
    float | None,
    typer.Option(
        help="Of two classes, what a node of the rarer one that is not flagged costs; sets the "
        "threshold by cost instead of F1."
    ),
]
CostAlarm = Annotated[
    float | None, typer.Option(help="What a node that is flagged by mistake costs; by default 1.")
]

Align = Annotated[
    bool,
    typer.Option(
        "--align/--no-align",
        help="Move number columns back that have moved as a whole since training, in a graph of "
        "its own.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        help="For a packed graph: work from disk within so much memory, such as 4GB; by default "
        "only if it does not fit in memory, within half of what is free.",
        metavar="SIZE",
    ),
]

Columns = dict[str, str]
"""The column options that the user gave, by the names of `open_graph`'s parameters."""

COLUMN_HELP = {
    "edges": "Table of edges; several such as pays.csv,knows.csv are types of edges.",
    "label": "Column with the classes.",
    "unlabelled": "Labels that mean unlabelled, such as unknown,-1.",
    "id": "Column with the ids.",
    "source": "Column with one end of an edge.",
    "target": "Column with the other end.",
    "weight": "Column with weights of edges; 0 means no edge.",
    "type": "Column with types of edges, whose neighbours some methods average apart.",
    "edge_time": "Column with times of edges; a split by time hides later ones from training.",
    "directed": "Keep edges from a node apart from edges to it.",
    "split": "Column with train, val or test.",
    "time": "Column with times; the oldest nodes are for training.",
    "date_order": "dmy or mdy: how to read dates such as 03/04/2024.",
    "drop": "Columns of nodes or edges to leave out, such as a,b, or items of lists, tags=red.",
    "lists": "JSON file of lists by node; features.json beside the nodes table needs no option.",
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
