"""load_model(): read a fitted method from the folder it was saved in."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from evengraph.core.rng import seeded
from evengraph.methods import METHODS, Method
from evengraph.methods.bases.model_folder import read_model

NUMBERS = ("num_features", "num_classes")
LISTS = ("class_names", "history")


def load_model(folder: str | Path, *, device: str | torch.device = "cpu") -> Method:
    """Read a method that `save` wrote, ready to predict.

    Its attribute `extra_` holds what `save` was given as `extra`. Nothing in the folder is
    executed: tensors are read from safetensors, everything else from JSON.

    Args:
        folder: The folder of the model.
        device: Where to predict; need not be the kind of device that it was trained on.
    """
    target = _available(device)
    about, tensors = read_model(folder)
    _check(about, folder)
    method = _make_method(about, folder)
    try:
        with seeded(0):  # networks draw random weights before theirs are loaded
            method.restore(about, tensors, target)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder} is damaged: {_first_line(error)}.") from error
    except RuntimeError as error:
        if "state_dict" not in str(error):  # such as a device that is out of memory
            raise
        raise ValueError(
            f"{folder} was saved by evengraph {about['evengraph']}, and its tensors do not fit "
            f"{method.title} of this version: use that version, or fit again."
        ) from error
    return method


def _available(device: str | torch.device) -> torch.device:
    try:
        result = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device must be a torch device such as cpu, got {device!r}.") from None
    if result.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device must be available, got {device!r}: try cpu.")
    return result


def _check(about: dict[str, Any], folder: str | Path) -> None:
    """Check that every part of the description is there and has the right type."""
    expected = dict.fromkeys(NUMBERS, int) | dict.fromkeys(LISTS, list)
    for name, kind in (expected | {"fields": dict, "extra": dict}).items():
        if not isinstance(about.get(name), kind):
            raise ValueError(f"{folder} is damaged: {name!r} is missing or has the wrong type.")


def _make_method(about: dict[str, Any], folder: str | Path) -> Method:
    """The unfitted method."""
    name, params = about["method"], about["fields"]
    if name not in METHODS:
        raise ValueError(
            f"{folder} holds the method {name!r} of evengraph {about['evengraph']}, which this "
            f"version does not have; it has {', '.join(METHODS)}."
        )
    kind = METHODS[name]
    unknown = sorted(set(params) - {item.name for item in fields(kind)})
    if unknown:
        raise ValueError(
            f"{folder} was saved by evengraph {about['evengraph']} with {', '.join(unknown)}, "
            f"which {kind.title} does not have in this version: use that version, or fit again."
        )
    try:
        return kind(**params)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{folder} is damaged: {_first_line(error)}.") from error


def _first_line(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error).splitlines()[0].rstrip(".")
