"""Looking at a graph on the command line: figures, findings, files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.markup import escape
from torch import Tensor
from torch_geometric.data import Data

from evengraph.cli.console import err, out
from evengraph.core.files import write_json
from evengraph.experiment.fields import unknown
from evengraph.inspection import inspect_graph
from evengraph.report.inspect.page import write_inspection
from evengraph.report.terminal.inspection import inspection_view
from evengraph.splits import SPLITS, Natural


def seen_labels(
    graph: Data,
    *,
    labelled: float | None,
    imbalance: str | None,
    options: dict[str, Any],
    seed: int,
) -> tuple[Data, Tensor | None]:
    """A graph, and which of its labels are to be seen; None stands for all.

    Args:
        graph: Before a protocol cuts nodes off.
        labelled: Share of every class to see.
        imbalance: Or the protocol whose training nodes are to be seen.
        options: Fields of that protocol.
        seed: Draws the nodes.
    """
    if labelled is not None and imbalance is not None:
        raise ValueError("give either --labelled or --imbalance, not both.")
    if options and imbalance is None:
        raise ValueError(f"--{next(iter(options))} needs --imbalance, such as --imbalance step.")
    protocol: Any = None
    if labelled is not None:
        if not 0 < labelled < 1:
            raise ValueError(f"labelled must lie between 0 and 1, got {labelled}.")
        protocol = Natural(train=labelled, val=(1 - labelled) / 2)
    elif imbalance is not None:
        if imbalance not in SPLITS:
            raise ValueError(unknown("imbalance", imbalance, SPLITS))
        known = {item.name for item in fields(SPLITS[imbalance])}
        for name in options:
            if name not in known:
                raise ValueError(f"{imbalance} has no --{name}.")
        protocol = SPLITS[imbalance](**options)
    if protocol is None:
        return graph, None
    task = protocol(graph, seed=seed)
    return task.graph, task.train


def show_inspection(
    graph: Data,
    folder: Path | None,
    *,
    as_json: bool,
    notes: Sequence[str] = (),
    **options: Any,
) -> dict[str, Any]:
    """Inspect, show, and write inspect.json and inspect.html if a folder is given.

    Args:
        graph: The graph.
        folder: Where the files go, or None.
        as_json: Print plain JSON instead of a picture.
        notes: What was done to the files before.
        options: What `inspect_graph` takes besides.
    """
    if folder is not None and folder.exists() and not folder.is_dir():
        raise ValueError(f"--out takes a folder, and {folder} is a file.")
    with err.status("looking"):
        found = inspect_graph(graph, **options).as_dict() | {"notes": list(notes)}
    if as_json:
        out.print(json.dumps(found, indent=1), soft_wrap=True, markup=False)
    else:
        out.print(inspection_view(found))
    if folder is not None:
        write_json(found, folder / "inspect.json")
        write_inspection(found, folder / "inspect.html")
        told = err if as_json else out
        for name in ("inspect.json", "inspect.html"):
            told.print(f"wrote {escape(str(folder / name))}", soft_wrap=True)
    return found
