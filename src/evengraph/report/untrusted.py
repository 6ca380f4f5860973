"""Read values of a result file without trusting them: any may be missing, null or NaN."""

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any


def number(value: object) -> float | None:
    """Return a finite float, `None` for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    # larger than any real result, and small enough that sums and axes stay finite
    return result if abs(result) < 1e100 else None


def part(mapping: object, key: str) -> Mapping[str, Any]:
    """Return the mapping under `key`, empty if there is none."""
    value = mapping.get(key) if isinstance(mapping, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def items(mapping: object, key: str) -> Sequence[Any]:
    """Return the list under `key`, empty if there is none."""
    value = mapping.get(key) if isinstance(mapping, Mapping) else None
    return value if isinstance(value, (list, tuple)) else ()


def entry(values: Sequence[Any], index: int) -> Any:
    """Return an entry of a list, `None` outside of it."""
    return values[index] if 0 <= index < len(values) else None


def average(values: Iterable[float | None]) -> float | None:
    """Mean of the defined values, `None` if there are none."""
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None
