"""Where the command line writes: answers to standard output, everything else beside it."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

out = Console(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)


def complain(error: Exception, about: str = "") -> None:
    """Say in one line what is wrong."""
    err.print(f"[red]Error:[/] {escape(about + str(error))}", soft_wrap=True)
