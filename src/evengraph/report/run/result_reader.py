"""Classes, confusion matrices and runs of a result whose shape is not trusted."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evengraph.report.untrusted import entry, items, number, part


@dataclass(frozen=True, kw_only=True)
class ClassRow:
    """One class as the page shows it.

    Args:
        index: Label of the class in the graph.
        name: Its name.
        count: Number of its training nodes.
        minority: Whether it is a minority class.
        recalls: Recall in percent, one entry per run.
        f1s: F1 in percent, one entry per run.
    """

    index: int
    name: str
    count: float | None
    minority: bool
    recalls: list[float | None]
    f1s: list[float | None]


def runs(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the finished runs."""
    return [run for run in items(result, "runs") if isinstance(run, Mapping)]


def class_rows(result: Mapping[str, Any]) -> list[ClassRow]:
    """Return every class, the largest first."""
    counts = [number(count) for count in items(result, "class_counts")]
    total = number(part(result, "dataset").get("num_classes"))
    # a result without counts still has classes; an absurd number must not make a million rows
    counts += [None] * (min(int(total or 0), 1000) - len(counts))
    names = items(part(result, "dataset"), "class_names")
    rare = minority(result, counts)
    rows = [
        ClassRow(
            index=index,
            name=_name(entry(names, index), index),
            count=count,
            minority=index in rare,
            recalls=_per_class(result, "recall", index),
            f1s=_per_class(result, "f1", index),
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
    wanted = number(part(result, "imbalance").get("minority"))
    if wanted is not None:
        return {-index for _, index in known[: max(int(wanted), 0)]}
    return {-index for count, index in known if count < known[-1][0] / 2}


def confusion(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> list[list[float]]:
    """Sum the confusion matrices of all runs, in the order of `rows`; empty without any."""
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


def _name(name: object, index: int) -> str:
    return name.strip() if isinstance(name, str) and name.strip() else f"class {index}"


def _per_class(result: Mapping[str, Any], key: str, index: int) -> list[float | None]:
    return [number(entry(items(part(run, "per_class"), key), index)) for run in runs(result)]


def _cell(matrix: Sequence[Any], true: int, guess: int) -> float:
    row = entry(matrix, true)
    value = entry(row, guess) if isinstance(row, (list, tuple)) else None
    return max(number(value) or 0.0, 0.0)
