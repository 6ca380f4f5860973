"""Record: one finished run; and files that appear whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

HEADLINE = ("balanced_accuracy", "macro_f1", "g_mean")
"""The metrics of the paper's tables."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one run gave: a method, a task, a seed. Metrics in percent.

    Shapes:
        per_class: lists of length C
        confusion_matrix: (C, C), rows are true classes
        history: lists with one entry an epoch, of its main stage
    """

    seed: int
    metrics: dict[str, float]
    per_class: dict[str, list[float]]
    confusion_matrix: list[list[int]]
    history: dict[str, list[float]]
    validation: float
    best_epoch: int
    epochs: int
    seconds: float
    interrupted: bool = False
    stages: int = 1

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON can hold it."""
        return asdict(self)


def mean_and_deviation(records: Sequence[Record]) -> tuple[dict[str, float], dict[str, float]]:
    """Mean and population deviation of every metric over runs, as the paper reports them."""
    names = records[0].metrics
    columns = {name: [record.metrics[name] for record in records] for name in names}
    mean = {name: fmean(values) for name, values in columns.items()}
    # pstdev fails on NaN, which stands for a metric that a test set leaves undefined
    std = {n: pstdev(v) if math.isfinite(mean[n]) else math.nan for n, v in columns.items()}
    return mean, std


def write_json(content: Any, path: Path) -> None:
    """Write a JSON file in one move; a figure that is undefined becomes null."""
    text = json.dumps(_plain(content), indent=1, allow_nan=False) + "\n"
    write_whole(numbers_on_one_line(text).encode(), path)


def csv_text(rows: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> str:
    """Rows as CSV below a line of names, by default those of the first row; None is left empty."""
    if names is None:
        names = list(rows[0]) if rows else []
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def numbers_on_one_line(text: str) -> str:
    """JSON with every list of numbers on one line: a history is thousands of epochs long."""
    return re.sub(r'\[\n[^\[\]{}"]*\]', _on_one_line, text)  # no string holds a line break


def write_whole(content: bytes, path: Path) -> None:
    """Write a file in one move: readers see the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)  # mkstemp keeps others out; results are meant to be passed on
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _on_one_line(numbers: re.Match[str]) -> str:
    """A list of numbers without the line breaks."""
    return " ".join(numbers[0].split()).replace("[ ", "[").replace(" ]", "]")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
