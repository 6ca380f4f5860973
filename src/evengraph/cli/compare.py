"""evengraph compare: several methods on the same splits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evengraph.cli.options import Columns, Data, DataRoot, Device, Settings, column_options


@column_options()
def compare(
    data: Data,
    columns: Columns,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Such as gcn,unignn, or all; by default a baseline and a few strong methods."
        ),
    ] = None,
    splits: Annotated[int | None, typer.Option(help="Random splits; by default 5.")] = None,
    folds: Annotated[int | None, typer.Option(help="Cross-validation instead of splits.")] = None,
    train: Annotated[
        float | None,
        typer.Option(help="Share to train on; by default 0.1, for your own files 0.6."),
    ] = None,
    val: Annotated[
        float | None,
        typer.Option(help="Share to validate on; by default 0.1, for your own files 0.2."),
    ] = None,
    metric: Annotated[str, typer.Option(help="Metric to compare by.")] = "balanced_accuracy",
    budget: Annotated[
        int, typer.Option(help="Settings to try per method; validation selects one.")
    ] = 1,
    settings: Settings = None,
    positive: Annotated[
        str | None, typer.Option(help="Of two classes, the positive one; by default the rarer.")
    ] = None,
    at: Annotated[
        int | None, typer.Option(help="k of precision at k; by default the size of the class.")
    ] = None,
    time_limit: Annotated[
        str | None, typer.Option(help="Stop after this, such as 90, 10m or 2h.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Number of worker processes.")] = 1,
    device: Device = "auto",
    data_root: DataRoot = None,
    to: Annotated[
        Path | None, typer.Option("--out", help="Folder for comparison.csv and comparison.json.")
    ] = None,
) -> None:
    """Run several methods on the same splits and tell which is better, and how significantly."""
    from evengraph.cli.arguments import parse_seconds
    from evengraph.cli.comparing import find_class, make_methods, plan_splits, run_comparison
    from evengraph.cli.opening import open_data
    from evengraph.core.devices import pick_device

    source = open_data(data, data_root, columns)
    protocol, seeds = plan_splits(source, splits=splits, folds=folds, train=train, val=val)
    run_comparison(
        source,
        make_methods(methods, settings or [], source.graph),
        to,
        protocol=protocol,
        seeds=seeds,
        positive=find_class(source.graph, positive),
        metric=metric,
        budget=budget,
        k=at,
        device=pick_device(device),
        jobs=jobs,
        time_limit=None if time_limit is None else parse_seconds(time_limit),
    )
