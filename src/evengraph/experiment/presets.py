"""Presets: parameters selected on validation for the settings of the paper."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

SETTING = ("dataset", "imbalance", "minority", "ratio", "method")


def preset_for(
    dataset: str, imbalance: str, fields: Mapping[str, Any], method: str
) -> dict[str, Any] | None:
    """The parameters of a method in a setting, if there is a preset.

    Args:
        dataset: Name of the data set.
        imbalance: Name of the split protocol.
        fields: All parameters of the protocol.
        method: Name of the method.
    """
    setting = {"dataset": dataset, "imbalance": imbalance, "method": method, **fields}
    for preset in _presets():
        if all(setting.get(name) == preset[name] for name in SETTING if name in preset):
            params: dict[str, Any] = preset["fields"]
            return params
    return None


def _presets() -> list[dict[str, Any]]:
    text = packaged("presets.toml").read_text(encoding="utf-8")
    presets: list[dict[str, Any]] = tomllib.loads(text)["preset"]
    return presets


def packaged(name: str) -> Traversable:
    """A file of experiments/: inside an installed package, above it in a checkout."""
    installed = files("evengraph").joinpath("experiments", name)
    if installed.is_file():
        return installed
    return Path(__file__).resolve().parents[3] / "experiments" / name
