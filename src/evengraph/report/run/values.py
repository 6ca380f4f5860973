"""Read a result without trusting it: any figure may be missing, null or NaN."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

DASH = "–"
MINUS = "−"


@dataclass(frozen=True, kw_only=True)
class ClassRow:
    """One class as the page shows it.

    Args:
        index: Label of the class in the graph.
        name: What people call it.
        count: Labelled training nodes.
        minority: Whether it is one of the rare classes.
        recalls: Recall in percent, one entry a run.
        f1s: F1 in percent, one entry a run.
    """

    index: int
    name: str
    count: float | None
    minority: bool
    recalls: list[float | None]
    f1s: list[float | None]


def number(value: object) -> float | None:
    """Return a finite float, or `None` for whatever else was found."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    # beyond any figure a run can mean, and small enough that sums and axes stay finite
    return found if abs(found) < 1e100 else None


def part(mapping: object, key: str) -> Mapping[str, Any]:
    """Return the mapping under `key`, empty where there is none."""
    found = mapping.get(key) if isinstance(mapping, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def items(mapping: object, key: str) -> Sequence[Any]:
    """Return the list under `key`, empty where there is none."""
    found = mapping.get(key) if isinstance(mapping, Mapping) else None
    return found if isinstance(found, (list, tuple)) else ()


def runs(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the finished runs."""
    return [run for run in items(result, "runs") if isinstance(run, Mapping)]


def decimals(value: object, digits: int = 1) -> str:
    """Show a figure with fixed digits, a thin dash where it is undefined."""
    found = number(value)
    if found is None:
        return DASH
    # adding zero turns a rounded -0.0 into 0.0
    return f"{round(found, digits) + 0.0:.{digits}f}".replace("-", MINUS)


def signed(value: float, digits: int = 1) -> str:
    """Show a difference with its sign."""
    text = decimals(value, digits)
    return f"+{text}" if round(value, digits) > 0 else text


def whole(value: object) -> str:
    """Show a count with thousands apart."""
    found = number(value)
    return DASH if found is None else f"{round(found):,}".replace("-", MINUS)


def spread(mean: object, std: object, digits: int = 1) -> str:
    """Show mean ± deviation, or the mean alone where the deviation is undefined."""
    if number(mean) is None or number(std) is None:
        return decimals(mean, digits)
    return f"{decimals(mean, digits)} ± {decimals(std, digits)}"


def plural(count: int, word: str, many: str | None = None) -> str:
    """Say `1 seed`, `3 seeds`."""
    return f"{count} {word if count == 1 else many or word + 's'}"


def average(values: Iterable[float | None]) -> float | None:
    """Mean of what is defined."""
    found = [value for value in values if value is not None]
    return math.fsum(found) / len(found) if found else None


def class_rows(result: Mapping[str, Any]) -> list[ClassRow]:
    """Return every class, the commonest first."""
    counts = [number(count) for count in items(result, "class_counts")]
    total = number(part(result, "dataset").get("num_classes"))
    # a result without counts still has classes; one absurd figure must not make a million rows
    counts += [None] * (min(int(total or 0), 1000) - len(counts))
    names = items(part(result, "dataset"), "class_names")
    rare = minority(result, counts)
    rows = [
        ClassRow(
            index=index,
            name=_name(names, index),
            count=count,
            minority=index in rare,
            recalls=_per_class(result, "recall", index),
            f1s=_per_class(result, "f1", index),
        )
        for index, count in enumerate(counts)
    ]
    return sorted(rows, key=lambda row: (row.count is None, -(row.count or 0.0), row.index))


def minority(result: Mapping[str, Any], counts: Sequence[float | None]) -> set[int]:
    """Say which classes are rare.

    Where the imbalance fixes how many classes are in the minority, these are the smallest ones.
    Otherwise a class is rare when it has fewer than half the training nodes of the largest.
    """
    known = sorted(
        ((count, -index) for index, count in enumerate(counts) if count is not None),
    )
    if not known or known[0][0] == known[-1][0]:
        return set()
    wanted = number(part(result, "imbalance").get("minority"))
    if wanted is not None:
        return {-index for _, index in known[: max(int(wanted), 0)]}
    return {-index for count, index in known if count < known[-1][0] / 2}


def confusion(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> list[list[float]]:
    """Sum the confusion matrices of all runs, in the order of `rows`; empty when none is there."""
    matrices = [matrix for run in runs(result) if (matrix := items(run, "confusion_matrix"))]
    if not matrices:
        return []
    order = [row.index for row in rows]
    return [
        [math.fsum(_cell(m, true, guess) for m in matrices) for guess in order] for true in order
    ]


def shares(counts: Sequence[float]) -> list[float]:
    """Divide a row by its sum; a class without test nodes stays at zero."""
    total = math.fsum(counts)
    return [count / total if total > 0 else 0.0 for count in counts]


def _name(names: Sequence[Any], index: int) -> str:
    name = names[index] if index < len(names) else None
    return name.strip() if isinstance(name, str) and name.strip() else f"class {index}"


def _per_class(result: Mapping[str, Any], key: str, index: int) -> list[float | None]:
    lists = [items(part(run, "per_class"), key) for run in runs(result)]
    return [number(values[index]) if index < len(values) else None for values in lists]


def _cell(matrix: Sequence[Any], true: int, guess: int) -> float:
    row = matrix[true] if true < len(matrix) else ()
    if not isinstance(row, (list, tuple)) or guess >= len(row):
        return 0.0
    return max(number(row[guess]) or 0.0, 0.0)
