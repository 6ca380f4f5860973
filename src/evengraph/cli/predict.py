"""evengraph predict: predict the classes of nodes with a saved model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape
from typer import Argument, Option

from evengraph.cli.console import err, out, print_sentence, print_written
from evengraph.cli.opening import check_folder, check_names, check_tables, open_new
from evengraph.cli.options import (
    COLUMN_HELP,
    Alerts,
    Align,
    CostAlarm,
    CostMiss,
    Memory,
    Precision,
    Ray,
    Recall,
    Workers,
    parse_alerts,
    parse_shares,
)
from evengraph.core.lazy import stays_on_disk, wing

if TYPE_CHECKING:
    from evengraph.pipeline.model_info import NewNodes
    from evengraph.pipeline.predictions import NodePredictions
    from evengraph.pipeline.table_model import TableModel


def show_drift(predictions: NodePredictions) -> None:
    """Print what was moved back, what else differs from training, and what was not corrected."""
    if predictions.aligned:
        print_sentence(escape(f"{predictions.aligned} --no-align keeps them."), err)
    for sentence in (*predictions.drift, *filter(None, [predictions.doubt])):
        print_sentence(f"Warning: {escape(sentence)}", err)


def _show_predictions(
    model: TableModel, nodes: NewNodes, found: NodePredictions, *, top: int | None
) -> None:
    """Print the number of nodes per class, flagged nodes, suspects and how they were decided."""
    frame, calibrator = found.frame, found.info.calibrator
    if found.calibrated and calibrator is not None and calibrator.counts:
        print_sentence(escape(calibrator.describe(model.classes_)))
    predicted = frame["class"].astype(str)  # classes may be integers
    for name in model.classes_:
        out.print(f"{int((predicted == name).sum()):>10,}  {escape(name)}")
    if (threshold := found.threshold) is not None:
        show_flags(found, model)
        if top is not None:
            _show_suspects(model, nodes, found, threshold.positive, top)
    if found.shares is not None:
        shares = (f"{escape(name)} {share:.1%}" for name, share in found.shares.items())
        print_sentence(
            f"corrected for these class shares: {', '.join(shares)}; assumes that nodes of a class "
            "look as in training, and only their share has changed"
        )


def _show_suspects(
    model: TableModel, nodes: NewNodes, predictions: NodePredictions, positive: int, count: int
) -> None:
    """Print the nodes most likely of the positive class, and why."""
    from evengraph.pipeline.explanation import suspects
    from evengraph.report.terminal import plain_table

    name = model.classes_[positive]
    assert predictions.probabilities is not None
    scores = predictions.probabilities[:, positive].numpy()
    with err.status("explaining"):
        graph = predictions.graph
        found = suspects(model.method_, nodes, scores, positive=positive, count=count, graph=graph)
    table = plain_table(["", "id", escape(heading(predictions.frame, name)), "reasons"])
    for rank, one in enumerate(found, start=1):
        shown = format_probability(one.probability)
        table.add_row(str(rank), escape(one.id), shown, escape("; ".join(one.reasons)))
    out.print()
    out.print(table)
    out.print()


def show_flags(found: NodePredictions, model: TableModel) -> None:
    """Print how many nodes are flagged as the positive class, by which rule, and what to expect."""
    frame, threshold, decision = found.frame, found.threshold, found.info.decision
    assert threshold is not None
    assert decision is not None
    name, shown = model.classes_[threshold.positive], format_probability(threshold.value)
    goal = "the most probable ones" if found.by_number else decision.rule.words
    print_sentence(
        f"{int(frame['flagged'].sum()):>10,}  flagged: {escape(heading(frame, name))} is {shown} "
        f"or more, {goal}"
    )
    if decision.outcome is not None and not (found.by_number or found.shares):
        print_sentence(escape(decision.words(name)))


def heading(frame: Any, name: str) -> str:
    """What the numbers of a class in predictions are: probabilities, or scores."""
    return f"{'p' if f'p_{name}' in frame else 'score'}({name})"


def format_probability(value: float) -> str:
    """A probability with three digits, or as many as distinguish it from 0 and 1."""
    gap = min(value, 1 - value)
    return f"{value:.{3 if gap <= 0 else max(3, 1 - math.floor(math.log10(gap)))}f}"


HELP = {
    "model": "Folder that evengraph run --save wrote.",
    "data": "A folder with nodes.csv and edges.csv, a nodes table, or a graph file (.graphml, "
    ".npz, .pt).",
    "edges": "Edges table, if DATA is a nodes table; or several with commas between them.",
    "out": "A .csv or .parquet file; with --memory also a folder of Parquet files.",
    "known": "Known folder or nodes table that the new nodes are connected to.",
    "known_edges": "Edges table, if --known is a nodes table.",
    "known_tables": "Tables of other kinds, if --known is a nodes table.",
    "calibrated": "Calibrate probabilities. Default for models saved by version 0.3 or later.",
    "top": "Two classes: also list this many of the most suspicious nodes, with reasons.",
    "prior": "Correct probabilities for class shares that differ from training: estimate, or the "
    "shares, such as yes=0.1,no=0.9.",
    "coverage": "Also write a set of classes per node, which holds the true one for this share "
    "of the nodes of every class, such as 0.9.",
    "only_unlabelled": "Predict only nodes without a label.",
}


def predict(
    model: Annotated[Path, Argument(help=HELP["model"])],
    data: Annotated[Path, Argument(help=HELP["data"])],
    edges: Annotated[str | None, Argument(help=HELP["edges"])] = None,
    to: Annotated[Path, Option("--out", help=HELP["out"])] = Path("predictions.csv"),
    known: Annotated[str | None, Option(help=HELP["known"], metavar="PATH")] = None,
    known_edges: Annotated[str | None, Option(help=HELP["known_edges"])] = None,
    tables: Annotated[str | None, Option(help=COLUMN_HELP["tables"])] = None,
    known_tables: Annotated[str | None, Option(help=HELP["known_tables"])] = None,
    calibrated: Annotated[bool | None, Option(help=HELP["calibrated"])] = None,
    cost_miss: CostMiss = None,
    cost_alarm: CostAlarm = None,
    alerts: Alerts = None,
    precision: Precision = None,
    recall: Recall = None,
    top: Annotated[int | None, Option(help=HELP["top"])] = None,
    prior: Annotated[str | None, Option(help=HELP["prior"], metavar="SHARES")] = None,
    coverage: Annotated[float | None, Option(help=HELP["coverage"])] = None,
    only_unlabelled: Annotated[
        bool, Option("--only-unlabelled", help=HELP["only_unlabelled"])
    ] = False,
    align: Align = True,
    memory: Memory = None,
    ray: Ray = None,
    workers: Workers = None,
) -> None:
    """Predict the class of every node of a graph with a saved model."""
    check_names(data, model=model)
    if ray is not None or workers is not None:
        wing("disk").run_on_cluster(ray, workers, data, memory)
    from evengraph.metrics.decisions import Costs, Rule
    from evengraph.pipeline.table_model import TableModel

    costs, budget = Costs.of(cost_miss, cost_alarm), parse_alerts(alerts)
    rule = Rule.of(costs, precision=precision, recall=recall)
    if budget is not None and rule.goal != "f1":
        raise ValueError("--alerts excludes costs, --precision and --recall; give one.")
    if memory is not None or stays_on_disk(data):
        others: dict[str, Any] = {"EDGES": edges, "--known": known, "--top": top}
        others |= {"--prior": prior, "--alerts": alerts, "--coverage": coverage, "--tables": tables}
        wing("disk").predict_on_disk(
            model, data, memory, to, calibrated, rule, only_unlabelled, others
        )
        return
    if to.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"--out takes a name that ends in .csv or .parquet, got {to}.")
    table_model = TableModel.load(model)
    if rule.goal != "f1":
        table_model.use_rule(rule)
    if top is not None and table_model.info.decision is None:
        raise ValueError("--top lists nodes of the rarer of two classes; this model has none.")
    check_folder(to.parent)
    before = check_tables(table_model, known, known_edges, known_tables)
    given: dict[str, Any] = {"tables": tables, "only_unlabelled": only_unlabelled}
    new = open_new(table_model, data, edges, before, **given)
    if before is None and table_model.info.columns.link:
        text = "Rows are linked with one another alone; --known names earlier rows to link with."
        print_sentence(text, err)
    if new.num_isolated:
        count = f"{new.num_isolated:,} of {len(new.ids):,}"
        text = f"New nodes without edges: {count}; their predictions cannot use the graph."
        print_sentence(text, err)
    if new.doubt:
        print_sentence(f"Warning: {new.doubt}", err)
    with err.status("predicting"):
        shares = parse_shares(prior, "--prior") if prior and "=" in prior else prior
        options = {"calibrated": calibrated, "prior": shares, "align": align, "alerts": budget}
        options["coverage"] = coverage
        predictions = table_model.predictions(new, **options)
    show_drift(predictions)
    write_predictions(predictions.frame, to)
    _show_predictions(table_model, new, predictions, top=top)
    print_written(to)


def write_predictions(frame: Any, path: Path) -> None:
    """Write predictions as CSV or Parquet, completely or not at all."""
    from evengraph.core.files import csv_text, write_atomic

    if path.suffix.lower() == ".parquet":
        write_atomic(frame.to_parquet(index=False), path)
        return
    id = frame.columns[0]
    rows = [
        {k: f"{v:.6f}" if isinstance(v, float) and k != id else v for k, v in row.items()}
        for row in frame.to_dict("records")
    ]
    write_atomic(csv_text(rows).encode(), path)
