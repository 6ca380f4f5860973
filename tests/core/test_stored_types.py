"""Types of what was read from a file, for every kind of annotation that is stored."""

import math
from dataclasses import dataclass
from typing import Literal

import pytest

from evengraph.core.untrusted import check_types


@dataclass
class Stored:
    name: str = "a"
    count: int = 1
    scale: float = 1.5
    flag: bool = True
    items: tuple[str, ...] = ("a", "b")
    pair: tuple[float, float] = (1, 2.0)
    other: str | None = None
    kind: Literal["x", "y"] = "x"


def test_what_is_right_passes():
    check_types(Stored())
    check_types(Stored(scale=3, items=[], other="b", kind="y"))


@pytest.mark.parametrize(
    "change",
    [
        {"name": 1},
        {"name": None},
        {"count": True},
        {"count": 1.0},
        {"scale": "1"},
        {"scale": math.nan},
        {"scale": math.inf},
        {"scale": 10**400},
        {"flag": 1},
        {"items": "ab"},
        {"items": (1,)},
        {"pair": (1.0,)},
        {"other": 3},
        {"kind": "z"},
    ],
    ids=str,
)
def test_what_is_wrong_is_named(change):
    (name,) = change
    with pytest.raises(ValueError, match=f"^{name} of a stored Stored is "):
        check_types(Stored(**change))
