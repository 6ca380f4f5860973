"""monitor(): a saved model on new nodes: drift, alarms, labels that came back, when to refit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch

from evengraph.core.errors import short
from evengraph.metrics.decisions import Outcome
from evengraph.metrics.significance import share_interval
from evengraph.pipeline.model_info import NewNodes
from evengraph.pipeline.table_model import TableModel
from evengraph.tables.cells import canonical_names, column_kind, date_form
from evengraph.tables.columns import read_times

SHOWN = 8  # features that moved most
PERIODS = 12  # of times that are numbers
ENOUGH = 20  # new labels of the rarer class that are worth refitting for


def monitor(
    model: TableModel, new: NewNodes, *, times: Any = None, labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Compare new nodes with what the model knows of its training, as JSON can hold it.

    Args:
        model: A fitted or loaded model.
        new: What `TableModel.open` gave.
        times: A column with the time of every new node, for alarms per period.
        labels: Classes that came back, by id.
    """
    from evengraph import __version__

    info, found = model.info, model.predictions(new)
    decision, frame = info.decision, found.frame
    classes = list(model.classes_)
    predicted = frame["class"].astype(str).value_counts()
    content: dict[str, Any] = {
        "schema": 1,
        "evengraph": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "method": model.method_.full_title,
        "nodes": len(frame),
        "classes": classes,
        "predicted": {name: int(predicted.get(name, 0)) for name in classes},
        "training": None,
        "drift": [*filter(None, [found.aligned]), *found.drift],
        "features": _moved(model, new, found.graph),
        "alarms": None,
        "periods": [],
        "labels": None,
    }
    if info.statistics is not None:
        content["training"] = dict(zip(classes, info.statistics.labels, strict=True))
    if "flagged" in frame and decision is not None:
        flags, name = frame["flagged"].to_numpy(dtype=bool), classes[decision.positive]
        content["alarms"] = {"class": name, "threshold": decision.threshold, **_rate(flags)}
        assert found.probabilities is not None
        score = float(found.probabilities[:, decision.positive].mean())
        content["alarms"]["mean_probability"] = score
        if (before := decision.outcome) is not None:
            content["alarms"]["expected"] = before.flagged / before.nodes
            content["alarms"]["expected_interval"] = share_interval(before.flagged, before.nodes)
        if times is not None:
            content["periods"] = [
                {"period": period, **_rate(flags[rows])} for period, rows in _periods(times)
            ]
        if labels is not None:
            ids, truth = new.ids.astype(str), dict(labels)
            known = np.array([truth.get(id) in classes for id in ids], dtype=bool)
            right = np.array([truth.get(id) == name for id in ids], dtype=bool)
            hits = (known & right & flags).sum(), (known & flags).sum()
            counts = known.sum(), (known & right).sum(), hits[1], hits[0]
            now = Outcome(decision.threshold, *map(float, counts))
            content["labels"] = {
                **now._asdict(),
                "precision": share_interval(now.found, now.flagged),
                "recall": share_interval(now.found, now.positives),
                "unflagged": int((known & ~flags).sum()),
                "unknown": len(truth) - int(known.sum()),
                "words": now.words(name),
                "before": None if before is None else before.words(name),
                "precision_before": before and share_interval(before.found, before.flagged),
            }
    content["advice"] = _advice(model, content)
    return content


def _rate(flags: Any) -> dict[str, Any]:
    """Alarms among some nodes, with the interval of their share."""
    count, nodes = int(flags.sum()), len(flags)
    return {"nodes": nodes, "alarms": count, "interval": share_interval(count, nodes)}


def _moved(model: TableModel, new: NewNodes, graph: Any) -> list[dict[str, Any]]:
    """The features whose means are farthest from those of training, in standard deviations."""
    before, encoder = model.info.statistics, model.info.encoder
    if before is None or encoder is None:
        return []
    x = (new.tables.graph if graph is None else graph).x[new.rows].float().cpu()
    deviations = torch.tensor(before.deviations)
    steps = torch.where(
        deviations > 0, (x.mean(0) - torch.tensor(before.means)) / deviations, torch.tensor(0.0)
    )
    order = steps.abs().argsort(descending=True, stable=True)[:SHOWN].tolist()
    return [{"feature": encoder.names[index], "moved": float(steps[index])} for index in order]


def _periods(times: Any) -> list[tuple[str, Any]]:
    """Months of dates, or ranges of numbers, and the rows of each; not of nodes without a time."""
    table = str(times.attrs.get("file", "nodes"))
    values, rows = read_times(times, table), np.arange(len(times))
    known = np.isfinite(values)
    if date_form(times, table, None) is not None or column_kind(times, table) == "date":
        days = np.datetime64(0, "s") + values[known].astype("timedelta64[s]")
        names = days.astype("datetime64[M]").astype(str)
        return [(str(name), rows[known][names == name]) for name in np.unique(names)]
    edges = np.unique(values[known])
    if len(edges) > PERIODS:
        edges = np.linspace(edges[0], edges[-1], PERIODS + 1)[:-1]
    place = np.searchsorted(edges, values[known], side="right") - 1
    return [(f"from {edges[p]:g}", rows[known][place == p]) for p in np.unique(place)]


def _advice(model: TableModel, content: Mapping[str, Any]) -> list[str]:
    """Whether to refit, and why."""
    found, reasons = content["labels"], []
    now, before = (found and found[name] for name in ("precision", "precision_before"))
    if now and before and now[1] < before[0]:
        reasons.append("fewer alarms are right than on held-out nodes of training")
    alarms, decision = content["alarms"], model.info.decision
    if alarms is not None and alarms.get("expected_interval") and alarms["interval"]:
        (low, high), (least, most) = alarms["interval"], alarms["expected_interval"]
        if low > most or high < least:
            more = "more" if low > most else "fewer"
            reasons.append(f"there are {more} alarms than on held-out nodes of training")
    if found is not None and decision is not None:
        learnt = int((model.method_.labelled_.labels == decision.positive).sum())
        if found["positives"] >= max(ENOUGH, learnt / 2):
            text = f"{found['positives']:,.0f} labels of {alarms['class']} came back"
            reasons.append(f"{text}, and the model has learnt from {learnt:,}")
    if content["drift"]:
        reasons.append("nodes differ from training")
    if not reasons:
        return ["No reason to refit yet."]
    text = (
        "Refit with the labels that came back" if found else "Label some of these nodes, then refit"
    )
    return [f"{text}: {'; '.join(reasons)}."]


def read_labels(path: Any, id: str | None, label: str | None) -> dict[str, str]:
    """Classes by id of a table of labels that came back."""
    from evengraph.tables.columns import known_labels
    from evengraph.tables.read import read_table

    table = read_table(path)
    id = str(table.columns[0]) if id is None else id
    for role, name in (("id", id), ("label", label)):
        if name not in table.columns:
            names = ", ".join(map(str, table.columns))
            raise ValueError(f"{path} has no column {name!r} for the {role}; it has: {names}.")
    known = known_labels(table[label])
    rows = known.notna().to_numpy()
    pairs = zip(canonical_names(table[id])[rows], canonical_names(known)[rows], strict=True)
    found = dict[str, str]()
    for node, name in pairs:
        if found.setdefault(node, name) != name:
            raise ValueError(
                f"{path} labels {short(node)} as {short(found[node])} and {short(name)}."
            )
    return found
