"""What a saved model says of nodes: predictions as a table, and how new nodes fare beside training.

`align` moves shifted columns back, `predict_nodes` predicts, `monitor` compares with training.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from evengraph import __version__
from evengraph.core.errors import short, unknown
from evengraph.methods import Method
from evengraph.metrics.binary import flagged
from evengraph.metrics.calibration import adjust_to_shares, estimate_shares
from evengraph.metrics.decisions import Outcome, covering
from evengraph.metrics.significance import share_interval
from evengraph.ops.features import feature_signatures, matching_signatures
from evengraph.pipeline.model_info import DIFFERENT, ID, ModelInfo, NewNodes, Threshold
from evengraph.tables.cells import canonical_names, column_kind, date_form, plural
from evengraph.tables.columns import known_labels, read_times
from evengraph.tables.read import read_table

if TYPE_CHECKING:
    from evengraph.pipeline.table_model import TableModel

ENOUGH = 200  # nodes from which quartiles are worth trusting
MOVED = 0.4  # standard deviations from which on a median has moved
EVENLY = 0.55  # of the largest step of a quartile; if the smallest is less, a tail has moved
DISTINCT = 10  # values from which on a column is a measurement, not a code
QUARTILES = (0.25, 0.5, 0.75)


def align(graph: Data, method: Method, info: ModelInfo) -> tuple[Data, str]:
    """Move the number columns of a graph that have moved as a whole back to where they were.

    Dates, flags and categories stay, and so does a graph that holds the nodes of training. Also
    returns a sentence about the columns; empty if nothing was done.
    """
    if info.encoder is None or info.statistics is None or not info.statistics.quartiles:
        return graph, ""
    nodes, _, signatures = method.labelled_
    index = (nodes < graph.num_nodes).nonzero().squeeze(1)
    found = feature_signatures(graph.x[nodes[index].to(graph.x.device)])
    same = matching_signatures(found.to(signatures.device), signatures[index])
    if graph.num_nodes < ENOUGH or 2 * int(same.sum()) > len(nodes):
        return graph, ""
    columns = np.flatnonzero(info.encoder.numbers)
    values = graph.x[:, columns].double().cpu().numpy()
    deviations = np.asarray(info.statistics.deviations)[columns]
    before = np.asarray(info.statistics.quartiles).reshape(-1, len(QUARTILES)).T
    steps = np.quantile(values, QUARTILES, axis=0) - before
    largest, smallest = np.abs(steps).max(0), np.abs(steps).min(0)
    moved = (smallest >= EVENLY * largest) & (np.abs(np.sign(steps).sum(0)) == len(QUARTILES))
    moved &= np.abs(steps[1]) >= MOVED * deviations
    moved &= np.array([len(np.unique(column)) >= DISTINCT for column in values.T], dtype=bool)
    if not moved.any():
        return graph, ""
    shift = torch.zeros(graph.num_features, dtype=graph.x.dtype)
    shift[columns[moved]] = torch.from_numpy(steps[1][moved]).to(shift)
    aligned = copy(graph)
    aligned.x = graph.x - shift.to(graph.x.device)
    sizes = zip(columns[moved], (steps[1] / deviations)[moved], strict=True)
    names = info.encoder.names
    parts = [f"{names[column]} by {step:+.1f} standard deviations" for column, step in sizes]
    return aligned, (
        f"Moved as a whole since training, and moved back: {', '.join(parts)}. "
        "This assumes similar nodes, measured at another place or time."
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelInput:
    """A graph as the method takes it."""

    graph: Data  # with the columns that have moved as a whole moved back
    rows: Any  # the nodes to predict, a slice or their indices
    ids: dict[str, NDArray[Any]]  # of these nodes, by the name of their column
    aligned: str = ""  # which columns were moved back

    @classmethod
    def of(cls, new: Data | NewNodes, method: Method, info: ModelInfo, aligns: bool) -> ModelInput:
        """What a model takes of a graph, or of tables that were opened.

        `aligns` moves columns back, not of PyG graphs and of nodes that attach to a known graph.
        """
        if isinstance(new, Data):
            return cls(graph=new, rows=slice(None), ids={ID: np.arange(new.num_nodes)})
        graph, aligned = new.tables.graph, ""
        if aligns and not new.attached:
            graph, aligned = align(graph, method, info)
        return cls(graph=graph, rows=new.rows, ids={new.id_name: new.ids}, aligned=aligned)


Transform = Callable[[Tensor], Tensor]
"""Calibration or correction of probabilities, (N, C)."""

ESTIMATE = "estimate"  # the prior that is estimated from the predictions
VANISHED = 0.01  # part of its share in training below which a class has vanished


class NodePredictions(NamedTuple):
    """What a model says about some nodes."""

    frame: Any  # one row per node, as `TableModel.predict` returns it
    drift: list[str]  # sentences about how the nodes differ from training
    shares: dict[str, float] | None  # of classes, that probabilities are corrected for
    aligned: str = ""  # which number columns had moved as a whole and were moved back
    graph: Data | None = None  # that was predicted, with these columns moved back
    doubt: str = ""  # why probabilities are not corrected for estimated class shares
    threshold: Threshold | None = None  # from which probability in the frame on nodes are flagged
    probabilities: Tensor | None = None  # those in the frame, (M, C)
    calibrated: bool = False  # whether they are
    by_number: bool = False  # whether it was said how many nodes to flag
    info: ModelInfo = ModelInfo()  # what decided: of the model, where known labels vote


def predict_nodes(
    method: Method,
    info: ModelInfo,
    classes: Sequence[str],
    nodes: Data | NewNodes,
    *,
    prior: str | Mapping[str, float] | None = None,
    align: bool = True,
    probabilities: Tensor | None = None,
    **options: Any,
) -> NodePredictions:
    """Predict some nodes of a graph; the options are those of `TableModel.predict`.

    Columns are not moved back where class shares are corrected: these move columns, too. If an
    estimate of them is doubtful, predictions are those without it.
    """
    if probabilities is not None:  # of all nodes of the graph, which are known already
        given = ModelInput.of(nodes, method, info, False)
        return _predict(method, info, classes, given, raw=probabilities[given.rows].cpu())
    graph = nodes if isinstance(nodes, Data) else nodes.tables.graph
    attached = not isinstance(nodes, Data) and nodes.attached
    info = info.on(method, graph)
    given = ModelInput.of(nodes, method, info, align and prior is None)
    found = _predict(method, info, classes, given, prior=prior, **options)
    if found.doubt and align:
        given = ModelInput.of(nodes, method, info, True)
        found = _predict(method, info, classes, given, **options)._replace(doubt=found.doubt)
    if method.recognises(graph) or not (method.uses_labels or attached):
        return found
    text = "Few labelled nodes of training are in this graph as they were"
    if attached:
        text = f"{text}: is the known graph the one that the model was trained on?"
        return found._replace(doubt=" ".join(filter(None, [found.doubt, text])))
    text = f"{text}. What labels around a node tell is missing: expect less than the test scores."
    return found._replace(drift=[text, *found.drift])


def _predict(
    method: Method,
    info: ModelInfo,
    classes: Sequence[str],
    given: ModelInput,
    *,
    calibrated: bool | None = None,
    prior: str | Mapping[str, float] | None = None,
    alerts: float | None = None,
    coverage: float | None = None,
    raw: Tensor | None = None,
) -> NodePredictions:
    if calibrated is None:
        calibrated = info.calibrates
    if calibrated and info.calibrator is None:
        raise ValueError("This model has no calibrator: it was not saved by TableModel.")
    if raw is None:
        raw = method.predict_proba(given.graph)[given.rows].cpu()
    drift: list[str] = []
    if (training := info.statistics) is not None:
        names = () if info.encoder is None else info.encoder.names
        drift = training.compare(given.graph, given.rows, raw, features=names, classes=classes)
    if given.aligned:  # what differs besides
        drift = [line.replace(DIFFERENT, f"Also d{DIFFERENT[1:]}", 1) for line in drift]
    shares, doubt = None, ""
    transform: Transform = info.calibrator if calibrated and info.calibrator else lambda rows: rows
    if prior is not None:
        correct, shares = corrected(info, prior, raw, classes)
        doubt = _doubt(info, shares, drift) if prior == ESTIMATE else ""
        transform, shares = (transform, None) if doubt else (correct, shares)
    shown, flags = transform(raw), info.flags(raw)
    threshold = None
    if info.decision is not None and flags is not None:
        positive, value = info.decision.positive, info.decision.threshold
        same = (calibrated, shares) == (info.calibrates, None)
        if alerts is not None:
            flags, same = _highest(shown[:, positive], alerts), False
        elif shares is not None and info.decision.rule.costs is not None:
            flags, same = flagged(shown[:, positive], value), True  # costs hold for these shares
        if not same:  # the lowest that is flagged
            value = float(shown[flags, positive].min()) if flags.any() else math.inf
        threshold = Threshold(positive, value)
    elif alerts is not None:
        raise ValueError("alerts need a model of two classes.")
    decided = flags, info.classes(raw, flags)
    frame = _frame(method, info, classes, given, shown, transform, decided, calibrated)
    if coverage is not None:
        if not info.sets or info.calibrator is None:
            raise ValueError("This model holds no prediction sets: train and save it again.")
        lowest = covering(info.sets, info.calibrator.counts, coverage)
        inside = info.calibrated(raw).double() >= lowest
        frame["set"] = [
            "|".join(name for name, held in zip(classes, row, strict=True) if held)
            for row in inside.tolist()
        ]
    about = (drift, shares, given.aligned, given.graph, doubt, threshold, shown)
    calibrated = calibrated or shares is not None
    return NodePredictions(frame, *about, calibrated, alerts is not None, info)


def _highest(scores: Tensor, alerts: float) -> Tensor:
    """The nodes with the highest scores, a number or a share below 1, bool, (M,).

    Of equal ones the first.
    """
    count = round(alerts * len(scores)) if alerts < 1 else int(alerts)
    order = scores.argsort(descending=True, stable=True)[:count]
    return torch.zeros(len(scores), dtype=torch.bool).index_fill(0, order, True)


def _frame(
    method: Method,
    info: ModelInfo,
    classes: Sequence[str],
    given: ModelInput,
    shown: Tensor,
    transform: Transform,
    decided: tuple[Tensor | None, Tensor],
    calibrated: bool,
) -> Any:
    """One row per node: id, class, probabilities, and what committees and thresholds add."""
    flags, best = decided
    frame = pd.DataFrame(given.ids)
    top = shown.gather(1, best.unsqueeze(1)).squeeze(1)
    labels = [int(name) for name in classes] if info.integer_labels else classes
    frame["class"] = [labels[index] for index in best.tolist()]
    heading, headings = info.headings(classes, calibrated)
    frame[heading] = top.tolist()
    committee = method.predict_members(given.graph)
    if committee is not None:
        part = committee._replace(probabilities=committee.probabilities[:, given.rows])
        committee = part.to(torch.device("cpu"))
        members = torch.stack([transform(part) for part in committee.probabilities])
        low, high = committee._replace(probabilities=members).interval(best)
        frame["low"] = torch.minimum(low, top).tolist()
        frame["high"] = torch.maximum(high, top).tolist()
    for name, column in zip(headings, shown.T, strict=True):
        frame[name] = column.tolist()
    if flags is not None:
        frame["flagged"] = flags.tolist()
    if committee is not None:
        frame["agreement"] = committee.agreement(best).tolist()
    return frame


def corrected(
    info: ModelInfo, prior: str | Mapping[str, float], raw: Tensor, classes: Sequence[str]
) -> tuple[Transform, dict[str, float]]:
    """A correction for class shares that differ from training, and these shares."""
    if info.calibrator is None or not info.calibrator.shares:
        raise ValueError("This model holds no class shares to correct: train and save it again.")
    calibrator, training = info.calibrator, torch.tensor(info.calibrator.shares)
    if isinstance(prior, str):
        if prior != ESTIMATE:
            raise ValueError(f"prior must be {ESTIMATE!r} or shares of classes, got {prior!r}.")
        shares = estimate_shares(calibrator(raw), training)
    else:
        usable = all(0 <= share < math.inf for share in prior.values())  # not so for NaN
        if set(prior) != set(classes) or not usable or sum(prior.values()) <= 0:
            names = ", ".join(classes)
            raise ValueError(f"prior must give a finite share of at least 0 to each of {names}.")
        shares = torch.tensor([prior[name] for name in classes], dtype=torch.float64)
        shares = shares / shares.sum()

    def transform(probabilities: Tensor) -> Tensor:
        return adjust_to_shares(calibrator(probabilities), training, shares).to(raw.dtype)

    return transform, dict(zip(classes, shares.tolist(), strict=True))


def _doubt(info: ModelInfo, shares: Mapping[str, float], drift: Sequence[str]) -> str:
    """Why estimated class shares cannot be trusted; empty if they can.

    Features may differ because of other shares alone, but if not, the estimate is far off.
    """
    before = info.calibrator.shares if info.calibrator else ()
    pairs = zip(shares.items(), before, strict=True)
    lost = [name for (name, share), usual in pairs if share < VANISHED * usual]
    if any(line.startswith(DIFFERENT) for line in drift):
        reason = "nodes differ from training"
    elif lost:
        reason = f"it leaves no {' and no '.join(lost)}"
    else:
        return ""
    found = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    return (
        f"Not corrected for class shares: the estimate ({found}) is doubtful, because {reason}. "
        "Give the shares if you know them."
    )


SHOWN = 8  # features that moved most
PERIODS = 12  # of times that are numbers
WORTH_IT = 20  # new labels of the rarer class that are worth refitting for


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
    found = model.predictions(new)
    info, frame = found.info, found.frame
    decision = info.decision
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
        "drift": [*filter(None, [found.aligned, found.doubt]), *found.drift],
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
            ignored = _ignored_labels(truth, set(ids), classes)
            if not known.any():
                raise ValueError(" ".join(["No label that came back can be used.", *ignored]))
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
                "ignored": ignored,
                "words": now.words(name),
                "before": None if before is None else before.words(name),
                "precision_before": before and share_interval(before.found, before.flagged),
            }
    content["advice"] = _advice(model, content)
    return content


def _ignored_labels(truth: Mapping[str, str], ids: set[str], classes: list[str]) -> list[str]:
    """A sentence on each class that the model does not know, and on ids that are not new."""
    counts = Counter(name for name in truth.values() if name not in classes)
    lower = {name.lower(): name for name in classes}
    sentences = [
        f"Ignored {plural(count, 'label')}. {unknown('class', name, classes, lower)}"
        for name, count in counts.most_common(5)
    ]
    others = [id for id, name in truth.items() if name in classes and id not in ids]
    if others:
        text = f"Ignored {plural(len(others), 'label')} of ids that are not among the new nodes"
        sentences.append(f"{text}; first: {short(others[0])}.")
    return sentences


def _rate(flags: Any) -> dict[str, Any]:
    """Alarms among some nodes, with the interval of their share."""
    count, nodes = int(flags.sum()), len(flags)
    return {"nodes": nodes, "alarms": count, "interval": share_interval(count, nodes)}


def _moved(model: TableModel, new: NewNodes, graph: Any) -> list[dict[str, Any]]:
    """The features whose means are farthest from those of training, in standard deviations."""
    before, encoder = model.info.statistics, model.info.encoder
    if before is None or encoder is None:
        return []
    steps = before.steps((new.tables.graph if graph is None else graph).x[new.rows].float())
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
        if found["positives"] >= max(WORTH_IT, learnt / 2):
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
