"""The command line: parse, call one function, print.

Torch and PyG take seconds to import, so each command imports what it needs when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from evengraph import __version__
from evengraph.cli.console import complain, err, out

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Node classification when the classes are unequal.",
)
data_app = typer.Typer(no_args_is_help=True, help="Graphs: what there is, and fetching it.")
app.add_typer(data_app, name="data")

DataRoot = Annotated[
    Path | None, typer.Option(help="Folder of graphs in PyG's layout, read-only.", metavar="DIR")
]


@app.callback(invoke_without_command=True)
def _front(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        out.print(f"evengraph {__version__}")
        raise typer.Exit


@app.command()
def run(
    dataset: Annotated[str, typer.Argument(help="Name of a graph; see: evengraph data list.")],
    method: Annotated[
        str,
        typer.Option(
            help="One, several such as gcn,lte4g to compare, or all; see: evengraph methods."
        ),
    ] = "unignn",
    imbalance: Annotated[
        str, typer.Option(help="step, longtail, natural, folds, publicstep.")
    ] = "step",
    minority: Annotated[int | None, typer.Option(help="Number of minority classes.")] = None,
    ratio: Annotated[float | None, typer.Option(help="Smallest class over largest.")] = None,
    train: Annotated[float | None, typer.Option(help="Share to train on (natural).")] = None,
    val: Annotated[float | None, typer.Option(help="Share to validate on (natural).")] = None,
    seeds: Annotated[str, typer.Option(help="Such as 5,6,7 or 5-24.")] = "5,6,7",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A field of the method; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    preset: Annotated[
        bool,
        typer.Option(help="Use settings picked or published for a set-up where there are some."),
    ] = True,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    data_root: DataRoot = None,
    to: Annotated[
        Path | None, typer.Option("--out", help="Folder for result.json and report.html.")
    ] = None,
) -> None:
    """Train and test a method, once for each seed, and report; several are compared."""
    from evengraph.cli.running import compare, folder_name, load_graph, run_one
    from evengraph.experiment.command import (
        parse_methods,
        parse_seeds,
        pick_device,
        plan_run,
        settings_of_each,
    )

    shares = {"minority": minority, "ratio": ratio, "train": train, "val": val}
    names = parse_methods(method)
    each = settings_of_each(names, settings or [])
    plans = [
        plan_run(
            dataset,
            method=name,
            method_settings=each[name],
            imbalance=imbalance,
            imbalance_fields={name: value for name, value in shares.items() if value is not None},
            seeds=parse_seeds(seeds),
            preset=preset,
        )
        for name in names
    ]
    chosen = pick_device(device)
    words = [*(settings or []), *([] if preset else ["no-preset"]), f"seeds={seeds}"]
    folder = to or Path("runs") / folder_name(plans[0][0], names, words)
    graph = load_graph(plans[0][0], data_root)
    if len(plans) == 1:
        run_one(*plans[0], graph, chosen, folder)
    else:
        compare(plans, graph, chosen, folder)


@app.command("compare")
def compare_(
    data: Annotated[str, typer.Argument(help="Name of a graph; see: evengraph data list.")],
    methods: Annotated[
        str | None,
        typer.Option(help="Such as gcn,unignn, or all; by default gcn,reweight,smote,unignn."),
    ] = None,
    splits: Annotated[int | None, typer.Option(help="Random splits; by default 5.")] = None,
    folds: Annotated[int | None, typer.Option(help="Cross-validation instead of splits.")] = None,
    train: Annotated[float | None, typer.Option(help="Share to train on; by default 0.1.")] = None,
    val: Annotated[float, typer.Option(help="Share to validate on.")] = 0.1,
    metric: Annotated[str, typer.Option(help="What to compare by.")] = "balanced_accuracy",
    budget: Annotated[
        int, typer.Option(help="Settings to try for each method, chosen on validation.")
    ] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A field of methods; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
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
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    data_root: DataRoot = None,
    to: Annotated[
        Path | None, typer.Option("--out", help="Folder for comparison.csv and comparison.json.")
    ] = None,
) -> None:
    """Try several methods on the same splits; say which is better, and whether that is noise."""
    from evengraph.cli.comparing import plan_splits, run_comparison
    from evengraph.experiment.command import parse_seconds, pick_device

    protocol, seeds = plan_splits(splits=splits, folds=folds, train=train, val=val)
    run_comparison(
        data,
        data_root,
        methods=methods,
        settings=settings or [],
        protocol=protocol,
        seeds=seeds,
        positive=positive,
        folder=to,
        metric=metric,
        budget=budget,
        k=at,
        device=pick_device(device),
        jobs=jobs,
        time_limit=None if time_limit is None else parse_seconds(time_limit),
    )


@app.command()
def inspect(
    dataset: Annotated[str, typer.Argument(help="Name of a graph; see: evengraph data list.")],
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
    from evengraph.cli.inspecting import load_known, show_inspection

    options = {"minority": minority, "ratio": ratio}
    graph, seen = load_known(
        dataset,
        data_root,
        labelled=labelled,
        imbalance=imbalance,
        options={name: value for name, value in options.items() if value is not None},
        seed=seed,
    )
    show_inspection(graph, to, as_json=json, labelled=seen, hops=hops)


@app.command("reproduce")
def reproduce_(
    what: Annotated[
        list[str], typer.Argument(help="table1, table2, table3, figure2, all, or a TOML file.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="A small part: minutes instead of hours.")
    ] = False,
    seeds: Annotated[str | None, typer.Option(help="Such as 5,6,7 or 5-24.")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these, such as gcn,unignn.")] = None,
    setups: Annotated[
        str | None, typer.Option(help="Only those like these, such as cora-step-3,pubmed.")
    ] = None,
    store: Annotated[Path, typer.Option(help="File that keeps every run.")] = Path(
        "runs/reproduce.sqlite"
    ),
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    engine: Annotated[str, typer.Option(help="auto, here, processes or ray.")] = "auto",
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one a core.")] = None,
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try failed runs again.")] = False,
    data_root: DataRoot = None,
) -> None:
    """Run the paper's tables and figures, or your own; go on where it was left."""
    from evengraph.cli.reproducing import read_specs, run_experiments
    from evengraph.experiment.command import parse_methods, parse_seeds, pick_device
    from evengraph.experiment.engines import Place

    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}.")
    specs = read_specs(
        what,
        quick=quick,
        seeds=parse_seeds(seeds) if seeds else (),
        methods=parse_methods(methods) if methods else (),
        setups=[part.strip() for part in setups.split(",")] if setups else (),
    )
    place = Place(store, str(pick_device(device)), data_root)
    run_experiments(specs, place, engine=engine, workers=jobs, address=address, retry=retry)


