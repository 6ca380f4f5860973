"""The paper's own figures, to stand beside ours."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from evengraph.results import HEADLINE


def paper_cell(
    dataset: str, imbalance: str, fields: Mapping[str, Any], method: str
) -> dict[str, dict[str, float | None]] | None:
    """Mean and deviation that the paper gives for a set-up and a method, in percent.

    Args:
        dataset: Name of the graph.
        imbalance: Name of the protocol.
        fields: The protocol's fields; only those that the paper varies matter.
        method: Name of the method.
    """
    for row in _rows():
        if (
            (row["dataset"], row["imbalance"], row["method"]) == (dataset, imbalance, method)
            and float(row["ratio"]) == fields.get("ratio")
            and (not row["minority"] or int(row["minority"]) == fields.get("minority"))
        ):
            return {
                name: {"mean": float(row[name]), "std": _number(row[f"{name}_std"])}
                for name in HEADLINE
            }
    return None


def _number(text: str) -> float | None:
    return float(text) if text else None


def _rows() -> list[dict[str, str]]:
    text = files("evengraph.experiment").joinpath("paper.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))
