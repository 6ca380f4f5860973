"""Kept models on the command line: what is kept, and predictions of tables."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import torch
from rich.markup import escape

from evengraph.cli.attaching import check_tables, columns_of_model, known_tables, new_graph, tell
from evengraph.cli.console import err, out
from evengraph.cli.opening import Opened
from evengraph.cli.running import check_folder
from evengraph.core.files import csv_text, write_whole
from evengraph.core.records import Record
from evengraph.core.task import Task
from evengraph.methods import Method
from evengraph.methods.bases.model_folder import MAIN
from evengraph.metrics.binary import flagged, positive_class
from evengraph.metrics.calibration import FEW, Calibrator
from evengraph.pipeline.loading import load_model


def keep_model(method: Method, task: Task, record: Record, *, folder: Path, opened: Opened) -> None:
    """Save a model with what new rows need: columns, the encoder, a calibrator, a threshold."""
    probabilities = method.predict_proba(task.graph)
    calibrator = Calibrator.fit(probabilities[task.val], task.graph.y[task.val])
    scores = record.metrics
    known = {name: value if math.isfinite(value) else None for name, value in scores.items()}
    extra: dict[str, Any] = {"calibrator": calibrator.as_dict(), "test": known}
    extra["trained_on"] = _whereabouts(opened)
    threshold = known.get("tuned_threshold")
    if threshold is not None:
        extra["flag"] = {"class": positive_class(task.class_counts), "from": threshold / 100}
    if opened.own is not None:
        extra["columns"] = opened.own.columns
        extra["encoder"] = opened.own.encoder.as_dict()
    place = escape(str(folder))
    start = f"replaced the model in {place}" if (folder / MAIN).exists() else f"wrote {place}"
    method.save(folder, extra=extra)
    words = (
        f"the model of seed {record.seed}, the best on validation; balanced accuracy "
        f"{record.metrics['balanced_accuracy']:.1f} on its test nodes; see: evengraph predict"
    )
    out.print(f"{start}: {words}", soft_wrap=True)


def _whereabouts(opened: Opened) -> dict[str, Any]:
    """What a model was trained on, to be found from any folder."""
    if opened.own is None:
        return {"data": opened.data, "columns": dict(opened.columns)}
    columns = dict(opened.columns)
    if "edges" in columns:
        columns["edges"] = absolute(columns["edges"])
    return {"data": absolute(opened.data), "columns": columns}


def absolute(path: str) -> str:
    """A path that means the same in every folder."""
    return str(Path(path).expanduser().absolute())


def predict_tables(
    model: Path,
    nodes: Path,
    edges: Path,
    to: Path,
    *,
    known: str | None,
    known_edges: str | None,
    calibrated: bool,
) -> None:
    """Predict every node of two tables, or those that are new to a known graph."""
    method = load_model(model)
    check_file(to)
    check_tables(method, model)
    old = known_tables(known, known_edges)
    own, new = new_graph(method, (nodes, edges), old, columns_of_model(method))
    tell(own, new)
    with err.status("predicting"):
        probabilities = method.predict_proba(own.graph)
    names = list(method.class_names_) or [str(n) for n in range(method.num_classes_)]
    flag = method.extra_.get("flag")
    flags = None
    if flag is not None:  # before calibration, where the threshold was found
        flags = flagged(probabilities[:, flag["class"]], flag["from"])[new]
    if calibrated:
        calibrator = _calibrator(method, model)
        probabilities = calibrator(probabilities)
        if flag is not None:
            flag = flag | {"from": calibrator.threshold(flag["from"], flag["class"])}
    best = probabilities.argmax(1)[new]
    write_predictions(prediction_rows(own.ids[new], best, probabilities[new], names, flags), to)
    for name, count in zip(names, best.bincount(minlength=len(names)).tolist(), strict=True):
        out.print(f"{count:>10,}  {escape(name)}")
    if flag is not None and flags is not None:
        show_flags(flags, best, flag, names)
    out.print(f"wrote {escape(str(to))}", soft_wrap=True)


def _calibrator(method: Method, folder: Path) -> Calibrator:
    """The calibrator of a model, and what to think of it."""
    if "calibrator" not in method.extra_:
        raise ValueError(f"{folder} holds no calibrator: it was not kept by evengraph run.")
    found = Calibrator.from_dict(method.extra_["calibrator"])
    out.print(found.words(), soft_wrap=True)
    if found.temperature != 1 and found.nodes < FEW:
        few = f"{found.nodes} validation nodes are few, fewer than {FEW}"
        err.print(f"Warning: {few}: take calibrated probabilities as rough.", soft_wrap=True)
    return found


def show_flags(
    flags: torch.Tensor, best: torch.Tensor, flag: dict[str, Any], names: list[str]
) -> None:
    """How many nodes are flagged, from where on, and whether to act on that or on the class."""
    name, start = escape(names[flag["class"]]), flag["from"]
    out.print(
        f"{int(flags.sum()):>10,}  flagged: {name} with a probability of {probability(start)} or "
        "more, the threshold that was best on validation",
        soft_wrap=True,
    )
    differ = int((flags != (best == flag["class"])).sum())
    out.print(
        f"class is the likelier of the two, flagged goes by the threshold; they differ for "
        f"{differ:,} of {len(flags):,} nodes: to find {name}, act on flagged",
        soft_wrap=True,
    )
    if not 0.01 <= start <= 0.99:
        err.print(
            f"Warning: a threshold of {probability(start)} is extreme: the model is hardly ever in "
            "doubt, or validation was small; look at the order of nodes, not at probabilities.",
            soft_wrap=True,
        )


def probability(value: float) -> str:
    """A probability in three digits, or as many as tell it from 0 and from 1."""
    gap = min(value, 1 - value)
    return f"{value:.{3 if gap <= 0 else max(3, 1 - math.floor(math.log10(gap)))}f}"


def prediction_rows(
    ids: Any,
    best: torch.Tensor,
    probabilities: torch.Tensor,
    names: list[str],
    flags: torch.Tensor | None,
) -> list[dict[str, Any]]:
    """A row for each node: its id, its class, and the probability of every class."""
    rows = []
    columns = ids.tolist(), best.tolist(), probabilities.tolist()
    for at, (node, place, own) in enumerate(zip(*columns, strict=True)):
        row = {"id": node, "class": names[place], "probability": max(own)}
        row |= {f"p_{name}": value for name, value in zip(names, own, strict=True)}
        if flags is not None:
            row["flagged"] = "yes" if flags[at] else "no"
        rows.append(row)
    return rows


def write_predictions(rows: list[dict[str, Any]], to: Path) -> None:
    """Write rows as CSV or Parquet, whole or not at all."""
    if to.suffix.lower() == ".parquet":
        import pandas

        content = io.BytesIO()
        pandas.DataFrame(rows).to_parquet(content, index=False)
        write_whole(content.getvalue(), to)
        return
    shown = [
        {k: f"{v:.6f}" if isinstance(v, float) and k != "id" else v for k, v in row.items()}
        for row in rows
    ]
    write_whole(csv_text(shown).encode(), to)


def check_file(path: Path) -> None:
    """Refuse a name before, not after, the work."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"--out takes a name that ends in .csv or .parquet, got {path}.")
    check_folder(path.parent)
