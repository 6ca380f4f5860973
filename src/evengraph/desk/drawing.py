"""The neighbourhood of a node as SVG: classes by colour and number, probabilities as arcs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evengraph.report.svg.charts import COLOURS
from evengraph.report.svg.markup import Markup, tag

WIDTH, HEIGHT = 560, 420
INNER, OUTER = 14, 24  # nodes of the two rings
RADIUS = 13.0
CENTRE = 19.0
MAX_CHARS = 14


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A node to draw.

    Args:
        row: Its row, which its page is named by.
        id: Its id.
        ring: 0 for the centre, 1 for neighbours, 2 for theirs.
        number: Of its class, labelled or predicted; None if nothing is known.
        name: The name of this class.
        probability: Of the predicted class; None for a label.
    """

    row: int
    id: str
    ring: int
    number: int | None = None
    name: str = ""
    probability: float | None = None

    @property
    def text(self) -> str:
        """The node in words."""
        if self.number is None:
            return f"{self.id}: not known"
        if self.probability is None:
            return f"{self.id}: labelled {self.name}"
        return f"{self.id}: {self.name} {self.probability:.0%}"


def colour(number: int) -> str:
    """The CSS class with the colour of a class."""
    return f"colour-{number % COLOURS}"


def draw(dots: Sequence[Dot], edges: Sequence[tuple[int, int]]) -> Markup:
    """Draw nodes on two rings around the first.

    Args:
        dots: The centre first.
        edges: Pairs of indices of dots.
    """
    points = _positions([dot.ring for dot in dots])
    lines = [
        tag("line", x1=points[a][0], y1=points[a][1], x2=points[b][0], y2=points[b][1])
        for a, b in edges
    ]
    parts = [_dot(dot, *point) for dot, point in zip(dots, points, strict=True)]
    return tag(
        "svg",
        tag("g", *lines, class_="edges"),
        *reversed(parts),  # the centre on top
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="near",
        role="group",
        aria_label=f"{dots[0].id} and {len(dots) - 1} nodes around it",
    )


def _positions(rings: Sequence[int]) -> list[tuple[float, float]]:
    points = []
    for index, ring in enumerate(rings):
        count, place = rings.count(ring), rings[:index].count(ring)
        angle = 2 * math.pi * (place + (0.5 if ring == 2 else 0.0)) / count - math.pi / 2
        x = WIDTH / 2 + ring * (WIDTH / 4 - 14) * math.cos(angle)
        y = HEIGHT / 2 + ring * (HEIGHT / 4 - 16) * math.sin(angle)
        points.append((round(x, 1), round(y, 1)))
    return points


def _dot(dot: Dot, x: float, y: float) -> Markup:
    radius = CENTRE if dot.ring == 0 else RADIUS
    kinds = ["dot", "labelled" if dot.number is not None and dot.probability is None else "guess"]
    kinds += ["centre"] if dot.ring == 0 else []
    kinds += [colour(dot.number)] if dot.number is not None else []
    parts = [tag("title", dot.text), tag("circle", cx=x, cy=y, r=radius)]
    if dot.probability is not None:
        parts.append(_arc(x, y, radius, dot.probability))
    if dot.number is not None:
        parts.append(tag("text", str(dot.number + 1), x=x, y=y + 4.5))
    if dot.ring < 2:
        id = dot.id if len(dot.id) <= MAX_CHARS else f"{dot.id[: MAX_CHARS - 1]}…"
        parts.append(tag("text", id, x=x, y=y + radius + 13, class_="id"))
    mark = tag("g", *parts, class_=" ".join(kinds))
    if dot.ring == 0:
        return mark
    return tag("a", mark, href=f"/node/{dot.row}", aria_label=dot.text)


def _arc(x: float, y: float, radius: float, share: float) -> Markup:
    """The part of a circle that a probability fills, clockwise from the top."""
    length = 2 * math.pi * radius
    return tag(
        "circle",
        cx=x,
        cy=y,
        r=radius,
        class_="arc",
        stroke_dasharray=f"{length * share:.1f} {length:.1f}",
        transform=f"rotate(-90 {x:g} {y:g})",
    )


def key(dots: Sequence[Dot]) -> Markup:
    """What the marks mean, and which number is which class."""
    circle = tag("circle", cx=9, cy=9, r=7)
    lines = [
        _line("labelled", "labelled colour-0", circle),
        _line(
            "predicted; the arc is the probability", "guess colour-0", circle, _arc(9, 9, 7, 0.7)
        ),
    ]
    classes = {dot.number: dot.name for dot in dots if dot.number is not None}
    for number, name in sorted(classes.items()):
        mark = tag("text", str(number + 1), x=9, y=13.5)
        lines.append(_line(name, f"labelled {colour(number)}", circle, mark))
    return tag("ul", *lines, class_="legend")


def _line(meaning: str, kinds: str, *parts: Markup) -> Markup:
    mark = tag("g", *parts, class_=f"dot {kinds}")
    picture = tag("svg", mark, width=18, height=18, class_="swatch", aria_hidden="true")
    return tag("li", picture, meaning)
