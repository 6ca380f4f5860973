"""Check that a dataclass read from a file holds what its annotations say."""

from __future__ import annotations

import sys
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from evengraph.core.errors import short

LARGEST = sys.float_info.max


def check_types(stored: Any) -> None:
    """Raise ValueError for a field of another type; numbers must be finite."""
    hints = get_type_hints(type(stored))
    for item in fields(stored):
        value = getattr(stored, item.name)
        if not _fits(value, hints[item.name]):
            raise ValueError(f"{item.name} of a stored {type(stored).__name__} is {short(value)}")


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        if not isinstance(value, tuple | list):
            return False
        if len(parts) == 2 and parts[1] is Ellipsis:
            return all(_fits(item, parts[0]) for item in value)
        return len(value) == len(parts) and all(map(_fits, value, parts))
    if hint is float:
        return type(value) in (int, float) and abs(value) <= LARGEST
    if hint is int:
        return type(value) is int
    return isinstance(value, hint) if hint in (str, bool, NoneType) else True
