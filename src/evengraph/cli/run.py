"""evengraph run: train and test a method."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evengraph.cli.options import (
    Columns,
    Data,
    DataRoot,
    Device,
    Minority,
    Ratio,
    Settings,
    column_options,
)


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
    minority: Minority = None,
    ratio: Ratio = None,
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
    parts = [*(settings or []), *([] if preset else ["no-preset"]), f"seeds={seeds}"]
    folder = to or Path("runs") / folder_name(plans, parts)
    run_plans(plans, source, pick_device(device), folder, save)
