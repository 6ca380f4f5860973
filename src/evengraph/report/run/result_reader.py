"""Classes, confusion matrices and runs of a result whose shape is not trusted."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evengraph.report.untrusted import items, lookup, number


@dataclass(frozen=True, kw_only=True)
class ClassRow:
    """One class as the page shows it; recall, F1 and precision in percent, one entry per run."""

    index: int  # label in the graph
    name: str
    count: float | None  # training nodes
    minority: bool
    recalls: list[float | None]
    f1s: list[float | None]
    precisions: list[float | None]


def runs(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the finished runs."""
    return [run for run in items(result, "runs") if isinstance(run, Mapping)]


def class_rows(result: Mapping[str, Any]) -> list[ClassRow]:
    """Return every class, the largest first."""
    counts = [number(count) for count in items(result, "class_counts")]
    total = number(lookup(result, "dataset", "num_classes"))
    # a result without counts still has classes; an absurd number must not make a million rows
    counts += [None] * (min(int(total or 0), 1000) - len(counts))
    rare = minority(result, counts)
    rows = [
        ClassRow(
            index=index,
            name=_name(lookup(result, "dataset", "class_names", index), index),
            count=count,
            minority=index in rare,
            recalls=_per_class(result, "recall", index),
            f1s=_per_class(result, "f1", index),
            precisions=[_precision(run, index) for run in runs(result)],
        )
        for index, count in enumerate(counts)
    ]
    return sorted(rows, key=lambda row: (row.count is None, -(row.count or 0.0), row.index))


def minority(result: Mapping[str, Any], counts: Sequence[float | None]) -> set[int]:
    """Return the indices of the minority classes.

    Where the split protocol fixes their number, these are the smallest classes. Otherwise a
    class with fewer than half the training nodes of the largest.
    """
    known = sorted((count, -index) for index, count in enumerate(counts) if count is not None)
    if not known or known[0][0] == known[-1][0]:
        return set()
    wanted = number(lookup(result, "imbalance", "minority"))
    if wanted is not None:
        return {-index for _, index in known[: max(int(wanted), 0)]}
    return {-index for count, index in known if count < known[-1][0] / 2}


def confusion(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> list[list[float]]:
    """Sum the confusion matrices of all runs, in the order of `rows`; empty without any."""
    matrices = [matrix for run in runs(result) if (matrix := items(run, "confusion_matrix"))]
    if not matrices:
        return []

    def count(true: int, guess: int) -> float:
        values = (number(lookup(matrix, true, guess)) or 0.0 for matrix in matrices)
        return math.fsum(max(value, 0.0) for value in values)

    return [[count(true.index, guess.index) for guess in rows] for true in rows]


def shares(counts: Sequence[float]) -> list[float]:
    """Divide a row by its sum; a class without test nodes stays at zero."""
    total = math.fsum(counts)
    return [count / total if total > 0 else 0.0 for count in counts]


def _name(name: object, index: int) -> str:
    return name.strip() if isinstance(name, str) and name.strip() else f"class {index}"


def _precision(run: Mapping[str, Any], index: int) -> float | None:
    """Share of the nodes predicted as a class that are of it; `None` if there are none."""
    matrix = items(run, "confusion_matrix")
    predicted = math.fsum(max(number(lookup(line, index)) or 0.0, 0.0) for line in matrix)
    hits = number(lookup(matrix, index, index))
    return None if hits is None or predicted <= 0 else 100 * hits / predicted


def _per_class(result: Mapping[str, Any], key: str, index: int) -> list[float | None]:
    return [number(lookup(run, "per_class", key, index)) for run in runs(result)]
