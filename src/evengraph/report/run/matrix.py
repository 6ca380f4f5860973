"""The confusion matrix as a table, each row shaded by its shares."""

from collections.abc import Mapping, Sequence
from typing import Any

from evengraph.report.formatting import integer, percentage
from evengraph.report.page import DENSE, FLIP, scroll
from evengraph.report.run.result_reader import ClassRow, confusion, shares
from evengraph.report.svg.markup import Markup, join, tag


def matrix(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> Markup:
    """Draw the matrix summed over seeds: true classes down, predicted classes across."""
    counts = confusion(result, rows)
    if not counts:
        return tag("p", "This result has no confusion matrix.", class_="quiet")
    dense = len(rows) > DENSE
    corner = tag("td", tag("span", "true ↓"), tag("span", "predicted →"), class_="corner")
    body = (
        tag("tr", _head(row, "row"), *_cells(row, rows, line, dense))
        for row, line in zip(rows, counts, strict=True)
    )
    table = tag(
        "table",
        tag("caption", "Confusion matrix, counts of test nodes", class_="unseen"),
        tag("thead", tag("tr", corner, *(_head(row, "col") for row in rows))),
        tag("tbody", join(body)),
        class_="matrix dense" if dense else "matrix",
    )
    return scroll(table, "Confusion matrix")


def confused_pairs(
    result: Mapping[str, Any], rows: Sequence[ClassRow]
) -> list[tuple[float, ClassRow, ClassRow]]:
    """List errors as (share of the true class, true class, predicted class), worst first."""
    pairs = [
        (share, true, guess)
        for true, line in zip(rows, confusion(result, rows), strict=False)
        for guess, share in zip(rows, shares(line), strict=True)
        if share > 0 and guess.index != true.index
    ]
    # sorting is stable, so equal shares stay in the order of the page
    return sorted(pairs, key=lambda pair: -pair[0])


def _head(row: ClassRow, scope: str) -> Markup:
    kind = "rare" if row.minority else None
    return tag("th", tag("span", row.name), scope=scope, class_=kind, title=row.name)


def _cells(
    true: ClassRow, rows: Sequence[ClassRow], counts: Sequence[float], dense: bool
) -> list[Markup]:
    total = integer(sum(counts))
    cells = []
    for guess, count, share in zip(rows, counts, shares(counts), strict=True):
        kinds = [
            *(["hit"] if guess.index == true.index else []),
            *(["strong"] if share >= FLIP else []),
            *(["none"] if count == 0 else []),
        ]
        of = f"{integer(count)} of {total} ({percentage(share, 1)})"
        cells.append(
            tag(
                "td",
                "" if dense and count == 0 else integer(count),
                style=f"--share:{share:.3f}",
                class_=" ".join(kinds) or None,
                title=f"{true.name}, predicted as {guess.name}: {of}",
            )
        )
    return cells
