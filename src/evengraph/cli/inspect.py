"""evengraph inspect: look at a graph before training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evengraph.cli.options import Columns, Data, DataRoot, column_options


@column_options()
def inspect(
    data: Data,
    columns: Columns,
    labelled: Annotated[
        float | None, typer.Option(help="See the labels of this share of every class only.")
    ] = None,
    imbalance: Annotated[
        str | None, typer.Option(help="Or those that a protocol trains on: step, longtail, ...")
    ] = None,
    minority: Annotated[int | None, typer.Option(help="Number of minority classes.")] = None,
    ratio: Annotated[float | None, typer.Option(help="Smallest class over largest.")] = None,
    seed: Annotated[int, typer.Option(help="Draws the labels that are seen.")] = 5,
    hops: Annotated[int, typer.Option(help="How far from labelled nodes to look.")] = 4,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    data_root: DataRoot = None,
    to: Annotated[
        Path | None, typer.Option("--out", help="Folder for inspect.json and inspect.html.")
    ] = None,
) -> None:
    """Look first: classes, edges, reach of the labels, leaks, and what to do."""
    from evengraph.cli.inspecting import seen_labels, show_inspection
    from evengraph.cli.opening import open_data

    opened = open_data(data, data_root, columns)
    options = {"minority": minority, "ratio": ratio}
    graph, seen = seen_labels(
        opened.graph,
        labelled=labelled,
        imbalance=imbalance,
        options={name: value for name, value in options.items() if value is not None},
        seed=seed,
    )
    notes = () if opened.own is None else opened.own.notes
    show_inspection(
        graph, to, as_json=json, notes=notes, labelled=seen, hops=hops, **opened.table()
    )
