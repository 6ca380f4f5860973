"""evengraph report: tables and figures of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evengraph.cli.console import err, print_notes, print_written
from evengraph.cli.invocation import typed_command


def report(
    store: Annotated[Path, typer.Argument(help="SQLite file written by reproduce.")],
    to: Annotated[Path, typer.Option("--out", help="Folder for tables and figures.")] = Path(
        "report"
    ),
) -> None:
    """Write tables (Markdown, LaTeX, CSV), figures (SVG, PNG) and a web page from a store."""
    from evengraph.core.store import Store
    from evengraph.report.store.files import write_report

    if not store.is_file():
        raise ValueError(f"There is no store {store}.")
    opened = Store(store)
    with err.status("drawing"):
        paths = write_report(opened, to, {"command": typed_command()})
    print_written(*paths)
    print_notes(opened.damage, err)
