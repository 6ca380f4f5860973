"""evengraph pack, and evengraph predict for graphs on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from evengraph.cli.console import StageLines, err, out, print_notes, print_written
from evengraph.cli.opening import check_folder, split_lists, written
from evengraph.cli.options import COLUMN_HELP, Columns, column_options

if TYPE_CHECKING:
    from evengraph.metrics.decisions import Rule

# options that mean something else here, or that a packed graph does not hold
OTHERS = ("edges", "type", "edge_time", "directed", "link")


@column_options(*(name for name in COLUMN_HELP if name not in OTHERS))
def pack(
    data: Annotated[
        list[str],
        typer.Argument(
            help="Nodes table and edges table (Parquet or CSV; files, folders or patterns such as "
            "'nodes-*.parquet'), or DATA as in other commands.",
            metavar="NODES [EDGES]",
        ),
    ],
    columns: Columns,
    to: Annotated[Path, typer.Option("--out", help="Folder to write; it must not exist.")],
    edges: Annotated[
        str | None, typer.Option(help="Edges table, if there are several NODES files.")
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(help="Saved model whose columns and encoders to use, to predict the tables."),
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(help="Packed graph to join the new nodes to; their edges may name its nodes."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="Memory limit, such as 4GB. Default: half of the free memory."),
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="Type of the features: float32 or float16.")
    ] = "float32",
) -> None:
    """Convert a graph, even one larger than memory, to a folder that all commands take."""
    from evengraph.core.machine import format_size
    from evengraph.disk.packing import pack as pack_data

    started, arguments = monotonic(), split_lists(columns)
    if edges is None and len(data) == 2:
        data, edges = data[:1], data[1]
    if edges is None and len(data) > 1:
        raise ValueError(
            "with many files, give the edges by --edges: evengraph pack nodes-*.parquet --edges "
            "'edges-*.parquet'."
        )
    arguments |= {"like": like, "known": known, "memory": memory, "dtype": dtype}
    paths = data[0] if len(data) == 1 else data
    packed = pack_data(paths, to, edges=edges, progress=StageLines(), **arguments)
    print_notes(packed.header["notes"], err)
    size = format_size(sum(path.stat().st_size for path in packed.path.iterdir()))
    counts = (
        f"{packed.num_nodes:,} nodes, {packed.num_edges // 2:,} edges, "
        f"{packed.num_features:,} features, {packed.num_classes} classes"
    )
    out.print(f"{counts}; {size} in {monotonic() - started:.0f} s", soft_wrap=True)
    print_written(to)


def predict_on_disk(
    model: Path,
    data: Path,
    memory: str | None,
    to: Path,
    calibrated: bool | None,
    rule: Rule,
    only_unlabelled: bool,
    others: Mapping[str, Any],
) -> None:
    """Predict a packed graph within a limit of memory; `others` need the whole graph, by flag."""
    from evengraph.cli.console import current_ranks
    from evengraph.disk.models import DiskGraph, check_suffix, open_on_disk, write_predictions
    from evengraph.disk.packed_graph import file_hash
    from evengraph.disk.tables import joined_hash
    from evengraph.pipeline.table_model import TableModel

    for flag, value in others.items():
        if value is not None:
            raise ValueError(f"{flag} needs the whole graph in memory.")
    check_suffix(to)
    table_model = TableModel.load(model)
    if rule.goal != "f1":
        table_model.use_rule(rule)
    check_folder(to.parent)
    source = open_on_disk(data, memory, progress=StageLines(), ranks=current_ranks())
    assert isinstance(source.disk, DiskGraph)
    line = f"kept {escape(str(to))}" if to.is_dir() else written(to)
    made_from = [file_hash(path) for path in sorted(model.iterdir()) if path.is_file()]
    counts, flagged = write_predictions(
        table_model,
        source.disk,
        to,
        calibrated=calibrated,
        only_unlabelled=only_unlabelled,
        made_from=joined_hash(*made_from, repr(rule)),
    )
    for name, count in counts.items():
        out.print(f"{count:>10,}  {escape(name)}")
    if flagged is not None and (decision := table_model.info.decision) is not None:
        name = table_model.classes_[decision.positive]
        out.print(f"{flagged:>10,}  flagged as {escape(name)}")
    out.print(line, soft_wrap=True)
