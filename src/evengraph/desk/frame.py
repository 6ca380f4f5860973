"""The frame of the desk's pages, and forms that only our own pages can send."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evengraph.desk.access import Session
from evengraph.report.charts import COLOURS
from evengraph.report.markup import Attribute, Markup, tag
from evengraph.report.page import STYLE, read_asset

STYLESHEET = STYLE + read_asset(__package__, "desk.css")
SCRIPT = read_asset(__package__, "desk.js")

PAGES = {"/": "Label", "/queue": "Queue", "/done": "Done", "/export.csv": "Export"}
OTHER_KEYS = {"d": "don't know", "u": "undo", "n": "note", "← →": "other nodes"}
KEYS = {"1–9": "class", **OTHER_KEYS}
TRIAGE_KEYS = {"1": "confirm", "2": "dismiss", **OTHER_KEYS}


def frame(
    title: str, session: Session, *main: Markup, side: Markup | None = None, here: str = "/"
) -> str:
    """A page with the navigation above it."""
    links = [
        tag("a", text, href=path, aria_current="page" if path == here else None)
        for path, text in PAGES.items()
    ]
    who = form(
        session,
        "/who",
        tag("label", "You are", for_="who"),
        field("who", value=session.who, maxlength=60, autocomplete="off"),
        tag("button", "Save", class_="quiet-button"),
        class_="who",
    )
    top = tag("header", tag("p", title, class_="name"), tag("nav", *links), who, class_="desk-top")
    said = tag("p", id="said", role="status", class_="said")
    body = tag("main", said, tag("div", *main, class_="work"), side or "", class_="desk")
    return document(title, top, body)


def document(title: str, *body: Markup) -> str:
    """A whole page."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href="/desk.css"),
        tag("title", f"{title} · evengraph desk"),
        tag("script", src="/desk.js", defer=True),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', *body), lang='en')}\n"


def form(session: Session, action: str, *parts: Markup, **attributes: Attribute) -> Markup:
    """A form with the token of the session."""
    token = hidden("form_token", session.form_token)
    return tag("form", token, *parts, action=action, method="post", **attributes)


def hidden(name: str, value: object) -> Markup:
    """A value that a form carries."""
    return tag("input", type="hidden", name_=name, value=str(value))


def field(name: str, **attributes: Attribute) -> Markup:
    """A line to write in."""
    return tag("input", type="text", name_=name, id=name, **attributes)


def keys(meanings: Mapping[str, str]) -> Markup:
    """What the keys do."""
    parts = [tag("li", tag("kbd", key), " ", meaning) for key, meaning in meanings.items()]
    return tag("ul", *parts, class_="keys")


def message_page(title: str, text: str) -> str:
    """A page that says why there is no other."""
    return document(title, tag("main", tag("h1", title), tag("p", text, class_="lead")))


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
