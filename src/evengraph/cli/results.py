"""evengraph results: list or export the runs of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from evengraph.cli.console import out


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
