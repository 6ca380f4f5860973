"""The result of a run in one or two sentences, for the head of its page."""

from collections.abc import Mapping, Sequence
from typing import Any

from evengraph.report.formatting import decimals
from evengraph.report.run.result_reader import ClassRow
from evengraph.report.run.two_classes import PRECISION, at_threshold, base_rate, is_two_class
from evengraph.report.svg.markup import Markup, tag
from evengraph.report.untrusted import average, lookup, number


def verdict(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> Markup:
    """What the test says, compared with chance; nothing without scores."""
    sentences = _two_classes(result, rows) if is_two_class(result) else _classes(result, rows)
    if not sentences:
        return Markup("")
    first, *rest = sentences
    return tag("p", tag("b", first), *(f" {sentence}" for sentence in rest), class_="verdict")


def _classes(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> list[str]:
    """Balanced accuracy, and the recall of the minority classes."""
    mean = number(lookup(result, "mean", "balanced_accuracy"))
    if mean is None or not rows:
        return []
    chance = decimals(100 / len(rows))
    found = [f"Balanced accuracy is {decimals(mean)}% on test nodes; guessing gives {chance}%."]
    rare = [row for row in rows if row.minority]
    recall = average(average(row.recalls) for row in rare)
    if recall is not None:
        names = f"class {rare[0].name}" if len(rare) == 1 else f"the {len(rare)} minority classes"
        kind = "Recall" if len(rare) == 1 else "Mean recall"
        found.append(f"{kind} of {names} is {decimals(recall)}%.")
    return found


def _two_classes(result: Mapping[str, Any], rows: Sequence[ClassRow]) -> list[str]:
    """The ranking against the base rate, and the decisions at the threshold."""
    mean, chance = number(lookup(result, "mean", PRECISION)), base_rate(result)
    rare = next((f"class {row.name}" for row in rows if row.minority), "the rarer class")
    against = "" if chance is None else f"; a random ranking has {decimals(chance)}%"
    found = [f"Average precision for {rare} is {decimals(mean)}% on test nodes{against}."]
    recall, precision = (at_threshold(result, name) for name in ("recall", "precision"))
    if recall is not None and precision is not None:
        found.append(
            f"At the threshold, {decimals(recall)}% of {rare} is found and {decimals(precision)}% "
            "of the alarms are correct."
        )
    return found
