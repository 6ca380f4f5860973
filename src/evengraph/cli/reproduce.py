"""evengraph reproduce: the paper's tables and figures, or your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evengraph.cli.options import DataRoot, Device


def reproduce(
    what: Annotated[
        list[str],
        typer.Argument(
            help="table1, table2, table3, figure2 or all; beyond the paper newer, publicstep, "
            "publicraw, unreal or natural; or a TOML file."
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a small part: minutes instead of hours.")
    ] = False,
    seeds: Annotated[str | None, typer.Option(help="Such as 5,6,7 or 5-24.")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these, such as gcn,unignn.")] = None,
    setups: Annotated[
        str | None,
        typer.Option(help="Only settings with these in their names, such as cora-step-3."),
    ] = None,
    store: Annotated[Path, typer.Option(help="File in which every run is stored.")] = Path(
        "runs/reproduce.sqlite"
    ),
    device: Device = "auto",
    engine: Annotated[str, typer.Option(help="auto, here, processes or ray.")] = "auto",
    jobs: Annotated[int | None, typer.Option(help="Workers; by default one per core.")] = None,
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run failed runs again.")] = False,
    data_root: DataRoot = None,
) -> None:
    """Run the paper's tables and figures, or your own experiments; resumes if interrupted."""
    from evengraph.cli.arguments import parse_methods
    from evengraph.cli.reproducing import run_experiments
    from evengraph.core.devices import pick_device
    from evengraph.experiment.executor import choose_executor
    from evengraph.experiment.parsing import parse_seeds
    from evengraph.experiment.spec import read_specs

    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}.")
    specs = read_specs(
        what,
        quick=quick,
        seeds=parse_seeds(seeds) if seeds else (),
        methods=parse_methods(methods) if methods else (),
        setups=[part.strip() for part in setups.split(",")] if setups else (),
    )
    executor = choose_executor(engine, str(pick_device(device)), workers=jobs, address=address)
    run_experiments(specs, store, executor, root=data_root, retry=retry)
