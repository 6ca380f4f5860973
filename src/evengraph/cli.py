"""The command line: parse, call one function, print.

Torch and PyG take seconds to import, so each command imports what it needs when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from evengraph import __version__

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data

    from evengraph.experiment import Run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Node classification when the classes are unequal.",
)
data_app = typer.Typer(no_args_is_help=True, help="Graphs: what there is, and fetching it.")
app.add_typer(data_app, name="data")

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

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
    folder = to or Path("runs") / _name(plans[0][0], method, words)
    graph = _load(plans[0][0], data_root)
    _check_folder(folder)
    if len(plans) == 1:
        plan, picked = plans[0]
        _announce(plan, picked, chosen)
        result = _run(plan, graph, chosen)
        _deliver(result, folder)
        _stop_if_interrupted(result)
    else:
        _compare(plans, graph, chosen, folder)


def _compare(
    plans: Sequence[tuple[Run, dict[str, Any] | None]],
    graph: Data,
    device: torch.device,
    folder: Path,
) -> None:
    """Run several methods on the same splits; one that cannot run does not stop the others."""
    from evengraph.report.terminal import comparison_table

    results, failed = [], False
    for plan, picked in plans:
        _announce(plan, picked, device)
        try:
            result = _run(plan, graph, device)
        except (ValueError, MemoryError, FloatingPointError) as error:
            _complain(error)
            failed = True
            continue
        _save(result, folder / plan.method)
        results.append(result)
        if not result["complete"]:
            break
    if results:
        out.print()
        out.print(comparison_table(results))
        out.print()
        where = escape(str(folder))
        out.print(f"wrote {where}/METHOD/result.json and report.html", soft_wrap=True)
        _stop_if_interrupted(results[-1])
    if failed:
        raise typer.Exit(2)


def _stop_if_interrupted(result: dict[str, Any]) -> None:
    if not result["complete"]:
        if result["runs"][-1]["interrupted"]:
            err.print("The last run counts with its best model so far.")
        raise typer.Exit(130)


def _name(plan: Run, methods: str, words: list[str]) -> str:
    """A folder of its own for every set-up, so that one run does not replace another."""
    protocol = (f"{name}={value}" for name, value in plan.imbalance_fields.items())
    words = [plan.dataset, plan.imbalance, *protocol, methods, *words]
    return "-".join(words).replace("/", "_").replace(" ", "")


def _load(plan: Run, data_root: Path | None) -> Data:
    """The graph, once it is clear that it can be split as asked."""
    from evengraph.data import load

    with err.status(f"loading {plan.dataset}"):
        graph = load(plan.dataset, root=data_root)
        plan.make_imbalance()(graph, seed=plan.seeds[0])
    return graph


def _announce(plan: Run, picked: dict[str, Any] | None, device: torch.device) -> None:
    protocol = plan.make_imbalance()
    known = {name: getattr(protocol, name, None) for name in ("minority", "ratio", "train", "val")}
    words = ", ".join(f"{name}={value}" for name, value in known.items() if value is not None)
    out.print(
        f"[bold]{plan.make_method().title}[/] on [bold]{plan.dataset}[/], "
        f"{plan.imbalance} imbalance ({words}), on {device.type}"
    )
    if picked:
        words = ", ".join(f"{k}={v}" for k, v in picked.items())
        out.print(f"[dim]preset: {words} (--no-preset for the defaults)[/]")


def _run(plan: Run, graph: Data, device: torch.device) -> dict[str, Any]:
    """Run with a bar on a terminal, and a line a seed elsewhere."""
    from contextlib import ExitStack

    from evengraph.experiment import run
    from evengraph.progress import shown
    from evengraph.results import Record
    from evengraph.training import Callback

    method = plan.make_method()
    with ExitStack() as bars:

        def bar(seed: int) -> Callback | None:
            bars.close()
            title = f"seed {seed}"
            return bars.enter_context(shown(title, method.patience, method.max_epochs))

        def done(record: Record) -> None:
            bars.close()
            score = record.metrics["balanced_accuracy"]
            err.print(
                f"seed {record.seed}: bAcc {score:.1f}, best epoch {record.best_epoch} of "
                f"{record.epochs}, {record.seconds:.0f} s"
            )

        return run(plan, graph, device, on_epoch=bar, on_record=done)


def _check_folder(folder: Path) -> None:
    """Find out that nothing can be written before, not after, an hour of training."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".evengraph-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"Cannot write to {folder}: {error.strerror}.") from None


def _deliver(result: dict[str, Any], folder: Path) -> None:
    from evengraph.report.terminal import result_table

    out.print()
    out.print(result_table(result))
    out.print()
    _save(result, folder)
    for name in ("result.json", "report.html"):
        out.print(f"wrote {escape(str(folder / name))}", soft_wrap=True)


def _save(result: dict[str, Any], folder: Path) -> None:
    from evengraph.report import write_page
    from evengraph.results import write_json

    write_json(result, folder / "result.json")
    write_page(result, folder / "report.html")


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(help="Show one method whole.")] = None,
) -> None:
    """List the methods: idea, reference, cost, fields."""
    from dataclasses import asdict

    from evengraph.experiment.command import known_method
    from evengraph.experiment.describe import describe_method, training_fields
    from evengraph.methods import METHODS
    from evengraph.report.terminal import fields_line, method_card

    if name:
        words = describe_method(known_method(name))
        out.print(f"[bold]{words.name}[/]  {words.title}\n\n{escape(words.text)}\n", soft_wrap=True)
        out.print(f"Fields: {escape(fields_line(words.fields))}")
    else:
        for key in METHODS:
            out.print(method_card(asdict(describe_method(key))))
            out.print()
    out.print(f"Of all methods: {fields_line(training_fields())}")


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


def _complain(error: Exception) -> None:
    err.print(f"[red]Error:[/] {escape(str(error))}", soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a mistake of the user's ends in one line and status 2."""
    try:
        status = app(args=arguments, standalone_mode=False)
    except KeyboardInterrupt:
        status = 130
    except (ValueError, OSError, MemoryError, FloatingPointError) as error:
        _complain(error)
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
