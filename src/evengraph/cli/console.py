"""Consoles: results go to standard output, everything else to standard error."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from evengraph.cli.options import FLAGS
from evengraph.core.errors import ArgumentError
from evengraph.core.terminal import make_console

if TYPE_CHECKING:
    from evengraph.core.store import Row

out: Console = make_console(highlight=False, emoji=False)
err: Console = make_console(stderr=True, highlight=False, emoji=False)


def print_sentence(markup: str, console: Console = out) -> None:
    """Print a sentence: on a terminal broken between words, in a file as one line."""
    console.print(markup, soft_wrap=not console.is_terminal)


def print_notes(notes: Iterable[str], console: Console = out) -> None:
    """Print sentences of less importance, one per line."""
    for note in notes:
        print_sentence(f"[dim]{escape(note)}[/]", console)


def print_written(*paths: Path, console: Console = out) -> None:
    """Print the paths of files that were written."""
    for path in paths:
        console.print(f"wrote {escape(str(path))}", soft_wrap=True)


def print_error(error: Exception, prefix: str = "") -> None:
    """Print an error in one line, with the option that fixes it."""
    hint = ""
    if isinstance(error, ArgumentError):
        flag = FLAGS.get(error.argument, f"--{error.argument}")
        hint = f" Option: {flag} {shlex.quote(error.value) if error.value else ''}"
    text = prefix + _message(error) + hint.rstrip()
    print_sentence(f"[red]Error:[/] {escape(text)}", err)


def _message(error: Exception) -> str:
    """The error in one line; Python leaves some empty, and some without a file."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}.".replace("\n", "\\n")
    if isinstance(error, MemoryError) and not str(error):
        return "Out of memory."
    # a path may hold a newline
    return str(error).strip().replace("\n", "\\n") or f"{type(error).__name__}."


def print_failure(row: Row, method: str, console: Console) -> None:
    """Print why a run failed."""
    where = f"{method} on {row.job.dataset}, seed {row.job.seed}"
    console.print(f"[red]failed:[/] {escape(f'{where}: {row.reason}')}", soft_wrap=True)
