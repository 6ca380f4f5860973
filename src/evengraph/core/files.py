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
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from evengraph.core.limits import MAX_TEXT_BYTES
from evengraph.core.sizes import format_size


def write_json(content: Any, path: Path) -> None:
    """Write a JSON file atomically; NaN and infinity become null."""
    text = json.dumps(_json_value(content), indent=1, allow_nan=False) + "\n"
    write_atomic(compact_number_lists(text).encode(), path)


def read_settings(path: Traversable) -> str:
    """The text of a small file that a person wrote; one line if it is none."""
    with path.open("rb") as file:
        content = file.read(MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise ValueError(f"{path} is larger than {format_size(MAX_TEXT_BYTES)}.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {line} is not UTF-8 text; save it as UTF-8.") from None


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
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, OSError) and error.errno:  # it names no file, or the temporary one
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
