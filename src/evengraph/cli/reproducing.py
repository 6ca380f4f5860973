"""Experiments on the command line: a display while they run, tables at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean, pstdev
from time import perf_counter
from typing import Any

import typer
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from evengraph.cli.console import err, out
from evengraph.core.files import csv_text, write_atomic
from evengraph.core.store import Row, Store
from evengraph.experiment.executor import Executor
from evengraph.experiment.paper import paper_cell, published_cell
from evengraph.experiment.plan import Cell, Plan
from evengraph.experiment.reproduce import check, reproduce
from evengraph.experiment.spec import EXPERIMENTS, Spec, read_spec
from evengraph.experiment.stored import OnRow, run_stored
from evengraph.experiment.tsne import embed_nodes
from evengraph.methods import METHODS
from evengraph.metrics import HEADLINE

TELL_EVERY = 15.0  # seconds between two lines where there is no terminal


def read_specs(names: Sequence[str], *, quick: bool, **narrow: Any) -> list[Spec]:
    """The experiments asked for, narrowed."""
    every = [part for name in names for part in (EXPERIMENTS if name == "all" else (name,))]
    specs = [read_spec(name, quick=quick) for name in dict.fromkeys(every)]
    return [spec.narrowed(**narrow) for spec in specs]


def run_experiments(
    specs: Sequence[Spec], path: Path, executor: Executor, *, root: Path | None, retry: bool
) -> None:
    """Run what is missing, with a display, then show the results."""
    with err.status("loading graphs"):
        check(specs, root)
    store = Store(path)
    if retry and (again := store.forget("failed")):
        err.print(f"{again} failed runs are tried again.")
    names = escape(", ".join(spec.name for spec in specs))
    out.print(f"[bold]{names}[/], rows go to {escape(str(path))}", soft_wrap=True)
    failed: list[Row] = []
    stopped = False
    try:
        with _display(store, failed) as (on_row, on_round):
            run_jobs = partial(run_stored, store=path, executor=executor, root=root)
            embed = partial(embed_nodes, device=executor.device, root=root)
            reproduce(specs, store, run_jobs, on_row=on_row, on_round=on_round, embed=embed)
    except KeyboardInterrupt:
        stopped = True
    rows = store.rows()
    for spec in specs:
        cells = Plan(spec, rows).cells()
        out.print()
        out.print(cells_table(spec, cells))
        for line in choices(cells):
            out.print(f"[dim]{escape(line)}[/]", soft_wrap=True)
    for row in failed[:10]:
        job = row.job
        where = f"{METHODS[job.method].title} on {job.dataset}, seed {job.seed}"
        err.print(f"[red]failed:[/] {escape(where)}: {escape(row.reason)}", soft_wrap=True)
    if len(failed) > 10:
        more = f"and {len(failed) - 10} more; see: evengraph results {path}"
        err.print(escape(more), soft_wrap=True)
    if stopped:
        err.print("Interrupted: finished runs are stored; the same command resumes.")
        raise typer.Exit(130)
    if failed:
        raise typer.Exit(1)


@contextmanager
def _display(store: Store, failed: list[Row]) -> Iterator[tuple[OnRow, Any]]:
    """Runs done, running and failed, the time left, and the best so far."""
    best: dict[str, tuple[float, str]] = {}
    columns = (
        TextColumn("runs"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[running]} running"),
        TextColumn("[red]{task.fields[failed]}[/] failed"),
        TimeElapsedColumn(),
        TextColumn("[dim]left"),
        TimeRemainingColumn(),
        TextColumn("[green]{task.fields[best]}"),
    )
    told = perf_counter()
    with Progress(*columns, console=err, transient=True, refresh_per_second=4) as progress:
        bar = progress.add_task("runs", total=None, running=0, failed=0, best="")

        def on_round(missing: int) -> None:
            done = progress.tasks[0].completed
            progress.update(bar, total=done + missing)

        def on_row(row: Row) -> None:
            nonlocal told
            line = _line(row, best)
            if not row.done:
                failed.append(row)
            progress.update(
                bar, advance=1, running=store.running(), failed=len(failed), best=escape(line)
            )
            if not err.is_terminal and perf_counter() - told > TELL_EVERY:
                told, task = perf_counter(), progress.tasks[0]
                err.print(
                    f"{task.completed:.0f} of {task.total:.0f} runs, {len(failed)} failed; {line}"
                )

        yield on_row, on_round


def _line(row: Row, best: dict[str, tuple[float, str]]) -> str:
    """The best run so far of the set-up of the row."""
    job = row.job
    varied = (job.imbalance_fields.get(name) for name in ("minority", "ratio"))
    name = " ".join([job.dataset, job.imbalance, *(str(v) for v in varied if v is not None)])
    if row.done:
        score = float(row.outcome["validation"])
        best[name] = max(best.get(name, (-1.0, "")), (score, METHODS[job.method].title))
    if name not in best:
        return ""
    score, title = best[name]
    return f"best on {name}: {title} {score:.1f} val F1"


def cells_table(spec: Spec, cells: Sequence[Cell]) -> Table:
    """Mean (deviation) over seeds of every cell, ours beside the paper's."""
    table = Table(title=spec.title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("method", no_wrap=True)
    for name in ("seeds", "bAcc", "paper", "F1", "G-mean"):
        table.add_column(name, justify="right", no_wrap=True)
    by_setup: dict[str, list[Cell]] = {}
    for cell in cells:
        by_setup.setdefault(cell.setup.name, []).append(cell)
    for name, own in by_setup.items():
        table.add_row(f"[bold]{name}[/]")
        top = max(_mean(cell, HEADLINE[0]) for cell in own)
        for cell in own:
            first, *rest = (_figure(cell, metric) for metric in HEADLINE)
            first = f"[bold]{first}[/]" if _mean(cell, HEADLINE[0]) == top else first
            seeds = str(len(cell.rows))
            table.add_row(f"  {escape(_label(cell))}", seeds, first, _paper(spec, cell), *rest)
    return table


def choices(cells: Sequence[Cell]) -> list[str]:
    """A line for each choice that validation made."""
    return [
        f"{cell.setup.name}: {cell.entry.label} with {_settings(cell)}"
        for cell in cells
        if cell.entry.grid or cell.entry.search
    ]


def _label(cell: Cell) -> str:
    return cell.entry.label if cell.value is None else f"{cell.entry.label} = {cell.value}"


def _settings(cell: Cell) -> str:
    """What was chosen, where there was a choice."""
    names = cell.entry.grid or cell.entry.search
    return ", ".join(f"{name}={cell.settings[name]}" for name in names if name != "trials")


def _mean(cell: Cell, metric: str) -> float:
    return fmean(row.outcome["metrics"][metric] for row in cell.rows)


def _figure(cell: Cell, metric: str) -> str:
    values = [row.outcome["metrics"][metric] for row in cell.rows]
    if len(values) == 1:  # which has no deviation
        return f"{values[0]:.1f}"
    return f"{fmean(values):.1f} ({pstdev(values):.1f})"


def _paper(spec: Spec, cell: Cell) -> str:
    """The cell of the paper, or of another, where this is a method of its tables."""
    if spec.draws != "comparison":
        return ""
    setup = cell.setup
    where = setup.dataset, setup.imbalance, setup.fields
    found = paper_cell(*where, cell.entry.method) or published_cell(*where, cell.entry.label)
    return f"{found[HEADLINE[0]]['mean']:.1f}" if found else ""


def list_rows(rows: Sequence[Row]) -> Table:
    """Rows summed up: one line for a set-up and a method with its settings that differ."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("graph", "imbalance", "method"):
        table.add_column(name, no_wrap=True)
    for name in ("runs", "failed", "bAcc", "F1", "G-mean", "val F1", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        job = row.job
        varied = (job.imbalance_fields.get(name) for name in ("minority", "ratio"))
        protocol = " ".join([job.imbalance, *(str(v) for v in varied if v is not None)])
        groups.setdefault((job.dataset, protocol, job.method), []).append(row)
    for names, group in groups.items():
        done = [row for row in group if row.done]
        figures = [[row.outcome["metrics"][m] for row in done] for m in HEADLINE]
        figures += [[row.outcome[m] for row in done] for m in ("validation", "seconds")]
        table.add_row(
            *names,
            str(len(group)),
            str(len(group) - len(done)),
            *(f"{fmean(values):.1f}" if values else "" for values in figures),
        )
    return table


def export(rows: Sequence[Row], path: Path) -> None:
    """Write rows as CSV, JSON or Parquet, by the end of the file's name; whole or not at all."""
    flat = [row.flat() for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    if path.suffix == ".csv":
        write_atomic(csv_text(flat, names).encode(), path)
    elif path.suffix == ".json":
        whole = [row.flat() | {"outcome": row.outcome} for row in rows]
        write_atomic((json.dumps(whole, indent=1) + "\n").encode(), path)
    elif path.suffix == ".parquet":
        try:
            import pandas

            content = pandas.DataFrame(flat, columns=names).to_parquet(index=False)
        except ImportError:
            message = "Parquet wants pandas and pyarrow; try: pip install 'evengraph[parquet]'."
            raise ValueError(message) from None
        write_atomic(content, path)
    else:
        raise ValueError(f"--export takes a name that ends in .csv, .json or .parquet, got {path}.")


def write_report(store: Store, folder: Path) -> list[Path]:
    """Every table and figure of a store."""
    from evengraph.report.store.experiment_results import load_experiments
    from evengraph.report.store.figures import figures, save
    from evengraph.report.store.overview import write_overview
    from evengraph.report.store.tables import latex, markdown, table_csv

    experiments = [results for results in load_experiments(store) if results.cells]
    if not experiments:
        raise ValueError(f"{store.path} holds no finished experiment; see: evengraph reproduce.")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for results in experiments:
        pictures = []
        for name, figure in figures(results):
            written += save(figure, folder / name)
            pictures.append(name)
        for kind, text in (("md", markdown(results, pictures)), ("tex", latex(results))):
            write_atomic(text.encode(), folder / f"{results.name}.{kind}")
            written.append(folder / f"{results.name}.{kind}")
    write_atomic(table_csv(experiments).encode(), folder / "tables.csv")
    write_overview(experiments, folder / "index.html")
    return [*written, folder / "tables.csv", folder / "index.html"]
