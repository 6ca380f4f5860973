"""Figures of the paper, and of others, to stand beside ours."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from evengraph.metrics import HEADLINE

Published = dict[str, dict[str, float | None]]
"""Mean and deviation of each metric of the tables, in percent."""


def paper_cell(
    dataset: str, imbalance: str, fields: Mapping[str, Any], method: str
) -> Published | None:
    """What the paper gives for a set-up and a method.

    Args:
        dataset: Name of the graph.
        imbalance: Name of the protocol.
        fields: The protocol's fields; only those that the paper varies matter.
        method: Name of the method.
    """
    return _cell("paper.csv", dataset, imbalance, fields, method=method)


def ablation_cell(
    dataset: str, imbalance: str, fields: Mapping[str, Any], label: str
) -> Published | None:
    """What the paper's table of ablations gives for a variant, by its label there."""
    return _cell("ablation.csv", dataset, imbalance, fields, label=label)


def published_cell(
    dataset: str, imbalance: str, fields: Mapping[str, Any], label: str
) -> Published | None:
    """What other papers give for a set-up and a method, by its label in our experiments."""
    return _cell("published.csv", dataset, imbalance, fields, label=label)


def _cell(
    file: str, dataset: str, imbalance: str, fields: Mapping[str, Any], **wanted: str
) -> Published | None:
    wanted |= {"dataset": dataset, "imbalance": imbalance}
    for row in _rows(file):
        if (
            all(row[name] == value for name, value in wanted.items())
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
