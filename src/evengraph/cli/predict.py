"""evengraph predict: the class of every node of two tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def predict(
    model: Annotated[Path, typer.Argument(help="Folder that evengraph run --save wrote.")],
    nodes: Annotated[Path, typer.Argument(help="Table of nodes.")],
    edges: Annotated[Path, typer.Argument(help="Table of edges.")],
    to: Annotated[Path, typer.Option("--out", help="A .csv or .parquet file.")] = Path(
        "predictions.csv"
    ),
    known: Annotated[
        str | None,
        typer.Option(help="Folder, or nodes table, that the new nodes attach to.", metavar="PATH"),
    ] = None,
    known_edges: Annotated[
        str | None, typer.Option(help="Table of edges, if --known is a table of nodes.")
    ] = None,
    calibrated: Annotated[
        bool, typer.Option("--calibrated", help="Probabilities that validation has corrected.")
    ] = False,
) -> None:
    """Predict the class of every node of two tables with a model that was kept."""
    from evengraph.cli.predicting import predict_tables

    predict_tables(
        model, nodes, edges, to, known=known, known_edges=known_edges, calibrated=calibrated
    )
