"""evengraph results: list or export the runs of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from evengraph.cli.completion import complete_data_set, complete_method
from evengraph.cli.console import err, out, print_failure, print_notes


def results(
    store: Annotated[Path, typer.Argument(help="SQLite file written by reproduce.")],
    dataset: Annotated[
        str | None, typer.Option(help="Only this graph.", autocompletion=complete_data_set)
    ] = None,
    imbalance: Annotated[str | None, typer.Option(help="Only this split protocol.")] = None,
    method: Annotated[
        str | None, typer.Option(help="Only this method.", autocompletion=complete_method)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Only this seed.")] = None,
    status: Annotated[str | None, typer.Option(help="done or failed.")] = None,
    to: Annotated[
        Path | None,
        typer.Option("--export", help="Write runs to a .csv, .json or .parquet file."),
    ] = None,
) -> None:
    """List the runs in a store, or export them."""
    from evengraph.core.store import Store
    from evengraph.report.terminal.experiment import RUN_VALUES, averaged_settings, runs_table

    if not store.is_file():
        raise ValueError(f"There is no store {store}.")
    opened = Store(store)
    filters: dict[str, Any] = {
        "dataset": dataset,
        "imbalance": imbalance,
        "method": method,
        "seed": seed,
    }
    if not opened.count():
        raise ValueError(f"The store {store} holds no runs.")
    if to is not None:
        from evengraph.report.store.files import export_runs

        count = export_runs(opened.rows(status=status, **filters), to)
        out.print(f"wrote {escape(str(to))}: {count} runs", soft_wrap=True)
    elif groups := opened.groups(RUN_VALUES, status=status, **filters):
        out.print(runs_table(groups))
        print_notes(averaged_settings(groups))
        if status != "done":
            for row in opened.scan(**filters | {"status": "failed"}):
                print_failure(row, row.job.method, out)
    else:
        out.print(f"None of the {opened.count():,} runs match.")
    print_notes(opened.damage, err)
