"""The application: all commands, and `main`, which runs them."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Annotated

import typer
from rich.markup import escape

from evengraph import __version__
from evengraph.cli.compare import compare
from evengraph.cli.console import (
    Command,
    Group,
    err,
    launched_ranks,
    out,
    print_error,
    remember,
    speaks_for_all,
)
from evengraph.cli.data import data_app
from evengraph.cli.explain import explain
from evengraph.cli.export import export
from evengraph.cli.inspect import inspect
from evengraph.cli.methods import methods
from evengraph.cli.monitor import monitor
from evengraph.cli.predict import predict
from evengraph.cli.run import run

GARBAGE = 100_000  # new objects between collections, of which imports otherwise cause hundreds


@contextmanager
def sigterm_interrupts() -> Iterator[list[int]]:
    """Turn SIGTERM into an interrupt; the list is not empty once one has come."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received  # signals reach the main thread only
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if callable(signal.getsignal(signal.SIGINT)):  # may be deferred for a moment
            signal.raise_signal(signal.SIGINT)
        else:  # shells let background commands ignore it
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


FORMER = {"--methods": "--method", "--imbalance": "--split", "--seeds": "--splits"}
GONE = {"--data-root": "now the variable EVENGRAPH_DATA"}
OF_EXPLAIN = {"--data": "--known", "--edges": "--known-edges"}


def current_words(arguments: Sequence[str]) -> list[str]:
    """The words of a command line with former options replaced or left out, and a hint for each."""
    explains = next(iter(arguments), "") == "explain"
    former = FORMER | OF_EXPLAIN if explains else FORMER
    gone = GONE | {"--label": "not needed: labels come from the model"} if explains else GONE
    words, rest = list[str](), iter(arguments)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in former or name in gone:
            now = former.get(name) or gone[name]
            err.print(f"Hint: {name} is {'now ' * (name in former)}{now}.", soft_wrap=True)
            value = value if equals else next(rest, "")
            if name == "--data-root":
                os.environ["EVENGRAPH_DATA"] = value
            elif name in former:  # a seed is now a split of that number, not how many
                one = name == "--seeds" and value.isdigit()
                words += [former[name], f"{value}-{value}" if one else value]
        else:
            words.append(word)
    return words


app = typer.Typer(
    cls=Group, no_args_is_help=True, help="Node classification with imbalanced classes."
)
# Commands of a wing are named by their module: the main house does not import it.
COMMANDS: dict[str, Callable[..., None] | str] = {
    "inspect": inspect,
    "run": run,
    "compare": compare,
    "predict": predict,
    "explain": explain,
    "monitor": monitor,
    "suggest": "evengraph.desk.commands",
    "desk": "evengraph.desk.commands",
    "serve": "evengraph.desk.commands",
    "export": export,
    "pack": "evengraph.disk.commands",
    "reproduce": "evengraph.lab.commands",
    "results": "evengraph.lab.commands",
    "report": "evengraph.lab.commands",
    "methods": methods,
}
for name, place in COMMANDS.items():
    command = getattr(import_module(place), name) if isinstance(place, str) else place
    app.command(cls=Command)(command)
app.add_typer(data_app, name="data")


@app.callback(invoke_without_command=True)
def _print_version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        out.print(f"evengraph {__version__}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; an input error prints one line and exits with status 2."""
    gc.set_threshold(GARBAGE)
    arguments = current_words(sys.argv[1:] if arguments is None else arguments)
    remember(arguments)
    # PyG calls it when it is imported; there is nothing that a user could change
    warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated")
    with sigterm_interrupts() as terminated:
        status = _status(arguments)
    if status == 130:
        err.print("Terminated." if terminated else "Interrupted.")
        status = 143 if terminated else 130
    sys.exit(status)


def _status(arguments: Sequence[str]) -> int:
    """Run the command line; returns its exit status."""
    try:
        with launched_ranks(arguments):
            status = app(args=arguments, prog_name="evengraph", standalone_mode=False)
    except KeyboardInterrupt:
        status = 130
    except (ValueError, OSError, MemoryError, FloatingPointError) as error:
        if speaks_for_all(error):
            print_error(error)
        status = getattr(error, "exit_status", 2)
    except Exception as error:
        # usage errors, whose common class depends on the version of typer
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        text = escape(message().rstrip(".") + ".").replace("?.", "?")
        if text != "." and speaks_for_all(error):  # without a command: the help was shown
            name = getattr(getattr(error, "ctx", None), "info_name", None)
            name = f" {name}" if name in {"data", *COMMANDS} else ""
            err.print(f"[red]Error:[/] {text} See: evengraph{name} --help", soft_wrap=True)
        status = 2
    return status if isinstance(status, int) else 0
