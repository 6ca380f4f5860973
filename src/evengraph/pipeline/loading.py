"""load_model(): read a fitted method from the folder it was saved in."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import torch

from evengraph.core.errors import first_line, one_line_errors
from evengraph.core.machine import pick_device
from evengraph.core.rng import seeded
from evengraph.core.untrusted import MAX_INTEGER
from evengraph.methods import METHODS, Method
from evengraph.methods.bases.saving import TensorMismatchError, read_model
from evengraph.pipeline.model_info import ModelInfo

TYPES = {
    "num_features": int,
    "num_classes": int,
    "class_names": list,
    "history": list,
    "fields": dict,
    "extra": dict,
}
"""The type of every part of the description that loading needs."""


@one_line_errors()
def load_model(folder: str | Path, *, device: str | torch.device = "cpu") -> Method:
    """Read a method that `save` wrote, ready to predict.

    Its attribute `extra_` holds what `save` was given as `extra`. Nothing in the folder is
    executed: tensors are read from safetensors, everything else from JSON.

    Args:
        folder: The folder of the model.
        device: Where to predict; need not be the kind of device that it was trained on.
    """
    target = pick_device(device)
    about, tensors = read_model(folder)
    for part, kind in TYPES.items():
        if not isinstance(about.get(part), kind):
            raise ValueError(f"{folder} is damaged: {part!r} is missing or has the wrong type.")
    name, params, version = about["method"], about["fields"], about["evengraph"]
    for part in ("num_features", "num_classes", "num_relations"):
        size, least = about.get(part, 0), int(part == "num_classes")
        if not isinstance(size, int) or not least <= size <= MAX_INTEGER:
            limits = f"between {least} and {MAX_INTEGER}"
            raise ValueError(f"{folder} is damaged: {part!r} must lie {limits}.")
    if not isinstance(name, str) or name not in METHODS:
        raise ValueError(
            f"{folder} holds the method {name!r} of evengraph {version}, which this version does "
            f"not have; it has {', '.join(METHODS)}."
        )
    kind = METHODS[name]
    try:
        params = kind.current_params(params)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{folder} is damaged: {first_line(error)}.") from error
    unknown = sorted(set(params) - {item.name for item in fields(kind)})
    if unknown:
        raise ValueError(
            f"{folder} was saved by evengraph {version} with {', '.join(unknown)}, which "
            f"{kind.title} does not have in this version: use that version, or fit again."
        )
    try:
        method = kind(**params)
        with seeded(0):  # networks draw random weights before theirs are loaded
            method.restore(about, tensors, target)
    except TensorMismatchError as error:
        raise ValueError(
            f"{folder} was saved by evengraph {version}, and its tensors do not fit {kind.title} "
            "of this version: use that version, or fit again."
        ) from error
    except KeyError as error:
        raise ValueError(f"{folder} is damaged: {error} is missing.") from error
    except MemoryError:
        raise
    except Exception as error:  # what is in the folder may be anything
        raise ValueError(f"{folder} is damaged: {first_line(error)}.") from error
    return method


def saved_info(method: Method, folder: str | Path) -> ModelInfo:
    """What was saved beside a method that was read from a folder."""
    try:
        info = ModelInfo.from_dict(method.extra_)
        info.check(method.num_features_, method.num_classes_)
        if method.class_names_ and len(method.class_names_) != method.num_classes_:
            raise ValueError(f"class_names must be {method.num_classes_} names")
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"{folder} is damaged: {first_line(error)}.") from error
    return info
