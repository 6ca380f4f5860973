"""Sections on classes: recall per class, and the confusion matrix with its frequent errors."""

from collections.abc import Mapping, Sequence
from typing import Any

from evengraph.report import page
from evengraph.report.formatting import decimals, integer, percentage, plural
from evengraph.report.run.result_reader import ClassRow, confusion, runs, shares
from evengraph.report.svg.charts import bar, dot_row, swatch
from evengraph.report.svg.markup import Markup, tag
from evengraph.report.untrusted import average, lookup, number

MOST_CLASSES = 300
"""Of which a confusion matrix is drawn: more take minutes, and nobody can read them."""


def recall_section(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> Markup:
    """Training nodes and recall of each class."""
    reference = number(lookup(result, "mean", "balanced_accuracy"))
    largest = max((row.count or 0.0 for row in rows), default=0.0)
    lines = []
    for row in rows:
        recall, size = decimals(average(row.recalls)), integer(row.count)
        size_bar = bar(f"{row.name}: {size} training nodes", row.count or 0.0, largest)
        axis = recall_row(row, reference)
        lines.append(page.class_row(row.name, size, size_bar, axis, recall, row.minority))
    text = "Classes are sorted by their number of training nodes."
    if number(lookup(result, "imbalance", "minority")) is None:
        text += " A minority class has fewer than half the training nodes of the largest class."
    marks = _recall_marks(rows, reference, several=len(runs(result)) > 1)
    columns = ("training nodes", "test recall, %")
    return page.class_section("Recall per class, head to tail", text, marks, columns, lines)


def scores_section(rows: Sequence[ClassRow]) -> Markup:
    """Precision, recall and F1 of each class, averaged over seeds; nothing without predictions."""
    if not any(value is not None for row in rows for value in row.precisions):
        return Markup("")
    heads = [tag("th", text, scope="col") for text in ("class", "precision", "recall", "F1")]
    lines = []
    for row in rows:
        values = (average(column) for column in (row.precisions, row.recalls, row.f1s))
        cells = (tag("td", decimals(value)) for value in values)
        lines.append(tag("tr", _class_name(row, "row"), *cells))
    title = "Precision, recall and F1 per class"
    text = "Means over seeds in percent, for the most likely class of each test node."
    return page.section(title, tag("p", text), page.table(title, heads, lines, "figures"))


def recall_row(row: ClassRow, reference: float | None) -> Markup:
    """Draw the recall of one class: one dot per seed, their range and their mean."""
    values = [value for value in row.recalls if value is not None]
    if not values:
        return dot_row(f"{row.name}: recall undefined", None, reference=reference)
    label = f"{row.name}: mean recall {decimals(average(values))}"
    span = (min(values), max(values)) if len(values) > 1 else None
    if span is not None:
        label += f", from {decimals(span[0])} to {decimals(span[1])}"
    if (f1 := average(row.f1s)) is not None:
        label += f"; mean F1 {decimals(f1)}"
    points = values if span else ()
    return dot_row(label, average(values), span=span, points=points, reference=reference)


def _recall_marks(
    rows: Sequence[ClassRow], reference: float | None, *, several: bool
) -> list[Markup]:
    entries = []
    for rare, word in ((False, "majority"), (True, "minority")):
        if group := [average(row.recalls) for row in rows if row.minority is rare]:
            text = plural(len(group), f"{word} class", f"{word} classes")
            recall = tag("b", f"mean recall {decimals(average(group))}")
            entry = tag("span", f"{text}, ", recall)
            entries.append(tag("li", swatch("bar"), entry, class_="rare" if rare else None))
    if several:
        entries.append(tag("li", swatch("whisker mean"), "mean and range over seeds"))
        entries.append(tag("li", swatch("seed"), "one seed"))
    if reference is not None:
        text = f"balanced accuracy {decimals(reference)}"
        entries.append(tag("li", swatch("reference"), text))
    return entries


def confusion_section(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> Markup:
    """Confusion matrix summed over seeds, and the most frequent errors."""
    counts = confusion(result, rows) if len(rows) <= MOST_CLASSES else []
    if not counts:
        text = "This result has no confusion matrix."
        if len(rows) > MOST_CLASSES:
            text = f"A matrix of more than {MOST_CLASSES} classes is not drawn."
        return page.section("Confusion matrix", tag("p", text, class_="quiet"))
    dense = len(rows) > page.DENSE
    text = (
        f"Test nodes summed over {plural(len(runs(result)), 'seed')}. Rows are shaded by their "
        "share of the true class, so that rare classes show as clearly as common ones."
    )
    text += " An empty cell is zero." if dense else ""
    ramp = tag("div", "0%", tag("i"), "100% of the true class", class_="ramp", aria_hidden="true")
    return page.section(
        "Confusion matrix",
        tag("p", text),
        tag("div", _matrix(rows, counts, dense), _frequent_errors(rows, counts), class_="beside"),
        ramp,
        kind="long" if dense else None,
    )


def _matrix(rows: Sequence[ClassRow], counts: Sequence[Sequence[float]], dense: bool) -> Markup:
    """True classes down, predicted classes across, each row shaded by its shares."""
    corner = tag("td", tag("span", "true ↓"), tag("span", "predicted →"), class_="corner")
    lines = []
    for true, line in zip(rows, counts, strict=True):
        cells = [_class_name(true, "row")]
        for guess, count, share in zip(rows, line, shares(line), strict=True):
            kinds = {"hit": guess is true, "strong": share >= page.FLIP, "none": count == 0}
            of = f"{integer(count)} of {integer(sum(line))} ({percentage(share, 1)})"
            cells.append(
                tag(
                    "td",
                    "" if dense and count == 0 else integer(count),
                    style=f"--share:{share:.3f}",
                    class_=" ".join(kind for kind, applies in kinds.items() if applies) or None,
                    title=f"{true.name}, predicted as {guess.name}: {of}",
                )
            )
        lines.append(tag("tr", *cells))
    heads = [corner, *(_class_name(row, "col") for row in rows)]
    kind = "matrix dense" if dense else "matrix"
    return page.table("Confusion matrix, counts of test nodes", heads, lines, kind)


def _class_name(row: ClassRow, scope: str) -> Markup:
    kind = "rare" if row.minority else None
    return tag("th", tag("span", row.name), scope=scope, class_=kind, title=row.name)


def _frequent_errors(rows: Sequence[ClassRow], counts: Sequence[Sequence[float]]) -> Markup:
    """The five largest shares of a true class predicted as another, worst first."""
    pairs = [
        (share, true, guess)
        for true, line in zip(rows, counts, strict=True)
        for guess, share in zip(rows, shares(line), strict=True)
        if share > 0 and guess is not true
    ]
    # sorting is stable, so equal shares stay in the order of the page
    lines = [
        tag(
            "li",
            tag("span", tag("b", true.name), " predicted as ", guess.name),
            tag("b", percentage(share, 1)),
            class_="rare" if true.minority else None,
        )
        for share, true, guess in sorted(pairs, key=lambda pair: -pair[0])[:5]
    ]
    if not lines:
        return Markup("")
    heading = tag("h3", "Most frequent errors, share of the true class")
    return tag("aside", heading, tag("ol", *lines, class_="mixed"))
