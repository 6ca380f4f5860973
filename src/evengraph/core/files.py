"""Atomic file writes, JSON and CSV text."""

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
    """Write a JSON file atomically; NaN and infinity become null."""
    text = json.dumps(_json_value(content), indent=1, allow_nan=False) + "\n"
    write_atomic(compact_number_lists(text).encode(), path)


def csv_text(rows: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> str:
    """CSV with a header, by default the keys of the first row; None becomes an empty cell."""
    if names is None:
        names = list(rows[0]) if rows else []
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def compact_number_lists(text: str) -> str:
    """Put every list of numbers in JSON on one line: a history has thousands of epochs."""
    # no string holds a line break
    return re.sub(r'\[\n([^\[\]{}"]*)\]', lambda numbers: f"[{' '.join(numbers[1].split())}]", text)


def write_atomic(content: bytes, path: Path) -> None:
    """Write a file atomically: readers see the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)  # mkstemp makes it private; results are shared
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
