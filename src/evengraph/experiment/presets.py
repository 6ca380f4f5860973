"""Presets: settings picked on validation for the set-ups of the paper."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

SETUP = ("dataset", "imbalance", "minority", "ratio", "method")


def preset_for(
    dataset: str, imbalance: str, fields: Mapping[str, Any], method: str
) -> dict[str, Any] | None:
    """The method's fields picked for a set-up, if there is a preset.

    Args:
        dataset: Name of the graph.
        imbalance: Name of the protocol.
        fields: All fields of the protocol.
        method: Name of the method.
    """
    asked = {"dataset": dataset, "imbalance": imbalance, "method": method, **fields}
    for preset in _presets():
        if all(asked.get(name) == preset[name] for name in SETUP if name in preset):
            chosen: dict[str, Any] = preset["fields"]
            return chosen
    return None


def _presets() -> list[dict[str, Any]]:
    text = packaged("presets.toml").read_text(encoding="utf-8")
    presets: list[dict[str, Any]] = tomllib.loads(text)["preset"]
    return presets


def packaged(name: str) -> Traversable:
    """A file of experiments/: beside the code in an installed package, above it in a checkout."""
    installed = files("evengraph").joinpath("experiments", name)
    if installed.is_file():
        return installed
    return Path(__file__).resolve().parents[3] / "experiments" / name
