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
    imbalance: Annotated[str, typer.Option(help="step, longtail, natural, publicstep.")] = "step",
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
