"""Kept models on the command line: predictions of tables, and where one came from."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import torch
from rich.markup import escape
from rich.table import Table

from evengraph.binary import positive_class
from evengraph.calibration import Calibrator
from evengraph.cli.console import err, out
from evengraph.cli.opening import Opened
from evengraph.cli.running import check_folder
from evengraph.data import OwnGraph, from_frames, read_table
from evengraph.data.encoders import check_columns
from evengraph.data.features import FeatureEncoder
from evengraph.data.ids import find_both, node_names
from evengraph.data.own import both_tables
from evengraph.data.values import table_name
from evengraph.explaining import Explanation, explain
from evengraph.keeping import load_model
from evengraph.methods import Method
from evengraph.methods.folder import MAIN
from evengraph.report.explanation import write_explanation
from evengraph.results import Record, csv_text, write_whole
from evengraph.task import Task

NAMES = ("id", "source", "target", "weight")


def keep_model(method: Method, task: Task, record: Record, *, folder: Path, opened: Opened) -> None:
    """Save a model with what new rows need: columns, the encoder, a calibrator, a threshold."""
    probabilities = method.predict_proba(task.graph)
    calibrator = Calibrator.fit(probabilities[task.val], task.graph.y[task.val])
    scores = record.metrics
    known = {name: value if math.isfinite(value) else None for name, value in scores.items()}
    extra: dict[str, Any] = {"calibrator": calibrator.as_dict(), "test": known}
    extra["trained_on"] = {"data": str(Path(opened.data)), "columns": dict(opened.columns)}
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


def predict_tables(
    model: Path, nodes: Path, edges: Path, to: Path, *, known: str | None, calibrated: bool
) -> None:
    """Predict every node of two tables, or those that are new to a known graph."""
    method = load_model(model)
    check_file(to)
    own, new = _encoded(method, model, nodes, edges, known)
    with err.status("predicting"):
        probabilities = method.predict_proba(own.graph)
    if calibrated:
        if "calibrator" not in method.extra_:
            raise ValueError(f"{model} holds no calibrator: it was not kept by evengraph run.")
        probabilities = Calibrator.from_dict(method.extra_["calibrator"])(probabilities)
    names = list(method.class_names_) or [str(n) for n in range(method.num_classes_)]
    best = probabilities.argmax(1)
    flag = None if calibrated else method.extra_.get("flag")
    rows = prediction_rows(own.ids[new], best[new], probabilities[new], names, flag)
    write_predictions(rows, to)
    for name, count in zip(names, best[new].bincount(minlength=len(names)).tolist(), strict=True):
        out.print(f"{count:>10,}  {escape(name)}")
    if flag is not None:
        many = sum(row["flagged"] == "yes" for row in rows)
        words = f"flagged: {escape(names[flag['class']])} with a probability of {flag['from']:.3f}"
        out.print(f"{many:>10,}  {words} or more, the threshold that was best on validation")
    out.print(f"wrote {escape(str(to))}", soft_wrap=True)


def _encoded(
    method: Method, folder: Path, nodes: Path, edges: Path, known: str | None
) -> tuple[OwnGraph, Any]:
    """The graph as the model wants it, and which of its nodes are asked for."""
    extra = method.extra_
    if "encoder" not in extra or "columns" not in extra:
        raise ValueError(
            f"{folder} was not trained on tables, so nothing says what to make of columns; "
            "use evengraph.load_model and predict_proba in Python."
        )
    columns = {name: extra["columns"].get(name) for name in NAMES}
    encoder = FeatureEncoder.from_dict(extra["encoder"])
    tables = read_table(nodes), read_table(edges)
    new = slice(None)
    if known is not None:
        check_columns(tables[0], encoder.needs, table_name(tables[0], "nodes"))
        encoder.check(tables[0])  # while its rows still have their own numbers
        tables, new = _joined(tables, known, columns)
    try:
        own = from_frames(*tables, **columns, encoder=encoder)
    except ValueError as error:
        if known is not None or "an id that no node has" not in str(error):
            raise
        raise ValueError(
            f"{error} Nodes of the known graph? Name its folder with --known."
        ) from None
    for note in own.notes:
        if not note.startswith("No label column"):
            err.print(f"[dim]{escape(note)}[/]", soft_wrap=True)
    return own, new


def _joined(
    tables: tuple[Any, Any], known: str, columns: dict[str, str | None]
) -> tuple[tuple[Any, Any], slice]:
    """The tables that a model was trained on, with new rows below them."""
    import pandas

    old, id = both_tables(known), columns["id"]
    if id is not None:
        for table, name in ((old[0], "nodes"), (tables[0], "nodes")):
            if id not in table.columns:
                raise ValueError(f"{table_name(table, name)} has no column {id!r} with the ids.")
        again = tables[0][id].isin(old[0][id])
        if again.any():
            first = tables[0][id][again].iloc[0]
            raise ValueError(
                f"{int(again.sum())} of the new nodes are in {known} already, the first is "
                f"{first!r}; name new nodes only."
            )
    joined = [pandas.concat(pair, ignore_index=True) for pair in zip(old, tables, strict=True)]
    if id is not None:  # while the new edges still have their own numbers
        names = node_names(joined[0][id], table_name(tables[0], "nodes"))
        source, target = (tables[1][columns[end]] for end in ("source", "target"))
        find_both(source, target, names, table_name(tables[1], "edges"))
    return (joined[0], joined[1]), slice(len(old[0]), None)


def prediction_rows(
    ids: Any,
    best: torch.Tensor,
    probabilities: torch.Tensor,
    names: list[str],
    flag: dict[str, Any] | None,
) -> list[dict[str, Any]]:
    """A row for each node: its id, its class, and the probability of every class."""
    rows = []
    for node, place, own in zip(ids.tolist(), best.tolist(), probabilities.tolist(), strict=True):
        row = {"id": node, "class": names[place], "probability": max(own)}
        row |= {f"p_{name}": value for name, value in zip(names, own, strict=True)}
        if flag is not None:
            row["flagged"] = "yes" if own[flag["class"]] >= flag["from"] else "no"
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


def explain_node(
    model: Path, node: str, *, data: str | None, columns: dict[str, str | None], to: Path | None
) -> None:
    """Say where the prediction of a node came from, and draw it."""
    if to is not None and to.suffix.lower() != ".svg":
        raise ValueError(f"--out takes a name that ends in .svg, got {to}.")
    method = load_model(model)
    trained = method.extra_.get("trained_on", {})
    given = {name: value for name, value in columns.items() if value is not None}
    stored = dict(trained.get("columns", {}))
    if data is not None:
        stored.pop("edges", None)  # belongs to the place where the nodes were
    own = _known_graph(method, data or trained.get("data"), stored | given)
    names = [str(one) for one in own.ids.tolist()]
    if node not in names:
        raise ValueError(f"There is no node {node!r}; ids are like {', '.join(names[:3])}.")
    found = explain(method, own.graph, names.index(node))
    show_explanation(found, names)
    if to is not None:
        write_explanation(found.as_dict(), names, to)
        out.print(f"wrote {escape(str(to))}", soft_wrap=True)


def _known_graph(method: Method, data: str | None, columns: dict[str, str]) -> OwnGraph:
    if data is None or "encoder" not in method.extra_:
        raise ValueError("Name the tables that the model was trained on with --data.")
    if not Path(data).expanduser().exists():
        raise ValueError(f"{data} is not here any more; name where it is with --data.")
    encoder = FeatureEncoder.from_dict(method.extra_["encoder"])
    edges = columns.pop("edges", None)
    for name in ("label", "drop"):  # the model has the labels that it learnt from, and its columns
        columns.pop(name, None)
    with err.status(f"reading {escape(data)}"):
        return from_frames(*both_tables(data, edges), **columns, encoder=encoder)


def show_explanation(found: Explanation, ids: list[str]) -> None:
    """A few sentences and a table of the labelled nodes that counted most."""
    names = found.class_names or tuple(str(n) for n in range(len(found.probabilities)))
    out.print(
        f"[bold]{escape(ids[found.node])}[/] is [bold]{escape(names[found.predicted])}[/] with "
        f"{100 * found.probability:.1f}%"
        + (f"; next is {escape(names[found.runner_up])}." if found.runner_up is not None else ".")
    )
    total = sum(abs(part) for part in (found.own, found.from_labelled, found.from_unlabelled)) or 1
    for words, part in (
        ("its own features", found.own),
        ("features of labelled nodes", found.from_labelled),
        ("features of other nodes", found.from_unlabelled),
    ):
        side = "for" if part >= 0 else "against"
        out.print(f"  {100 * abs(part) / total:3.0f}% {side} it: {words}")
    for cluster in found.clusters:
        known = ", ".join(
            f"{count} {escape(names[place])}"
            for place, count in enumerate(cluster.labelled)
            if count
        )
        out.print(
            f"  layer {cluster.layer}: one of {cluster.size:,} nodes of a cluster, labelled among "
            f"them: {known or 'none'}"
        )
    if found.labelled:
        out.print()
        out.print(_influences(found, ids, names))


def _influences(found: Explanation, ids: list[str], names: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("labelled node", "class", "steps away", "shared clusters", "speaks"):
        table.add_column(title, no_wrap=True)
    strongest = max(abs(one.contribution) for one in found.labelled) or 1
    for one in found.labelled:
        bar = "█" * max(round(10 * abs(one.contribution) / strongest), 1)
        table.add_row(
            escape(ids[one.node]),
            escape(names[one.label]),
            "no path" if one.distance is None else str(one.distance),
            ", ".join(f"layer {layer}" for layer in one.shared_clusters) or "–",
            f"[green]for {bar}[/]" if one.contribution > 0 else f"[red]against {bar}[/]",
        )
    return table
