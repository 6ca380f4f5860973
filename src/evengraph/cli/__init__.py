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
from evengraph.cli.learning import compare, explain, inspect, predict, run
from evengraph.cli.options import DataRoot, Device

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Node classification when the classes are unequal.",
)
data_app = typer.Typer(no_args_is_help=True, help="Graphs: what there is, and fetching it.")
for command in (inspect, run, compare, predict, explain):
    app.command()(command)
app.add_typer(data_app, name="data")


@app.callback(invoke_without_command=True)
def _front(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        out.print(f"evengraph {__version__}")
        raise typer.Exit


@app.command("reproduce")
def reproduce_(
    what: Annotated[
        list[str],
        typer.Argument(
            help="table1, table2, table3, figure2 or all; beyond the paper newer, publicstep, "
            "publicraw, unreal or natural; or a TOML file."
        ),
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
    device: Device = "auto",
    engine: Annotated[str, typer.Option(help="auto, here, processes or ray.")] = "auto",
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one a core.")] = None,
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try failed runs again.")] = False,
    data_root: DataRoot = None,
) -> None:
    """Run the paper's tables and figures, or your own; go on where it was left."""
    from evengraph.cli.reproducing import read_specs, run_experiments
    from evengraph.experiment.engines import Place
    from evengraph.experiment.parsing import parse_methods, parse_seeds, pick_device

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
    from evengraph.core.store import Store

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
    from evengraph.core.store import Store

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

    from evengraph.experiment.method_docs import describe_method, training_fields
    from evengraph.experiment.parsing import known_method
    from evengraph.methods import METHODS
    from evengraph.report.terminal.run import field_table, fields_line, method_card

    shared = training_fields()

    if name:
        words = describe_method(known_method(name))
        out.print(f"[bold]{words.name}[/]  {words.title}\n\n{escape(words.text)}\n", soft_wrap=True)
        out.print(field_table(words.fields, words.meanings))
        out.print(f"\nCost: {escape(words.cost)}\nReference: {escape(words.reference)}")
    else:
        for key in METHODS:
            words = describe_method(key)
            own = {n: v for n, v in words.fields.items() if n not in shared or shared[n] != v}
            out.print(method_card(asdict(words) | {"fields": own}))
            out.print()
        out.print(f"Of all methods, if nothing else is said: {fields_line(shared)}")


@data_app.command("list")
def data_list(data_root: DataRoot = None) -> None:
    """Show every graph, its size and where it would come from."""
    from rich.table import Table

    from evengraph.datasets import available

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
    from evengraph.datasets import fetch

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
