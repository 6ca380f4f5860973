"""Commands that learn from a graph, and use what was learnt: parse, call one function.

Torch and PyG take seconds to import, so each command imports what it needs when it runs.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from evengraph.cli.options import (
    OWN,
    Data,
    DataRoot,
    Device,
    Drop,
    Edges,
    Id,
    Label,
    Source,
    SplitColumn,
    Target,
    TimeColumn,
    Weight,
    columns_of,
)

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A field of all methods that have it, or of one, as in iceberg.learning_rate=0.1; "
        "may be repeated.",
        metavar="NAME=VALUE",
    ),
]


def inspect(
    data: Data,
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
    edges: Edges = None,
    label: Label = None,
    id: Id = None,
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    split_column: SplitColumn = None,
    time_column: TimeColumn = None,
    drop: Drop = None,
) -> None:
    """Look first: classes, edges, reach of the labels, leaks, and what to do."""
    from evengraph.cli.inspecting import seen_labels, show_inspection
    from evengraph.cli.opening import open_data

    ends = edges, label, id, source, target
    columns = columns_of(*ends, weight, split_column, time_column, drop)
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


def run(
    data: Data,
    method: Annotated[
        str,
        typer.Option(
            help="One, several such as gcn,lte4g to compare, or all; see: evengraph methods."
        ),
    ] = "unignn",
    imbalance: Annotated[
        str | None,
        typer.Option(
            help="step, longtail, natural, publicstep, folds, given or bytime; by default step, "
            "for your own files whatever suits them."
        ),
    ] = None,
    minority: Annotated[int | None, typer.Option(help="Number of minority classes.")] = None,
    ratio: Annotated[float | None, typer.Option(help="Smallest class over largest.")] = None,
    train: Annotated[float | None, typer.Option(help="Share to train on (natural).")] = None,
    val: Annotated[float | None, typer.Option(help="Share to validate on (natural).")] = None,
    seeds: Annotated[str, typer.Option(help="Such as 5,6,7 or 5-24.")] = "5,6,7",
    settings: Settings = None,
    preset: Annotated[
        bool,
        typer.Option(help="Use settings picked or published for a set-up where there are some."),
    ] = True,
    device: Device = "auto",
    data_root: DataRoot = None,
    to: Annotated[
        Path | None, typer.Option("--out", help="Folder for result.json and report.html.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Folder for the model, for predict and explain.")
    ] = None,
    edges: Edges = None,
    label: Label = None,
    id: Id = None,
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    split_column: SplitColumn = None,
    time_column: TimeColumn = None,
    drop: Drop = None,
) -> None:
    """Train and test a method, once for each seed, and report; several are compared."""
    from evengraph.cli.opening import open_data
    from evengraph.cli.predicting import keep_model
    from evengraph.cli.running import compare as compare_runs
    from evengraph.cli.running import folder_name, plan_all, run_one
    from evengraph.experiment.parsing import parse_methods, parse_seeds, pick_device

    names = parse_methods(method)
    if save is not None and len(names) > 1:
        raise ValueError("--save keeps one model; name one --method.")
    ends = edges, label, id, source, target
    columns = columns_of(*ends, weight, split_column, time_column, drop)
    shares = {"minority": minority, "ratio": ratio, "train": train, "val": val}
    opened, plans = plan_all(
        partial(open_data, data, data_root, columns),
        data,
        names,
        settings or [],
        imbalance=imbalance,
        shares={name: value for name, value in shares.items() if value is not None},
        seeds=parse_seeds(seeds),
        preset=preset,
        save=save,
    )
    words = [*(settings or []), *([] if preset else ["no-preset"]), f"seeds={seeds}"]
    folder = to or Path("runs") / folder_name(plans[0][0], names, words)
    chosen = pick_device(device)
    if len(plans) == 1:
        keep = None if save is None else partial(keep_model, folder=save, opened=opened)
        run_one(*plans[0], opened.graph, chosen, folder, keep)
    else:
        compare_runs(plans, opened.graph, chosen, folder)


def compare(
    data: Data,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Such as gcn,unignn, or all; by default "
            "gcn,reweight,doublebalancing,iceberg,unignn."
        ),
    ] = None,
    splits: Annotated[int | None, typer.Option(help="Random splits; by default 5.")] = None,
    folds: Annotated[int | None, typer.Option(help="Cross-validation instead of splits.")] = None,
    train: Annotated[
        float | None,
        typer.Option(help="Share to train on; by default 0.1, of your own files 0.6."),
    ] = None,
    val: Annotated[
        float | None,
        typer.Option(help="Share to validate on; by default 0.1, of your own files 0.2."),
    ] = None,
    metric: Annotated[str, typer.Option(help="What to compare by.")] = "balanced_accuracy",
    budget: Annotated[
        int, typer.Option(help="Settings to try for each method, chosen on validation.")
    ] = 1,
    settings: Settings = None,
    positive: Annotated[
        str | None, typer.Option(help="Of two classes the one that matters; else the rarer.")
    ] = None,
    at: Annotated[
        int | None, typer.Option(help="k of precision at k; else the size of the class.")
    ] = None,
    time_limit: Annotated[
        str | None, typer.Option(help="Stop after this, such as 90, 10m or 2h.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes to share the work.")] = 1,
    device: Device = "auto",
    data_root: DataRoot = None,
    to: Annotated[
        Path | None, typer.Option("--out", help="Folder for comparison.csv and comparison.json.")
    ] = None,
    edges: Edges = None,
    label: Label = None,
    id: Id = None,
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    split_column: SplitColumn = None,
    time_column: TimeColumn = None,
    drop: Drop = None,
) -> None:
    """Try several methods on the same splits; say which is better, and whether that is noise."""
    from evengraph.cli.comparing import plan_splits, run_comparison
    from evengraph.cli.opening import open_data
    from evengraph.experiment.parsing import parse_seconds, pick_device

    ends = edges, label, id, source, target
    columns = columns_of(*ends, weight, split_column, time_column, drop)
    opened = open_data(data, data_root, columns)
    protocol, count = plan_splits(opened, splits=splits, folds=folds, train=train, val=val)
    run_comparison(
        opened,
        methods=methods,
        settings=settings or [],
        protocol=protocol,
        seeds=count,
        positive=positive,
        folder=to,
        metric=metric,
        budget=budget,
        k=at,
        device=pick_device(device),
        jobs=jobs,
        time_limit=None if time_limit is None else parse_seconds(time_limit),
    )


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


def explain(
    model: Annotated[Path, typer.Argument(help="Folder that evengraph run --save wrote.")],
    node: Annotated[str, typer.Argument(help="Id of a node.")],
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
        typer.Option("--edges", "--known-edges", help="Table of known edges.", rich_help_panel=OWN),
    ] = None,
    label: Label = None,
    id: Id = None,
    source: Source = None,
    target: Target = None,
) -> None:
    """Say which labelled nodes and clusters a prediction came from, and draw them."""
    from evengraph.cli.explaining import explain_node

    columns = columns_of(edges, label, id, source, target)
    new = new_nodes, new_edges
    explain_node(model, node, data=data, columns=columns, new=new, to=to)
