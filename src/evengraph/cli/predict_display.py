"""What `evengraph predict` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from evengraph.cli.console import err, out, print_notes, print_sentence

if TYPE_CHECKING:
    from evengraph.metrics.calibration import Calibrator
    from evengraph.pipeline.model_info import ModelInfo
    from evengraph.pipeline.new_nodes import NewNodes
    from evengraph.pipeline.predictions import Predictions
    from evengraph.pipeline.table_model import TableModel


def show_notes(nodes: NewNodes) -> None:
    """Print what was done to the tables, and how many nodes the graph says nothing of."""
    print_notes(nodes.notes, err)
    if nodes.num_isolated:
        print_sentence(
            f"New nodes without edges: {nodes.num_isolated:,} of {len(nodes.ids):,}; their "
            "predictions cannot use the graph.",
            err,
        )


def show_drift(predictions: Predictions) -> None:
    """Print what was moved back, what else differs from training, and what was not corrected."""
    if predictions.aligned:
        print_sentence(escape(f"{predictions.aligned} --no-align keeps them."), err)
    for sentence in (*predictions.drift, *filter(None, [predictions.doubt])):
        print_sentence(f"Warning: {escape(sentence)}", err)


def show_predictions(
    model: TableModel,
    nodes: NewNodes,
    predictions: Predictions,
    *,
    calibrated: bool,
    top: int | None,
) -> None:
    """Print the number of nodes per class, flagged nodes, suspects and how they were decided."""
    frame = predictions.frame
    if calibrated and model.info.calibrator is not None:
        show_calibrator(model.info.calibrator)
    predicted = frame["class"].astype(str)  # classes may be integers
    for name in model.classes_:
        out.print(f"{int((predicted == name).sum()):>10,}  {escape(name)}")
    threshold = predictions.threshold
    if threshold is not None:
        curve = model.info.cost_curve
        goal = "the lowest cost" if curve is not None and curve.costs else "the best F1"
        show_flags(frame, model.classes_[threshold.positive], threshold.value, goal)
        if top is not None:
            _show_suspects(model, nodes, predictions, threshold.positive, top)
    show_decisions(predictions, model.info)


def _show_suspects(
    model: TableModel, nodes: NewNodes, predictions: Predictions, positive: int, count: int
) -> None:
    """Print the nodes most likely of the positive class, and why."""
    from evengraph.pipeline.suspects import suspects
    from evengraph.report.terminal.table import plain_table

    name = model.classes_[positive]
    scores = predictions.frame[f"p_{name}"].to_numpy()
    with err.status("explaining"):
        found = suspects(
            model.method_,
            nodes,
            scores,
            positive=positive,
            count=count,
            graph=predictions.graph,
        )
    table = plain_table(["", "id", f"p({escape(name)})", "speaks for it"])
    for rank, one in enumerate(found, start=1):
        shown = format_probability(one.probability)
        table.add_row(str(rank), escape(one.id), shown, escape("; ".join(one.reasons)))
    out.print()
    out.print(table)
    out.print()


def show_decisions(predictions: Predictions, info: ModelInfo) -> None:
    """Print the class shares that probabilities were corrected for, and what abstaining gains."""
    if predictions.shares is not None:
        shares = (f"{escape(name)} {share:.1%}" for name, share in predictions.shares.items())
        print_sentence(
            f"corrected for these class shares: {', '.join(shares)}; assumes that nodes of a class "
            "look as in training, and only their share has changed"
        )
    level, risk = predictions.abstention, info.risk
    if level is None or risk is None:
        return
    every, count = risk.levels[0], int(predictions.frame["abstained"].sum())
    if level == every:
        text = f"the error on {risk.nodes:,} held-out nodes is {every.error:.1%} without it"
    else:
        text = (
            f"confidence below {format_probability(level.confidence)}. On {risk.nodes:,} "
            f"held-out nodes that leaves {level.coverage:.0%}, with an error of "
            f"{level.error:.1%} instead of {every.error:.1%} (mean over classes "
            f"{level.balanced_error:.1%} instead of {every.balanced_error:.1%})"
        )
    print_sentence(f"{count:>10,}  abstained: {text}")


def show_calibrator(calibrator: Calibrator) -> None:
    """Print what a calibrator does, and warn where it rests on few nodes."""
    from evengraph.metrics.calibration import RELIABLE_NODES

    print_sentence(calibrator.describe())
    if calibrator.temperature != 1 and calibrator.nodes < RELIABLE_NODES:
        print_sentence(
            f"Warning: {calibrator.nodes} held-out nodes are few, fewer than {RELIABLE_NODES}: "
            "calibrated probabilities are rough.",
            err,
        )


def show_flags(frame: Any, name: str, threshold: float, goal: str = "the best F1") -> None:
    """Print how many nodes are flagged as the positive class, and where `class` differs."""
    shown = format_probability(threshold)
    print_sentence(
        f"{int(frame['flagged'].sum()):>10,}  flagged: p({escape(name)}) is {shown} or more, "
        f"{goal} on validation"
    )
    differ = int((frame["flagged"] != (frame["class"].astype(str) == name)).sum())
    if differ:
        print_sentence(
            f"class is the argmax, flagged uses the tuned threshold; they differ for {differ:,} of "
            f"{len(frame):,} nodes: to find {escape(name)}, use flagged"
        )
    if not 0.01 <= threshold <= 0.99:
        print_sentence(
            f"Warning: a threshold of {shown} is extreme: the model is overconfident, or "
            "validation was small; use the order of nodes, not the probabilities.",
            err,
        )


def format_probability(value: float) -> str:
    """A probability with three digits, or as many as distinguish it from 0 and 1."""
    gap = min(value, 1 - value)
    return f"{value:.{3 if gap <= 0 else max(3, 1 - math.floor(math.log10(gap)))}f}"
