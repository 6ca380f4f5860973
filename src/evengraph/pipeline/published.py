"""Presets of methods per setting, and published values to compare with."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from evengraph.metrics.registry import HEADLINE

SETTING = ("dataset", "imbalance", "minority", "ratio", "method")

PAPER = {"patience": 1_000}
"""Parameters of every method in the paper that are not the defaults."""

Published = dict[str, dict[str, float | None]]
"""Mean and standard deviation per metric, in percent."""


def paper_cell(
    dataset: str,
    imbalance: str,
    fields: Mapping[str, Any],
    name: str,
    *,
    table: Literal["paper", "ablation", "published"] = "paper",
) -> Published | None:
    """Published values for a method in a setting.

    Args:
        dataset: Name of the data set.
        imbalance: Name of the split protocol.
        fields: Parameters of the protocol; only those that the paper varies count.
        name: Name of the method; its label in the other two tables.
        table: The paper's comparison, its ablation, or values of other papers.
    """
    column = "method" if table == "paper" else "label"
    wanted = {"dataset": dataset, "imbalance": imbalance, column: name}
    for row in _rows(f"{table}.csv"):
        if (
            all(row[key] == value for key, value in wanted.items())
            and float(row["ratio"]) == fields.get("ratio")
            and (not row["minority"] or int(row["minority"]) == fields.get("minority"))
        ):
            return {
                metric: {"mean": _number(row.get(metric)), "std": _number(row.get(f"{metric}_std"))}
                for metric in HEADLINE
            }
    return None


def _number(text: str | None) -> float | None:
    return float(text) if text else None


@cache
def _rows(file: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def preset_for(
    dataset: str, imbalance: str, fields: Mapping[str, Any], method: str
) -> dict[str, Any] | None:
    """The parameters of a method in a setting, if there is a preset.

    `fields` are all parameters of the split protocol.
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
