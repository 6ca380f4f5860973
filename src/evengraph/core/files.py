"""Atomic file writes: a file appears whole or not at all. JSON and CSV text."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


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
