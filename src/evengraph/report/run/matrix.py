"""The confusion matrix as a table: shaded by row, counts in the cells."""

from collections.abc import Mapping, Sequence
from typing import Any

from evengraph.report.run.values import ClassRow, confusion, decimals, shares, whole
from evengraph.report.svg.markup import Markup, join, tag

# above this share the cell is strong enough for the opposite text colour; the stylesheet's shades
# are chosen so that both text colours reach a contrast of 4.5 here, in light and in dark
FLIP = 0.7

# with more classes than this, a zero in every other cell would drown what matters
DENSE = 12


def matrix(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> Markup:
    """Draw the matrix summed over seeds, true classes down and predicted classes across.

    Args:
        result: The result.
        rows: The classes in the order of the page.
    """
    counts = confusion(result, rows)
    if not counts:
        return tag("p", "This result holds no confusion matrix.", class_="quiet")
    dense = len(rows) > DENSE
    heads = (_head(row, "col") for row in rows)
    corner = tag("td", tag("span", "true ↓"), tag("span", "predicted →"), class_="corner")
    body = (
        tag("tr", _head(row, "row"), *_cells(row, rows, line, dense))
        for row, line in zip(rows, counts, strict=True)
    )
    table = tag(
        "table",
        tag("caption", "Confusion matrix, counts of test nodes", class_="unseen"),
        tag("thead", tag("tr", corner, *heads)),
        tag("tbody", join(body)),
        class_="matrix dense" if dense else "matrix",
    )
    return tag(
        "div", table, class_="scroll", tabindex="0", role="region", aria_label="Confusion matrix"
    )


def mixed_up(
    result: Mapping[str, Any], rows: Sequence[ClassRow]
) -> list[tuple[float, ClassRow, ClassRow]]:
    """List the mistakes as (share of the true class, true class, predicted class), worst first."""
    found = [
        (share, true, guess)
        for true, line in zip(rows, confusion(result, rows), strict=False)
        for guess, share in zip(rows, shares(line), strict=True)
        if share > 0 and guess.index != true.index
    ]
    # sorting is stable, so equal shares stay in the order of the page
    return sorted(found, key=lambda mistake: -mistake[0])


def _head(row: ClassRow, scope: str) -> Markup:
    kind = "rare" if row.minority else None
    return tag("th", tag("span", row.name), scope=scope, class_=kind, title=row.name)


def _cells(
    true: ClassRow, rows: Sequence[ClassRow], counts: Sequence[float], dense: bool
) -> list[Markup]:
    total = whole(sum(counts))
    cells = []
    for guess, count, share in zip(rows, counts, shares(counts), strict=True):
        kinds = [
            *(["hit"] if guess.index == true.index else []),
            *(["strong"] if share >= FLIP else []),
            *(["none"] if count == 0 else []),
        ]
        words = (
            f"{true.name}, predicted as {guess.name}: "
            f"{whole(count)} of {total} ({decimals(100 * share)}%)"
        )
        cells.append(
            tag(
                "td",
                "" if dense and count == 0 else whole(count),
                style=f"--share:{share:.3f}",
                class_=" ".join(kinds) or None,
                title=words,
            )
        )
    return cells
