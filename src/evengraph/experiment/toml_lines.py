"""The line of a key in a TOML file, which tomllib does not tell."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

MOST_WORK = 1_000_000
"""How many characters to parse at most; a file that needs more has no line."""


def line_of(lines: Sequence[str], path: Sequence[str | int]) -> int:
    """The line where a key begins; otherwise that of the table it belongs in, or 1.

    A key begins after the longest beginning of the file that is valid TOML and lacks it.
    """
    work = 0
    for length in range(len(path), 0, -1):
        line = 1
        for count in range(1, len(lines) + 1):
            beginning = "\n".join(lines[:count])
            work += len(beginning)
            if work > MOST_WORK:
                return 1
            try:
                content = tomllib.loads(beginning)
            except ValueError:  # in the middle of a value
                continue
            if _has(content, path[:length]):
                return line
            line = count + 1
    return 1


def _has(content: Any, path: Sequence[str | int]) -> bool:
    for key in path:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True
