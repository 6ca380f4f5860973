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


def lookup(content: object, *keys: str | int) -> Any:
    """Follow keys of mappings and indices of lists; `None` where there is nothing."""
    for key in keys:
        if isinstance(content, Mapping):
            content = content.get(key)
        elif isinstance(content, (list, tuple)) and isinstance(key, int):
            content = content[key] if 0 <= key < len(content) else None
        else:
            return None
    return content


def part(content: object, *keys: str | int) -> Mapping[str, Any]:
    """Return the mapping at `keys`, empty if there is none."""
    value = lookup(content, *keys)
    return value if isinstance(value, Mapping) else {}


def items(content: object, *keys: str | int) -> Sequence[Any]:
    """Return the list at `keys`, empty if there is none."""
    value = lookup(content, *keys)
    return value if isinstance(value, (list, tuple)) else ()


def average(values: Iterable[float | None]) -> float | None:
    """Mean of the defined values, `None` if there are none."""
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None
