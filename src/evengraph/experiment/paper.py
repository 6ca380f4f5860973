"""Published values, of the paper and of others, to compare with."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from evengraph.metrics import HEADLINE

Published = dict[str, dict[str, float | None]]
"""Mean and standard deviation per metric, in percent."""


def paper_cell(
    dataset: str, imbalance: str, fields: Mapping[str, Any], method: str
) -> Published | None:
    """The paper's values for a method in a setting.

    Args:
        dataset: Name of the data set.
        imbalance: Name of the split protocol.
        fields: Parameters of the protocol; only those that the paper varies count.
        method: Name of the method.
    """
    return _cell("paper.csv", dataset, imbalance, fields, method=method)


def ablation_cell(
    dataset: str, imbalance: str, fields: Mapping[str, Any], label: str
) -> Published | None:
    """Values of the paper's ablation table for a variant, by its label there."""
    return _cell("ablation.csv", dataset, imbalance, fields, label=label)


def published_cell(
    dataset: str, imbalance: str, fields: Mapping[str, Any], label: str
) -> Published | None:
    """Values of other papers for a method in a setting, by its label in our experiments."""
    return _cell("published.csv", dataset, imbalance, fields, label=label)


def _cell(
    file: str, dataset: str, imbalance: str, fields: Mapping[str, Any], **columns: str
) -> Published | None:
    columns |= {"dataset": dataset, "imbalance": imbalance}
    for row in _rows(file):
        if (
            all(row[name] == value for name, value in columns.items())
            and float(row["ratio"]) == fields.get("ratio")
            and (not row["minority"] or int(row["minority"]) == fields.get("minority"))
        ):
            return {
                name: {"mean": _number(row.get(name)), "std": _number(row.get(f"{name}_std"))}
                for name in HEADLINE
            }
    return None


def _number(text: str | None) -> float | None:
    return float(text) if text else None


@cache
def _rows(file: str) -> list[dict[str, str]]:
    text = files("evengraph.experiment").joinpath(file).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))
