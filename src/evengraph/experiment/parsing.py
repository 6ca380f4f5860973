"""Names and seeds from text."""

from __future__ import annotations

import re

from evengraph.experiment.fields import unknown
from evengraph.methods import METHODS

MOST_SEEDS = 1000


def known_method(name: str) -> str:
    """The key of a method in `METHODS`, also for its title: `graphens` for GraphENS."""
    key = name.lower().replace("-", "").replace(" ", "")
    if key not in METHODS:
        raise ValueError(unknown("method", name, [*METHODS, "all"]))
    return key


def parse_seeds(text: str) -> list[int]:
    """Read `5,6,7` or `5-24`."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None:
            raise ValueError(f"seeds must be whole numbers such as 5,6,7 or 5-24, got {text!r}.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"seeds must run upwards, got {part.strip()!r}.")
        if last >= 2**32 or last - first >= MOST_SEEDS:
            limits = f"below 2^32 and at most {MOST_SEEDS} at a time"
            raise ValueError(f"seeds must be {limits}, got {part.strip()!r}.")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))
