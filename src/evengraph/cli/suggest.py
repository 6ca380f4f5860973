"""evengraph suggest: which nodes to label next, and what more labels would bring."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from evengraph.cli.completion import complete_data
from evengraph.cli.console import err, out, print_notes, print_sentence, print_written
from evengraph.cli.options import Columns, DataRoot, column_options

if TYPE_CHECKING:
    from evengraph.labelling import LearningCurve, Pool, Suggestions


@column_options()
def suggest(
    data: Annotated[
        str,
        typer.Argument(
            help="A model folder that evengraph run --save wrote, or DATA as in run, with some "
            "nodes unlabelled.",
            metavar="MODEL_OR_DATA",
            autocompletion=complete_data,
        ),
    ],
    columns: Columns,
    budget: Annotated[int, typer.Option(help="How many nodes to suggest.")] = 20,
    strategy: Annotated[
        str,
        typer.Option(
            help="default, random, uncertainty, disagreement, reach, density, coverage, "
            "representative, rare or novelty."
        ),
    ] = "default",
    classes: Annotated[
        str | None, typer.Option(help="Classes that nobody has labelled yet, such as a,b.")
    ] = None,
    known: Annotated[
        str | None,
        typer.Option(help="For a model: its tables, if they have moved."),
    ] = None,
    labelled: Annotated[
        float | None,
        typer.Option(help="To try it out: use only this share of the labels of every class."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    curve: Annotated[bool, typer.Option(help="Estimate what more labels would bring.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    data_root: DataRoot = None,
    to: Annotated[Path | None, typer.Option("--out", help="CSV file to write to.")] = None,
) -> None:
    """Suggest which nodes to label next, with reasons, and what more labels would bring."""
    from evengraph.cli.files import check_folder
    from evengraph.labelling import learning_curve, suggest

    if to is not None:
        if to.suffix.lower() != ".csv":
            raise ValueError(f"--out takes a name that ends in .csv, got {to}.")
        check_folder(to.parent)
    names = [name.strip() for name in (classes or "").split(",") if name.strip()]
    pool = _open(data, data_root, columns, known, names)
    if labelled is not None:
        pool = _hidden(pool, labelled, seed)
    with err.status("choosing"):
        found = suggest(pool, budget, strategy, seed=seed)
        expected = learning_curve(pool, seed=seed) if curve else None
    if to is not None:
        _write(found, to)
    if json:
        content = found.as_dict() | {"curve": None if expected is None else expected.as_dict()}
        out.print(dumps(content, indent=1), soft_wrap=True, markup=False)
    else:
        _show(found)
        if curve:
            _show_curve(expected)
    if to is not None:
        print_written(to, console=err if json else out)


def _open(
    data: str, root: Path | None, columns: Columns, known: str | None, classes: list[str]
) -> Pool:
    """Open a model, a data set or tables, and print the notes."""
    from evengraph.cli.opening import split_lists
    from evengraph.datasets import DATASETS, load
    from evengraph.labelling import Pool

    arguments = split_lists(columns)
    with err.status(f"reading {escape(data)}"):
        if data in DATASETS and not columns:
            return Pool.open(load(data, root=root), classes=classes)
        return Pool.open(data, known=known, classes=classes, **arguments)


def _hidden(pool: Pool, share: float, seed: int) -> Pool:
    """The pool with the labels of a share of every class."""
    from dataclasses import replace

    import torch

    from evengraph.core.masks import hold_out

    if not 0 < share < 1:
        raise ValueError(f"labelled must lie between 0 and 1, got {share}.")
    seen = hold_out(pool.labels, pool.labels >= 0, share, seed)
    return replace(pool, labels=torch.where(seen, pool.labels, -1))


def _show(found: Suggestions) -> None:
    """Print the nodes and the reasons."""
    from evengraph.report.terminal.table import plain_table

    labels = ", ".join(f"{name} {count:,}" for name, count in found.labelled.items() if count)
    print_sentence(
        f"[bold]Label these {len(found.nodes)} next[/], of {found.unlabelled:,} without a label. "
        f"[dim]Labels so far: {escape(labels) or 'none'}.[/]"
    )
    print_notes(found.notes)
    table = plain_table(["", "id", "why"])
    for rank, node in enumerate(found.nodes, start=1):
        table.add_row(str(rank), escape(str(node.id)), escape(node.reason))
    out.print()
    out.print(table)


def _show_curve(curve: LearningCurve | None) -> None:
    """Print what more labels would bring."""
    from evengraph.labelling.learning_curve import TOO_FEW_LABELS
    from evengraph.report.terminal.table import plain_table

    out.print()
    if curve is None:
        print_notes([f"{TOO_FEW_LABELS} Label what is listed and ask again."])
        return
    table = plain_table(["labels"], ["balanced accuracy", "80% of cases", "more than now"])
    for point in (curve.now, *curve.expected):
        more = point.labels - curve.now.labels
        table.add_row(
            f"{point.labels:,}" + (f" (+{more})" if more else " (now)"),
            f"{point.score:.0f}%",
            f"{point.low:.0f} to {point.high:.0f}",
            f"{point.gain:+.1f}" if more else "",
        )
    out.print(table)
    print_sentence(f"[bold]{escape(curve.advice)}[/]")
    print_notes(curve.unknown)


def _write(found: Suggestions, path: Path) -> None:
    """Write the nodes as CSV, completely or not at all."""
    from dataclasses import asdict

    from evengraph.core.files import csv_text, write_atomic

    rows = [asdict(node) for node in found.nodes]
    for row in rows:
        row["score"] = f"{row['score']:.6g}"
        if row["probability"] is not None:
            row["probability"] = f"{row['probability']:.6f}"
    write_atomic(csv_text(rows).encode(), path)
