"""evengraph run: train and test a method."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from evengraph.cli.console import out
from evengraph.cli.options import Columns, Data, DataRoot, Device, Settings, column_options

if TYPE_CHECKING:
    from evengraph.core.records import Record
    from evengraph.core.task import Task
    from evengraph.methods import Method
    from evengraph.pipeline.graph_source import GraphSource


@column_options()
def run(
    data: Data,
    columns: Columns,
    method: Annotated[
        str | None,
        typer.Option(
            help="One, several such as gcn,lte4g to compare, or all; see: evengraph methods."
        ),
    ] = None,
    imbalance: Annotated[
        str | None,
        typer.Option(
            help="Split protocol: step, longtail, natural, publicstep, folds, given or bytime; by "
            "default step, for your own files what their columns allow."
        ),
    ] = None,
    minority: Annotated[int | None, typer.Option(help="Number of minority classes.")] = None,
    ratio: Annotated[float | None, typer.Option(help="Smallest class over largest.")] = None,
    train: Annotated[float | None, typer.Option(help="Share to train on (natural).")] = None,
    val: Annotated[float | None, typer.Option(help="Share to validate on (natural).")] = None,
    seeds: Annotated[str, typer.Option(help="Such as 5,6,7 or 5-24.")] = "5,6,7",
    settings: Settings = None,
    preset: Annotated[
        bool,
        typer.Option(help="Use parameters selected or published for the setting, if any."),
    ] = True,
    device: Device = "auto",
    data_root: DataRoot = None,
    to: Annotated[
        Path | None, typer.Option("--out", help="Folder for result.json and report.html.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Folder for the model, for predict and explain.")
    ] = None,
) -> None:
    """Train and test one or several methods, once per seed, and report."""
    from evengraph.cli.arguments import parse_methods
    from evengraph.cli.files import check_folder
    from evengraph.cli.running import folder_name, plan_runs, run_plans
    from evengraph.core.devices import pick_device
    from evengraph.experiment.parsing import parse_seeds
    from evengraph.methods import DEFAULT_METHOD
    from evengraph.methods.bases.model_folder import check_model_folder

    names = parse_methods(method or DEFAULT_METHOD)
    if save is not None:
        if len(names) > 1:
            raise ValueError("--save saves one model; name one --method.")
        check_model_folder(save)
        check_folder(save.parent)
    options = {"minority": minority, "ratio": ratio, "train": train, "val": val}
    source, plans = plan_runs(
        data,
        data_root,
        columns,
        names,
        settings or [],
        imbalance=imbalance,
        options={name: value for name, value in options.items() if value is not None},
        seeds=parse_seeds(seeds),
        preset=preset,
    )
    words = [*(settings or []), *([] if preset else ["no-preset"]), f"seeds={seeds}"]
    folder = to or Path("runs") / folder_name(plans, words)
    save_model = None if save is None else partial(_save_model, folder=save, source=source)
    run_plans(plans, pick_device(device), folder, save_model)


def _save_model(
    method: Method, task: Task, record: Record, *, folder: Path, source: GraphSource
) -> None:
    """Save the best model of a run for predict and explain."""
    from evengraph.methods.bases.model_folder import MAIN
    from evengraph.pipeline.table_model import TableModel

    replaced = (folder / MAIN).exists()
    TableModel.from_fitted(method, task, source).save(folder)
    out.print(
        f"{'replaced the model in' if replaced else 'wrote'} {escape(str(folder))}: the model of "
        f"seed {record.seed}, the best on validation; balanced accuracy "
        f"{record.metrics['balanced_accuracy']:.1f} on its test nodes; see: evengraph predict",
        soft_wrap=True,
    )
