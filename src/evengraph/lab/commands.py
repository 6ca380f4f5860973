"""evengraph reproduce, results and report: experiments, their stored runs and their pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from evengraph.cli.console import err, out, print_notes, print_written, typed_command
from evengraph.cli.options import Device

if TYPE_CHECKING:
    from rich.console import Console

    from evengraph.lab.results import ExperimentResults
    from evengraph.lab.spec import Spec
    from evengraph.lab.store import Claimant, Holder, Row, Store
    from evengraph.pipeline.executor import Executor


LINE_EVERY = 15.0  # seconds, without a terminal
SEVERAL_SETTINGS = (
    "Runs of several settings have no mean here: it would count settings that were tried and not "
    "selected. evengraph reproduce and evengraph report show the selected one, --export every run."
)


def reproduce(
    what: Annotated[
        list[str],
        typer.Argument(
            help="table1, table2, table3, figure2 or all; beyond the paper: newer, publicstep, "
            "publicraw, unreal, natural, readings, budget, control, machines, starts, successor, "
            "parts, portfolio, ties, heavyraw or heavyscaled; or a TOML file.",
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a small part: minutes instead of hours.")
    ] = False,
    seeds: Annotated[
        str | None, typer.Option("--splits", help="How many, or which, such as 5,6,7 or 5-24.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option("--method", help="Only these, such as gcn,unignn."),
    ] = None,
    setups: Annotated[
        str | None,
        typer.Option(help="Only settings whose names contain these, such as cora-step-3."),
    ] = None,
    store: Annotated[Path, typer.Option(help="SQLite file to store every run in.")] = Path(
        "runs/reproduce.sqlite"
    ),
    device: Device = "auto",
    jobs: Annotated[
        int | None, typer.Option(help="Number of worker processes. Default: one per core.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run failed runs again.")] = False,
    release: Annotated[
        bool, typer.Option("--release", help="Take over runs claimed by a process that has died.")
    ] = False,
) -> None:
    """Run the paper's tables and figures, or your own experiments; resumes if interrupted."""
    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}.")
    from evengraph.cli.options import parse_methods
    from evengraph.core.machine import pick_device
    from evengraph.core.threads import usable_cores
    from evengraph.lab.sources import expand
    from evengraph.lab.spec import read_spec
    from evengraph.pipeline.executor import Executor
    from evengraph.pipeline.parameters import parse_splits

    specs = [
        read_spec(name, quick=quick).narrowed(
            seeds=parse_splits(seeds, 5) if seeds else (),
            methods=parse_methods(methods) if methods else (),
            setups=[part.strip() for part in setups.split(",")] if setups else (),
        )
        for name in expand(what)
    ]
    workers = jobs or usable_cores()
    executor = Executor(device=str(pick_device(device)), workers=workers, batch=True)
    _run_experiments(specs, store, executor, retry=retry, release=release)


def _print_names(names: Iterable[str], path: Path) -> None:
    names = escape(", ".join(names))
    out.print(f"[bold]{names}[/], rows go to {escape(str(path))}", soft_wrap=True)


def _print_tables(experiments: Iterable[ExperimentResults]) -> None:
    from evengraph.lab.pages import experiment_table, selected_params

    for results in experiments:
        out.print()
        out.print(experiment_table(results))
        print_notes(selected_params(results))


def _run_experiments(
    specs: Sequence[Spec],
    path: Path,
    executor: Executor,
    *,
    retry: bool,
    release: bool,
) -> None:
    from evengraph.lab.reproduce import check, reproduce, run_stored
    from evengraph.lab.results import load_experiments
    from evengraph.lab.store import Store
    from evengraph.methods import METHODS

    with err.status("loading graphs"):
        check(specs)
    store = Store(path)
    if retry and (again := store.forget("failed")):
        err.print(f"{again} failed runs are tried again.")
    if release:
        err.print(f"{store.release(all_processes=True)} runs of other processes are released.")
    _print_names((spec.name for spec in specs), path)
    stopped = False
    try:
        with _Display() as display:
            reproduce(
                specs,
                store,
                partial(run_stored, store=path, executor=executor),
                on_row=display.on_row,
                on_round=display.on_round,
                on_wait=partial(_print_holders, told=set()),
            )
    except KeyboardInterrupt:
        stopped = True
    loaded = load_experiments(store, {spec.name for spec in specs}, parts=("metrics",))
    experiments = {results.name: results for results in loaded}
    _print_tables(experiments[spec.name] for spec in specs)
    print_notes(store.damage, err)
    failed = display.failed
    for row in failed[:10]:
        _print_failure(row, METHODS[row.job.method].title, err)
    if len(failed) > 10:
        more = f"and {len(failed) - 10} more; see: evengraph results {path}"
        err.print(escape(more), soft_wrap=True)
    if stopped:
        err.print("Interrupted: finished runs are stored; the same command resumes.")
        raise typer.Exit(130)
    if failed:
        raise typer.Exit(1)


