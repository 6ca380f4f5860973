"""Predictions of a saved model as a table: probabilities, flags, intervals and abstention."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from evengraph.methods import Method
from evengraph.methods.bases.committee import Committee
from evengraph.metrics.abstention import Abstention
from evengraph.metrics.binary import flagged
from evengraph.metrics.priors import adjust_to_shares, estimate_shares
from evengraph.pipeline.drift import DIFFERENT
from evengraph.pipeline.model_info import ModelInfo
from evengraph.tables.cells import import_pandas

Transform = Callable[[Tensor], Tensor]
"""Calibration or correction of probabilities, (N, C)."""

ESTIMATE = "estimate"
"""The prior that is estimated from the predictions."""


DOUBTFUL = (
    "The estimated class shares are doubtful: they assume that nodes of a class look as in "
    "training, and they do not. Give the shares if you know them."
)


class Predictions(NamedTuple):
    """What a model says about some nodes.

    Args:
        frame: One row per node, as `TableModel.predict` returns it.
        drift: Sentences about how the nodes differ from training; empty if they do not.
        shares: The class shares that probabilities are corrected for, if they are.
        abstention: From which confidence on nodes are decided, if not from 0, and the error then.
        aligned: Which number columns had moved as a whole and were moved back, if any.
    """

    frame: Any
    drift: list[str]
    shares: dict[str, float] | None
    abstention: Abstention | None
    aligned: str = ""


def predict_nodes(
    method: Method,
    info: ModelInfo,
    classes: Sequence[str],
    graph: Data,
    rows: Any,
    ids: Mapping[str, NDArray[Any]],
    *,
    calibrated: bool,
    prior: str | Mapping[str, float] | None = None,
    abstain: float | None = None,
    max_error: float | None = None,
    came: Data | None = None,
) -> Predictions:
    """Predict some rows of a graph, whose ids are given by the name of their column.

    The options are those of `TableModel.predict`; `came` is the graph before it was aligned, by
    default the same.
    """
    abstention = find_abstention(info, abstain, max_error)
    if abstention is not None and prior is not None:
        raise ValueError(
            "prior excludes abstain and max_error: the errors on validation hold for its classes."
        )
    raw = method.predict_proba(graph)[rows].cpu()
    transform: Transform = lambda probabilities: probabilities  # noqa: E731
    shares = None
    if prior is not None:
        transform, shares = corrected(info, prior, raw, classes)
    elif calibrated and info.calibrator is not None:
        transform = info.calibrator
    probabilities = transform(raw)
    frame = import_pandas().DataFrame(dict(ids))
    top, best = probabilities.max(1)
    labels = [int(name) for name in classes] if info.integer_labels else classes
    frame["class"] = [labels[index] for index in best.tolist()]
    frame["probability"] = top.tolist()
    committee = _committee(method, graph, rows)
    if committee is not None:
        members = torch.stack([transform(part) for part in committee.probabilities])
        low, high = committee._replace(probabilities=members).interval(best)
        frame["low"] = torch.minimum(low, top).tolist()
        frame["high"] = torch.maximum(high, top).tolist()
    for name, column in zip(classes, probabilities.T, strict=True):
        frame[f"p_{name}"] = column.tolist()
    if info.threshold is not None:  # which was chosen before calibration
        positive, value = info.threshold
        frame["flagged"] = flagged(raw[:, positive], value).tolist()
    if committee is not None:
        frame["agreement"] = committee.agreement(best).tolist()
    if abstention is not None:
        frame["abstained"] = (raw.double().max(1).values < abstention.confidence).tolist()
    drift = _drift(info, graph if came is None else came, rows, raw, classes)
    if prior == ESTIMATE and any(line.startswith(DIFFERENT) for line in drift):
        drift.append(DOUBTFUL)
    return Predictions(frame, drift, shares, abstention)


def find_abstention(
    info: ModelInfo, abstain: float | None, max_error: float | None
) -> Abstention | None:
    """From which confidence on to decide, by a share of undecided nodes or by the error."""
    if abstain is None and max_error is None:
        return None
    if abstain is not None and max_error is not None:
        raise ValueError("abstain and max_error exclude each other, got both.")
    if info.risk is None:
        raise ValueError("This model holds no errors on validation: train and save it again.")
    if abstain is not None:
        return info.risk.at_share(abstain)
    assert max_error is not None
    return info.risk.at_error(max_error)


def corrected(
    info: ModelInfo, prior: str | Mapping[str, float], raw: Tensor, classes: Sequence[str]
) -> tuple[Transform, dict[str, float]]:
    """A correction for class shares that differ from training, and these shares.

    Args:
        prior: `estimate`, or the share of each class, which are scaled to sum to one.
        raw: The probabilities to estimate them from.
    """
    if info.prior is None:
        raise ValueError("This model holds no class shares to correct: train and save it again.")
    calibrator, training = info.prior.calibrator, torch.tensor(info.prior.shares)
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


def _committee(method: Method, graph: Data, rows: Any) -> Committee | None:
    committee = method.predict_members(graph)
    if committee is None:
        return None
    part = committee._replace(probabilities=committee.probabilities[:, rows])
    return part.to(torch.device("cpu"))


def _drift(
    info: ModelInfo, graph: Data, rows: Any, raw: Tensor, classes: Sequence[str]
) -> list[str]:
    if info.statistics is None:
        return []
    names = () if info.encoder is None else info.encoder.names
    return info.statistics.compare(graph, rows, raw, features=names, classes=classes)
