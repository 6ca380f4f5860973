"""evengraph predict: predict the classes of nodes with a saved model."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evengraph.cli.console import err, print_written
from evengraph.cli.options import COLUMN_HELP, Align, CostAlarm, CostMiss, Memory
from evengraph.cli.predict_display import show_drift, show_notes, show_predictions

if TYPE_CHECKING:
    from evengraph.metrics.costs import Costs
    from evengraph.pipeline.new_nodes import NewNodes
    from evengraph.pipeline.table_model import TableModel


ModelFolder = Annotated[Path, typer.Argument(help="Folder that evengraph run --save wrote.")]
Nodes = Annotated[
    Path,
    typer.Argument(
        help="A folder with nodes.csv and edges.csv, a nodes table, or a graph file "
        "(.graphml, .npz, .pt)."
    ),
]
Edges = Annotated[Path | None, typer.Argument(help="Edges table, if DATA is a nodes table.")]
Out = Annotated[
    Path, typer.Option("--out", help="A .csv or .parquet file; with --memory also .npy.")
]
Known = Annotated[
    str | None,
    typer.Option(
        help="Known folder or nodes table that the new nodes are connected to.", metavar="PATH"
    ),
]
KnownEdges = Annotated[str | None, typer.Option(help="Edges table, if --known is a nodes table.")]
Lists = Annotated[Path | None, typer.Option(help=COLUMN_HELP["lists"])]
Calibrated = Annotated[
    bool, typer.Option("--calibrated", help="Calibrate probabilities on validation nodes.")
]
Top = Annotated[
    int | None,
    typer.Option(
        help="Two classes: also list this many of the most suspicious nodes, with reasons."
    ),
]
Prior = Annotated[
    str | None,
    typer.Option(
        help="Correct probabilities for class shares that differ from training: estimate, or the "
        "shares, such as yes=0.1,no=0.9.",
        metavar="SHARES",
    ),
]
Abstain = Annotated[
    float | None,
    typer.Option(
        help="Leave this share of the nodes undecided, the least certain ones; such as 0.1."
    ),
]
MaxError = Annotated[
    float | None,
    typer.Option(help="Leave as many nodes undecided as it takes for this error on validation."),
]
OnlyUnlabelled = Annotated[
    bool, typer.Option("--only-unlabelled", help="Predict only nodes without a label.")
]


def predict(
    model: ModelFolder,
    data: Nodes,
    edges: Edges = None,
    to: Out = Path("predictions.csv"),
    known: Known = None,
    known_edges: KnownEdges = None,
    lists: Lists = None,
    calibrated: Calibrated = False,
    cost_miss: CostMiss = None,
    cost_alarm: CostAlarm = None,
    top: Top = None,
    prior: Prior = None,
    abstain: Abstain = None,
    max_error: MaxError = None,
    only_unlabelled: OnlyUnlabelled = False,
    align: Align = True,
    memory: Memory = None,
) -> None:
    """Predict the class of every node of a graph with a saved model."""
    from evengraph.cli.files import check_folder
    from evengraph.cli.predict_disk import predict_on_disk
    from evengraph.metrics.costs import Costs
    from evengraph.pipeline.graph_source import must_stay_on_disk

    costs = Costs.of(cost_miss, cost_alarm)
    if memory is not None or must_stay_on_disk(data):
        others: dict[str, Any] = {"EDGES": edges, "--known": known, "--lists": lists, "--top": top}
        others |= {"--prior": prior, "--abstain": abstain, "--max-error": max_error}
        predict_on_disk(model, data, memory, to, calibrated, costs, only_unlabelled, others)
        return
    if to.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"--out takes a name that ends in .csv or .parquet, got {to}.")
    table_model = _load(model, costs, top)
    check_folder(to.parent)
    new = _open(table_model, data, edges, (known, known_edges), only_unlabelled, lists)
    show_notes(new)
    with err.status("predicting"):
        predictions = table_model.predictions(
            new,
            calibrated=calibrated,
            prior=parse_prior(prior),
            abstain=abstain,
            max_error=max_error,
            align=align,
        )
    show_drift(predictions)
    write_predictions(predictions.frame, to)
    show_predictions(table_model, new, predictions, calibrated=calibrated, top=top)
    print_written(to)


def _load(folder: Path, costs: Costs | None, top: int | None) -> TableModel:
    """Load the model, with the threshold of other costs if there are any."""
    from evengraph.pipeline.table_model import TableModel

    model = TableModel.load(folder)
    if costs is not None:
        model.use_costs(costs)
    if top is not None and model.info.threshold is None:
        raise ValueError("--top lists nodes of the rarer of two classes; this model has none.")
    return model


def _open(
    model: TableModel,
    data: Path,
    edges: Path | None,
    known: tuple[str | None, str | None],
    only_unlabelled: bool,
    lists: Path | None,
) -> NewNodes:
    """Open the nodes to predict; `known` is the graph that they attach to."""
    from evengraph.tables import UnknownNodeError

    tables = _known_tables(*known)
    try:
        return model.open(data, edges, known=tables, only_unlabelled=only_unlabelled, lists=lists)
    except UnknownNodeError as error:
        if tables is not None:
            raise
        hint = "Nodes of the known graph? Name its folder with --known."
        raise ValueError(f"{error} {hint}") from None


def parse_prior(text: str | None) -> str | dict[str, float] | None:
    """`estimate`, or the shares of classes."""
    if text is None or "=" not in text:
        return text
    pairs = [part.rpartition("=") for part in text.split(",")]
    try:
        return {name.strip(): float(value) for name, _, value in pairs}
    except ValueError:
        raise ValueError(f"--prior takes estimate or yes=0.1,no=0.9, got {text}.") from None


def _known_tables(known: str | None, edges: str | None) -> Any:
    """The known graph as `TableModel` takes it."""
    from evengraph.tables.read import table_suffix

    if known is None:
        if edges is not None:
            raise ValueError("--known-edges goes with --known, which names the nodes table.")
        return None
    if edges is None and table_suffix(Path(known)):
        raise ValueError(f"--known-edges must name the edges table that belongs to {known}.")
    return known, edges


def write_predictions(frame: Any, path: Path) -> None:
    """Write predictions as CSV or Parquet, completely or not at all."""
    from evengraph.core.files import csv_text, write_atomic

    if path.suffix.lower() == ".parquet":
        content = io.BytesIO()
        frame.to_parquet(content, index=False)
        write_atomic(content.getvalue(), path)
        return
    id = frame.columns[0]
    rows = [
        {k: f"{v:.6f}" if isinstance(v, float) and k != id else v for k, v in row.items()}
        for row in frame.to_dict("records")
    ]
    write_atomic(csv_text(rows).encode(), path)