def _print_failure(row: Row, method: str, console: Console) -> None:
    where = f"{method} on {row.job.dataset}, seed {row.job.seed}"
    console.print(f"[red]failed:[/] {escape(f'{where}: {row.reason}')}", soft_wrap=True)


def _print_holders(holders: Sequence[Holder], told: set[Claimant]) -> None:
    for claimant, seen, jobs in holders:
        if claimant in told:
            continue
        told.add(claimant)
        runs = "a run" if jobs == 1 else f"{jobs} runs"
        when = datetime.fromtimestamp(seen).strftime("%Y-%m-%d %H:%M")
        line = f"Waiting for {runs} of process {claimant.process} on {claimant.host}, since {when}."
        err.print(escape(f"{line} If it is dead, stop and add --release."), soft_wrap=True)


class _Display(ExitStack):
    """Counts the runs of each round: by a bar on a terminal, elsewhere by a line at times."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: list[Row] = []
        self.done, self.total, self.printed = 0, 0, perf_counter()
        self.count: Callable[[], None] = lambda: None

    def on_round(self, missing: int) -> None:
        from evengraph.training.loop import count_bar

        self.close()
        self.total = self.done + missing
        self.count = self.enter_context(count_bar("runs", missing))

    def on_row(self, row: Row) -> None:
        self.failed += [] if row.done else [row]
        self.done += 1
        self.count()
        if not err.is_terminal and perf_counter() - self.printed > LINE_EVERY:
            self.printed = perf_counter()
            err.print(f"{self.done} of {self.total} runs, {len(self.failed)} failed")


def _open(path: Path) -> Store:
    from evengraph.lab.store import Store

    if not path.is_file():
        raise ValueError(f"There is no store {path}.")
    return Store(path)


def results(
    store: Annotated[Path, typer.Argument(help="SQLite file written by reproduce.")],
    dataset: Annotated[str | None, typer.Option(help="Only this graph.")] = None,
    imbalance: Annotated[
        str | None, typer.Option("--split", help="Only this split protocol.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="Only this method.")] = None,
    seed: Annotated[int | None, typer.Option(help="Only this seed.")] = None,
    status: Annotated[str | None, typer.Option(help="done or failed.")] = None,
    to: Annotated[
        Path | None, typer.Option("--export", help="Write runs to a .csv, .json or .parquet file.")
    ] = None,
) -> None:
    """List the runs in a store, or export them."""
    from evengraph.lab.pages import export_runs, group_runs, runs_table

    opened = _open(store)
    filters: Any = {"dataset": dataset, "imbalance": imbalance, "method": method, "seed": seed}
    filters["status"] = status
    if not opened.count():
        raise ValueError(f"The store {store} holds no runs.")
    if to is not None:
        count = export_runs(opened.rows(**filters), to)
        out.print(f"wrote {escape(str(to))}: {count} runs", soft_wrap=True)
    elif groups := group_runs(opened.scan(**filters)):
        out.print(runs_table(groups))
        if any(len(group.tried) > 1 for group in groups.values()):
            print_notes([SEVERAL_SETTINGS])
        if status != "done":
            for row in opened.scan(**filters | {"status": "failed"}):
                _print_failure(row, row.job.method, out)
    else:
        out.print(f"None of the {opened.count():,} runs match.")
    print_notes(opened.damage, err)


def report(
    store: Annotated[Path, typer.Argument(help="SQLite file written by reproduce.")],
    to: Annotated[Path, typer.Option("--out", help="Folder for the page and the CSV file.")] = Path(
        "report"
    ),
) -> None:
    """Write a web page with plots and tables, and a CSV file, from a store."""
    from evengraph.lab.pages import write_report

    opened = _open(store)
    with err.status("drawing"):
        paths = write_report(opened, to, {"command": typed_command()})
    print_written(*paths)
    print_notes(opened.damage, err)
