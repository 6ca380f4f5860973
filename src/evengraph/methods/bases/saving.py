"""Write a fitted method into a model folder, and restore it from what was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from evengraph.methods.bases.model_folder import write_model
from evengraph.training import History

if TYPE_CHECKING:
    from evengraph.methods.bases.method import Method


class Labelled(NamedTuple):
    """The training nodes, and signatures of their features to recognise them by.

    Shapes:
        nodes, labels: int64, (n,)
        signatures: float64, (n, 3)
    """

    nodes: Tensor
    labels: Tensor
    signatures: Tensor


def save_method(
    method: Method, state: Mapping[str, Tensor], folder: str | Path, extra: Mapping[str, Any] | None
) -> None:
    """Save a fitted method: its description, its state and the nodes it was trained on."""
    params, fitted = method.get_params(), method.fitted_params_
    changed = sorted(name for name in params if params[name] != fitted[name])
    if changed:
        raise ValueError(f"{', '.join(changed)} changed after fitting: fit again, then save.")
    about = {
        "method": type(method).__name__.lower(),
        "fields": fitted,
        "num_features": method.num_features_,
        "num_classes": method.num_classes_,
        "class_names": list(method.class_names_),
        "history": [asdict(history) for history in method.history_],
        "extra": dict(method.extra_ if extra is None else extra),
    }
    labelled = {f"labelled.{key}": value for key, value in method.labelled_._asdict().items()}
    write_model(folder, about, {**state, **labelled})


def restore_description(
    method: Method, about: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
) -> dict[str, Tensor]:
    """Set what `save_method` saved of any method; returns the tensors on the device."""
    state = {name: value.to(device) for name, value in tensors.items()}
    method.num_features_, method.num_classes_ = about["num_features"], about["num_classes"]
    method.class_names_, method.extra_ = tuple(about["class_names"]), dict(about["extra"])
    method.history_ = [History(**stage) for stage in about["history"]]
    method.fitted_params_, method.device_ = method.get_params(), device
    method.labelled_ = Labelled(*(state[f"labelled.{name}"] for name in Labelled._fields))
    return state
