"""Limits of an experiment file, a line of which can stand for billions of runs."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evengraph.experiment.spec import Entry, Spec

MOST_VALUES = 10_000
"""Values of one parameter, and trials of a search."""

MOST_RUNS = 1_000_000
MOST_PARTS = 100
"""Parts of a dotted key: to parse one takes memory that grows with their square."""

MOST_QUOTED_PARTS = 10
"""Those in quotes, between which the others are counted."""

_NO_KEY = re.compile(r"[^\w.\s\"'-]")
_AFTER_QUOTE = re.compile(r"""["'][ \t]*\.[ \t]*[\w"'-]""")  # a quoted part may hold any character


def check_keys(text: str) -> None:
    """Raise ValueError for a line with a key of too many parts, `a.b.c...`."""
    for number, line in enumerate(text.split("\n"), 1):  # as TOML, which knows no other line ends
        if line.lstrip().startswith("#"):
            continue
        most = max(part.count(".") for part in _NO_KEY.split(line))
        if most > MOST_PARTS:
            raise ValueError(f"line {number}: a key may have at most {MOST_PARTS} parts")
        if len(_AFTER_QUOTE.findall(line)) > MOST_QUOTED_PARTS:
            raise ValueError(
                f"line {number}: a key may have at most {MOST_QUOTED_PARTS} parts in quotes"
            )


def check_count(name: str, count: int) -> None:
    """Raise ValueError for too many values of a parameter."""
    if count > MOST_VALUES:
        raise ValueError(f"{name} must be at most {MOST_VALUES} values, got {count}")


def check_runs(spec: Spec) -> None:
    """Raise ValueError for an experiment of too many runs."""
    runs = sum(
        _settings(entry) * (len(spec.seeds) + len(entry.more_seeds)) for entry in spec.entries
    )
    runs *= len(spec.setups)
    if runs > MOST_RUNS:
        raise ValueError(f"an experiment may have at most {MOST_RUNS:,} runs, this has {runs:,}")


def _settings(entry: Entry) -> int:
    """How many combinations of parameters a method is run with."""
    trials = int(entry.search.get("trials", 1))
    return trials * math.prod(map(len, (entry.grid or entry.vary).values()))
