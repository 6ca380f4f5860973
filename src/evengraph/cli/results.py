"""evengraph results: list or export the runs of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from evengraph.cli.completion import complete_data_set, complete_method
from evengraph.cli.console import out, print_failure


def results(
    store: Annotated[Path, typer.Argument(help="File of a store.")],
    dataset: Annotated[
        str | None, typer.Option(help="Only this graph.", autocompletion=complete_data_set)
    ] = None,
    imbalance: Annotated[str | None, typer.Option(help="Only this protocol.")] = None,
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
    """List the runs of a store, or export them."""
    from evengraph.core.store import Store
    from evengraph.report.store.files import export_runs
    from evengraph.report.terminal.experiment import runs_table

    if not store.is_file():
        raise ValueError(f"There is no store {store}.")
    filters = {"dataset": dataset, "imbalance": imbalance, "method": method, "status": status}
    rows = Store(store).rows(seed=seed, **filters)
    if not rows and not Store(store).rows():
        raise ValueError(f"The store {store} holds no runs.")
    if to is not None:
        export_runs(rows, to)
        out.print(f"wrote {escape(str(to))}: {len(rows)} runs", soft_wrap=True)
    elif rows:
        out.print(runs_table(rows))
        for row in rows:
            if not row.done:
                print_failure(row, row.job.method, out)
    else:
        out.print(f"None of the {len(Store(store).rows()):,} runs match.")