@app.command()
def results(
    store: Annotated[Path, typer.Argument(help="File of a store.")],
    dataset: Annotated[str | None, typer.Option(help="Only this graph.")] = None,
    imbalance: Annotated[str | None, typer.Option(help="Only this protocol.")] = None,
    method: Annotated[str | None, typer.Option(help="Only this method.")] = None,
    seed: Annotated[int | None, typer.Option(help="Only this seed.")] = None,
    status: Annotated[str | None, typer.Option(help="done or failed.")] = None,
    to: Annotated[
        Path | None, typer.Option("--export", help="Write rows to a .csv, .json or .parquet.")
    ] = None,
) -> None:
    """List the runs of a store, or write them to a table."""
    from evengraph.cli.reproducing import export, list_rows
    from evengraph.store import Store

    if not store.is_file():
        raise ValueError(f"There is no store {store}.")
    rows = Store(store).rows(
        dataset=dataset, imbalance=imbalance, method=method, seed=seed, status=status
    )
    if to is not None:
        export(rows, to)
        out.print(f"wrote {escape(str(to))}: {len(rows)} runs", soft_wrap=True)
    elif rows:
        out.print(list_rows(rows))
        for row in rows:
            if not row.done:
                where = f"{row.job.method} on {row.job.dataset}, seed {row.job.seed}"
                words = escape(f"{where}: {row.reason}")
                out.print(f"[red]failed:[/] {words}", soft_wrap=True)
    else:
        out.print("No such runs.")


