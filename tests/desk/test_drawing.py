import xml.etree.ElementTree as ElementTree

import pytest

from evengraph.desk.frame import HEIGHT, WIDTH, Dot, colour, draw, key

DOTS = [
    Dot(row=0, id="a", ring=0, number=0, name="fraud", probability=0.75),
    Dot(row=5, id="<b>&", ring=1, number=1, name="honest"),
    *(Dot(row=10 + n, id=f"far-{n}", ring=2) for n in range(24)),
]


def drawn(dots=DOTS, edges=((0, 1), (1, 2))):
    return ElementTree.fromstring(draw(dots, edges))


def test_nodes_link_to_their_pages_and_say_what_they_are():
    svg = drawn()
    links = {link.get("href"): link.get("aria-label") for link in svg.iter("a")}
    assert links["/node/5"] == "<b>&: labelled honest"
    assert links["/node/10"] == "far-0: not known"
    assert "/node/0" not in links  # the page itself
    titles = [title.text for title in svg.iter("title")]
    assert "a: fraud 75%" in titles


def test_the_arc_is_as_long_as_the_probability():
    arcs = [c.get("stroke-dasharray") for c in drawn().iter("circle") if c.get("class") == "arc"]
    (part, whole), *others = [map(float, arc.split()) for arc in arcs]
    assert part / whole == pytest.approx(0.75, abs=0.01)
    assert not others


def test_all_dots_are_inside_and_apart():
    circles = [c for c in drawn().iter("circle") if c.get("class") is None]
    points = [(float(c.get("cx")), float(c.get("cy"))) for c in circles]
    assert len(set(points)) == len(DOTS)
    assert all(20 < x < WIDTH - 20 and 20 < y < HEIGHT - 20 for x, y in points)


def test_colours_repeat_beyond_six_classes():
    assert colour(0) == colour(6) == "colour-0"


def test_the_key_has_no_inline_style():
    assert "style=" not in key(DOTS) + draw(DOTS, [])


def test_the_key_names_the_classes_that_are_drawn_by_their_numbers():
    odd = Dot(row=1, id="c", ring=1, number=4, name="<i>odd</i>")
    lines = ElementTree.fromstring(key([*DOTS, odd])).findall("li")
    words = ["".join(line.itertext()) for line in lines]
    assert words[2:] == ["1fraud", "2honest", "5<i>odd</i>"]
