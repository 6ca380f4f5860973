"""The explanation of a prediction: what speaks for the class and what against it."""

from __future__ import annotations

from collections.abc import Sequence

from evengraph.pipeline.explanation import Explanation, Influence
from evengraph.pipeline.suspects import column_words
from evengraph.report.svg.charts import percent
from evengraph.report.svg.markup import Markup, tag

Part = tuple[str, float, int | None]
"""A name, a contribution, and the row that a name links to."""


def why(explanation: Explanation | None) -> Markup:
    """The largest contributions as bars, for the class and against it."""
    heading = tag("h2", "Why the model thinks so")
    if explanation is None:
        return tag("section", heading, tag("p", "There is no trained model yet."))
    names = explanation.class_names or tuple(map(str, range(len(explanation.probabilities))))
    text = f"{names[explanation.predicted]} {explanation.probability:.0%}"
    if explanation.runner_up is not None:
        text += f", then {names[explanation.runner_up]}"
    columns: list[Part] = [
        (column_words(part), part.contribution, None) for part in explanation.columns
    ]
    labelled: list[Part] = [
        (_influence(one, names), one.contribution, one.node) for one in explanation.labelled
    ]
    return tag(
        "section",
        heading,
        tag("p", f"{text}. Bars to the right speak for it, to the left against it."),
        _bars("Columns", columns),
        _bars("Labelled nodes", labelled),
    )


def _influence(one: Influence, names: Sequence[str]) -> str:
    steps = "no path" if one.distance is None else f"{one.distance} away"
    return f"{one.id} ({names[one.label]}, {steps})"


def _bars(heading: str, parts: Sequence[Part]) -> Markup:
    largest = max((abs(value) for _, value, _ in parts), default=0.0)
    if not largest:
        return Markup("")
    lines = []
    for name, value, row in parts:
        width = 50 * abs(value) / largest
        left = 50 - width if value < 0 else 50
        kind = "against" if value < 0 else "for"
        bar = tag("rect", x=percent(left), width=percent(width), height="100%", class_=kind)
        axis = tag("line", x1="50%", x2="50%", y2="100%", class_="axis")
        picture = tag("svg", bar, axis, class_="bar", aria_hidden="true")
        text = tag("a", name, href=f"/node/{row}") if row is not None else tag("span", name)
        lines.append(tag("li", text, picture, tag("span", f"{value:+.2f}", class_="value")))
    return tag("div", tag("h3", heading), tag("ul", *lines, class_="parts"))
