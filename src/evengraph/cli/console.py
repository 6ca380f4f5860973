"""Where the command line writes: answers to standard output, everything else beside it."""

from __future__ import annotations

import shlex

from rich.console import Console
from rich.markup import escape

from evengraph.core.errors import ArgumentError

out = Console(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)


def complain(error: Exception, about: str = "") -> None:
    """Say in one line what is wrong."""
    hint = ""
    if isinstance(error, ArgumentError):
        hint = f" Option: --{error.argument} {shlex.quote(error.value) if error.value else ''}"
    err.print(f"[red]Error:[/] {escape(about + str(error) + hint.rstrip())}", soft_wrap=True)
