"""load_model(): a fitted method back from the folder it was saved in."""

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
    """Read a method that `save` kept, ready to predict.

    What was given as `extra` is its attribute `extra_`. Nothing in the folder is executed: tensors
    come from safetensors, everything else from JSON.

    Args:
        folder: Where it was saved.
        device: Where it predicts; a model trained on a card needs none.
    """
    place = _place(device)
    about, tensors = read_model(folder)
    _check(about, folder)
    method = _made(about, folder)
    try:
        with seeded(0):  # networks are made with random weights before theirs are put in
            method.restore(about, tensors, place)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder} is damaged: {_in_short(error)}.") from error
    except RuntimeError as error:
        if "state_dict" not in str(error):  # a device without memory left
            raise
        raise ValueError(
            f"{folder} was saved by evengraph {about['evengraph']}, and its tensors do not fit "
            f"{method.title} as it is here: use that version, or fit again."
        ) from error
    return method


def _place(device: str | torch.device) -> torch.device:
    try:
        place = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device must be cpu, cuda or one like them, got {device!r}.") from None
    if place.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device must be one that is here, got {device!r}: try cpu.")
    return place


def _check(about: dict[str, Any], folder: str | Path) -> None:
    """Refuse a description that lacks something or has it in another form."""
    expected = dict.fromkeys(NUMBERS, int) | dict.fromkeys(LISTS, list)
    for name, kind in (expected | {"fields": dict, "extra": dict}).items():
        if not isinstance(about.get(name), kind):
            raise ValueError(f"{folder} is damaged: {name!r} is missing or of a wrong kind.")


def _made(about: dict[str, Any], folder: str | Path) -> Method:
    """The method with its fields, not fitted yet."""
    name, given = about["method"], about["fields"]
    if name not in METHODS:
        raise ValueError(
            f"{folder} holds the method {name!r} of evengraph {about['evengraph']}, which is not "
            f"here; here are {', '.join(METHODS)}."
        )
    kind = METHODS[name]
    unknown = sorted(set(given) - {item.name for item in fields(kind)})
    if unknown:
        raise ValueError(
            f"{folder} was saved by evengraph {about['evengraph']} with {', '.join(unknown)}, "
            f"which {kind.title} does not have here: use that version, or fit again."
        )
    try:
        return kind(**given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{folder} is damaged: {_in_short(error)}.") from error


def _in_short(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error).splitlines()[0].rstrip(".")