@app.command()
def report(
    store: Annotated[Path, typer.Argument(help="File of a store.")],
    to: Annotated[Path, typer.Option("--out", help="Folder for tables and figures.")] = Path(
        "report"
    ),
) -> None:
    """Draw what a store holds: tables (Markdown, LaTeX, CSV), figures (SVG, PNG), one page."""
    from evengraph.cli.reproducing import write_report
    from evengraph.store import Store

    if not store.is_file():
        raise ValueError(f"There is no store {store}.")
    with err.status("drawing"):
        written = write_report(Store(store), to)
    for path in written:
        out.print(f"wrote {escape(str(path))}", soft_wrap=True)


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(help="Show one method whole.")] = None,
) -> None:
    """List the methods: idea, reference, cost, fields."""
    from dataclasses import asdict

    from evengraph.experiment.command import known_method
    from evengraph.experiment.describe import describe_method, training_fields
    from evengraph.methods import METHODS
    from evengraph.report.terminal import field_table, fields_line, method_card

    shared = training_fields()

    if name:
        words = describe_method(known_method(name))
        out.print(f"[bold]{words.name}[/]  {words.title}\n\n{escape(words.text)}\n", soft_wrap=True)
        out.print(field_table(words.fields, words.meanings))
        out.print(f"\nCost: {escape(words.cost)}\nReference: {escape(words.reference)}")
    else:
        for key in METHODS:
            words = describe_method(key)
            own = {name: value for name, value in words.fields.items() if name not in shared}
            out.print(method_card(asdict(words) | {"fields": own}))
            out.print()
        out.print(f"Of all methods: {fields_line(shared)}")


@data_app.command("list")
def data_list(data_root: DataRoot = None) -> None:
    """Show every graph, its size and where it would come from."""
    from rich.table import Table

    from evengraph.data import available

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("name", no_wrap=True)
    for title in ("nodes", "edges", "features", "classes"):
        table.add_column(title, justify="right", no_wrap=True)
    for title in ("source", "what"):
        table.add_column(title)
    for item in available(data_root):
        counts = item.counts
        sizes = (
            (counts.nodes, counts.edges, counts.features, counts.classes)
            if counts
            else ("any",) * 4
        )
        shown = (f"{size:,}" if isinstance(size, int) else size for size in sizes)
        table.add_row(item.name, *shown, item.status, item.title)
    out.print(table)


@data_app.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(help="Name of a graph.")], data_root: DataRoot = None
) -> None:
    """Bring a graph into the cache, or say where it already is."""
    from evengraph.data import fetch

    with err.status(f"fetching {name}") as status:
        place = fetch(name, root=data_root, progress=status.update)
    out.print(f"{name}: {escape(str(place))}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a mistake of the user's ends in one line and status 2."""
    try:
        status = app(args=arguments, standalone_mode=False)
    except KeyboardInterrupt:
        status = 130
    except (ValueError, OSError, MemoryError, FloatingPointError) as error:
        complain(error)
        status = 2
    except Exception as error:
        # Usage errors; the class that they share depends on the version of typer.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        text = escape(message().rstrip("."))
        if text:  # without any word, the help was asked for and has been shown
            err.print(f"[red]Error:[/] {text}. See: evengraph --help", soft_wrap=True)
        status = 2
    if status == 130:
        err.print("Interrupted.")
    sys.exit(status if isinstance(status, int) else 0)
