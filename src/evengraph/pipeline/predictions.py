"""Predictions of a saved model as a table: probabilities, flags, intervals and abstention."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.methods import Method
from evengraph.metrics.binary import flagged
from evengraph.metrics.calibration import adjust_to_shares, estimate_shares
from evengraph.metrics.decisions import Abstention, covering
from evengraph.pipeline.model_info import DIFFERENT, ModelInfo, NewNodes, Threshold
from evengraph.pipeline.sources import ModelInput

Transform = Callable[[Tensor], Tensor]
"""Calibration or correction of probabilities, (N, C)."""

ESTIMATE = "estimate"  # the prior that is estimated from the predictions
VANISHED = 0.01  # part of its share in training below which a class has vanished


class NodePredictions(NamedTuple):
    """What a model says about some nodes."""

    frame: Any  # one row per node, as `TableModel.predict` returns it
    drift: list[str]  # sentences about how the nodes differ from training
    shares: dict[str, float] | None  # of classes, that probabilities are corrected for
    abstention: Abstention | None  # from which confidence on nodes are decided, and the error then
    aligned: str = ""  # which number columns had moved as a whole and were moved back
    graph: Data | None = None  # that was predicted, with these columns moved back
    doubt: str = ""  # why probabilities are not corrected for estimated class shares
    threshold: Threshold | None = None  # from which probability in the frame on nodes are flagged
    probabilities: Tensor | None = None  # those in the frame, (M, C)
    calibrated: bool = False  # whether they are
    by_number: bool = False  # whether it was said how many nodes to flag


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
    given = ModelInput.of(nodes, method, info, align and prior is None)
    found = _predict(method, info, classes, given, prior=prior, **options)
    if not (found.doubt and align):
        return found
    given = ModelInput.of(nodes, method, info, True)
    return _predict(method, info, classes, given, **options)._replace(doubt=found.doubt)


def _predict(
    method: Method,
    info: ModelInfo,
    classes: Sequence[str],
    given: ModelInput,
    *,
    calibrated: bool | None = None,
    prior: str | Mapping[str, float] | None = None,
    abstain: float | None = None,
    max_error: float | None = None,
    alerts: float | None = None,
    coverage: float | None = None,
    raw: Tensor | None = None,
) -> NodePredictions:
    abstention = None
    if abstain is not None and max_error is not None:
        raise ValueError("abstain and max_error exclude each other, got both.")
    if abstain is not None or max_error is not None:
        if info.risk is None:
            raise ValueError("This model holds no errors on validation: train and save it again.")
        by_error = None if max_error is None else info.risk.at_error(max_error)
        abstention = by_error if abstain is None else info.risk.at_share(abstain)
    if abstention is not None and prior is not None:
        raise ValueError(
            "prior excludes abstain and max_error: the errors on validation hold for its classes."
        )
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
    if abstention is not None:
        frame["abstained"] = (raw.double().max(1).values < abstention.confidence).tolist()
    about = (drift, shares, abstention, given.aligned, given.graph, doubt, threshold, shown)
    return NodePredictions(frame, *about, calibrated or shares is not None, alerts is not None)


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
