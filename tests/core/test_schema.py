"""Stored JSON as dataclasses: strict types, bounded sizes, and the path of what is wrong."""

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import pytest
from pydantic import ValidationError

from evengraph.core.schema import DEEPEST, LONGEST_TEXT, SchemaError, _validator, check_size, read


class Point(NamedTuple):
    x: float
    y: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Inner:
    scale: float = 1.0

    def __post_init__(self):
        if self.scale == 0:
            raise ValueError("scale must not be 0")
        if self.scale < 0:
            raise SchemaError("must be positive", "scale")


@dataclass(frozen=True, kw_only=True)
class Stored:
    name: str
    count: int = 1
    scale: float = 1.5
    flag: bool = True
    items: tuple[str, ...] = ()
    pair: tuple[float, float] = (1, 2.0)
    other: str | None = None
    kind: Literal["x", "y"] = "x"
    points: tuple[Point, ...] = ()
    parts: dict[str, Inner] = field(default_factory=dict)


def test_what_fits_becomes_an_object():
    content = {"name": "a", "scale": 3, "items": ["b"], "points": [[1, 2], {"x": 3}]}
    expected = Stored(
        name="a", scale=3.0, items=("b",), points=(Point(1, 2), Point(3)), parts={"k": Inner()}
    )
    assert read(Stored, content | {"parts": {"k": {"scale": 1}}}) == expected


WRONG = [
    ({"name": None}, "name must be a valid string, got None"),
    ({"count": True}, "count must be a valid integer, got True"),
    ({"count": 1.0}, "count must be a valid integer, got 1.0"),
    ({"count": "1"}, "count must be a valid integer, got '1'"),
    ({"scale": "1"}, "scale must be a valid number, got '1'"),
    ({"scale": math.nan}, "scale must be a finite number, got nan"),
    ({"flag": 1}, "flag must be a valid boolean, got 1"),
    ({"items": "ab"}, "items must be a valid array, got 'ab'"),
    ({"items": ["a", 1]}, "items[1] must be a valid string, got 1"),
    ({"pair": [1]}, "pair[1] is missing"),
    ({"other": 3}, "other must be a valid string, got 3"),
    ({"kind": "z"}, "kind must be 'x' or 'y', got 'z'"),
    ({"points": [[1, 2], ["a"]]}, "points[1][0] must be a valid number, got 'a'"),
    ({"colour": 1}, "colour is unknown"),
    ({"parts": {"k": {"scale": 0}}}, "parts.k does not fit: scale must not be 0"),
    ({"parts": {"k": {"scale": -1}}}, "parts.k.scale must be positive"),
    ({"count": 10**400}, f"count must be below 2^63, got {10**76}..."),
    ({"name": "x" * (LONGEST_TEXT + 1)}, "name must have at most 10,000 characters"),
    ({"x" * (LONGEST_TEXT + 1): 1}, "must have at most 10,000 characters"),
    ({"x" * 1000: 1}, f"{'x' * 60} is unknown"),
    (dict.fromkeys(map(str, range(100_001))), "must have at most 100,000 entries"),
    ({"name": "\ud800"}, "name holds halves of surrogate pairs"),
]


@pytest.mark.parametrize(("change", "told"), WRONG, ids=lambda value: str(value)[:40])
def test_what_does_not_fit_is_named(change, told):
    with pytest.raises(SchemaError) as caught:
        read(Stored, {"name": "a"} | change)
    assert str(caught.value) == told
    with pytest.raises(SchemaError) as caught:
        read(Stored, {"name": "a"} | change, "extra", 2)
    assert str(caught.value) == f"extra[2]{'' if told.startswith('must') else '.'}{told}".replace(
        "]must", "] must"
    )


@pytest.mark.parametrize("content", [None, 1, "a", [], [1]])
def test_what_is_no_object(content):
    with pytest.raises(SchemaError, match=r"is missing|must be"):
        read(Stored, content)


def test_nesting_has_a_limit():
    content = []
    for _ in range(DEEPEST):
        content = [content]
    check_size(content)
    with pytest.raises(SchemaError, match="is nested too deeply"):
        check_size([content])


def test_a_list_ends_at_its_first_mistake():
    with pytest.raises(ValidationError) as caught:
        _validator(Stored).validate_json('[{"name": "a", "items": [1, 2, 3]}]')
    assert caught.value.error_count() == 1
