"""evengraph predict --memory: predict a packed graph from disk, in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from evengraph.cli.console import out
from evengraph.cli.files import check_folder, written

if TYPE_CHECKING:
    from evengraph.metrics.costs import Costs


def predict_on_disk(
    model: Path,
    data: Path,
    memory: str | None,
    to: Path,
    calibrated: bool,
    costs: Costs | None,
    only_unlabelled: bool,
    others: Mapping[str, Any],
) -> None:
    """Predict a packed graph within a limit of memory.

    Args:
        model: Folder of the model.
        data: Folder of the graph.
        memory: Such as `4GB`; None is half of what is free.
        to: The file to write.
        calibrated: Whether to calibrate probabilities.
        costs: What the threshold minimises, if given.
        only_unlabelled: Whether to leave out nodes that have a label.
        others: Options that need the whole graph in memory, by flag; None is not given.
    """
    from evengraph.cli.stages import StageLines
    from evengraph.pipeline.graph_source import open_on_disk
    from evengraph.pipeline.prediction_files import SUFFIXES, write_predictions
    from evengraph.pipeline.table_model import TableModel

    for flag, value in others.items():
        if value is not None:
            raise ValueError(f"{flag} needs the whole graph in memory.")
    if to.suffix.lower() not in SUFFIXES:
        raise ValueError(f"--out takes a name that ends in {', '.join(SUFFIXES)}, got {to}.")
    table_model = TableModel.load(model)
    if costs is not None:
        table_model.use_costs(costs)
    check_folder(to.parent)
    source = open_on_disk(data, memory, progress=StageLines())
    assert source.disk is not None
    line = written(to)
    options = {"calibrated": calibrated, "only_unlabelled": only_unlabelled}
    counts = write_predictions(table_model, source.disk, to, **options)
    for name, count in counts.items():
        out.print(f"{count:>10,}  {escape(name)}")
    out.print(line, soft_wrap=True)
