"""Pictures and parts of pages."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import torch
from small_desk import make_desk

import evengraph as eg
from evengraph.desk import LearningCurve
from evengraph.desk import pages as module
from evengraph.desk.curve import CHART_WIDTH, Point, curve_chart
from evengraph.desk.curve import HEIGHT as CHART_HEIGHT
from evengraph.desk.pages import HEIGHT, WIDTH, Dot, colour, draw, legend, neighbourhood, why
from evengraph.pipeline.explanation import Influence

DOTS = [
    Dot(row=0, id="a", ring=0, number=0, name="fraud", probability=0.75),
    Dot(row=5, id="<b>&", ring=1, number=1, name="honest"),
    *(Dot(row=10 + n, id=f"far-{n}", ring=2) for n in range(24)),
]


def test_drawn_nodes_link_to_their_pages_and_are_apart():
    svg = ElementTree.fromstring(draw(DOTS, ((0, 1), (1, 2))))
    links = {link.get("href"): link.get("aria-label") for link in svg.iter("a")}
    assert links["/node/5"] == "<b>&: labelled honest"
    assert links["/node/10"] == "far-0: not known"
    assert "/node/0" not in links  # the page itself
    assert "a: fraud 75%" in [title.text for title in svg.iter("title")]
    arcs = [c.get("stroke-dasharray") for c in svg.iter("circle") if c.get("class") == "arc"]
    ((part, whole),) = [map(float, arc.split()) for arc in arcs]
    assert part / whole == pytest.approx(0.75, abs=0.01)
    circles = [c for c in svg.iter("circle") if c.get("class") is None]
    points = [(float(c.get("cx")), float(c.get("cy"))) for c in circles]
    assert len(set(points)) == len(DOTS)
    assert all(20 < x < WIDTH - 20 and 20 < y < HEIGHT - 20 for x, y in points)


def test_the_legend_names_the_classes_that_are_drawn_by_their_numbers():
    odd = Dot(row=1, id="c", ring=1, number=4, name="<i>odd</i>")
    lines = ElementTree.fromstring(legend([*DOTS, odd])).findall("li")
    words = ["".join(line.itertext()) for line in lines]
    assert words[2:] == ["1fraud", "2honest", "5<i>odd</i>"]
    assert "style=" not in legend(DOTS) + draw(DOTS, [])
    assert colour(0) == colour(6) == "colour-0"


@pytest.fixture
def desk(tmp_path):
    made = make_desk(tmp_path)
    yield made
    made.close()


def test_neighbours_and_theirs_are_around_the_node(desk):
    dots, edges, count = neighbourhood(desk, 7)
    near = {int(other) for other in desk.nodes.adjacency[[7]].indices}
    assert {dot.row for dot in dots if dot.ring == 1} == near
    assert count == len(near)
    assert dots[0].row == 7
    assert len({dot.row for dot in dots}) == len(dots)
    for a, b in edges:
        assert desk.nodes.adjacency[dots[a].row, dots[b].row]
    assert all((0, place) in edges for place, dot in enumerate(dots) if dot.ring == 1)
    for dot in dots:
        assert (dot.probability is None) == (desk.nodes.labels[dot.row] >= 0)
        assert desk.classes[dot.number] == dot.name
    assert neighbourhood(desk, 59)[1:] == ([], 0)  # it has no edges


def test_labelled_neighbours_are_drawn_first_and_classes_that_only_the_model_knows(
    desk, monkeypatch
):
    row = next(r for r in range(60) if (desk.nodes.adjacency[[r]].indices < 6).sum() == 1)
    monkeypatch.setattr(module, "INNER", 1)
    dots, _, count = neighbourhood(desk, row)
    assert [dot.probability for dot in dots if dot.ring == 1] == [None]
    assert count > 1
    classes = ("gone", *desk.ranking.classes)
    probabilities = torch.tensor([[1.0, 0, 0]]).expand(60, 3)
    desk.ranking = desk.ranking._replace(probabilities=probabilities, classes=classes)
    (dot, *_), _, _ = neighbourhood(desk, 7)
    assert (dot.name, desk.classes[dot.number]) == ("gone", "gone")


def test_parts_of_an_explanation_are_bars_for_and_against():
    task = eg.testing.small_task(num_classes=2)
    model = eg.METHODS["logistic"]().fit(task, seed=0)
    explanation = eg.explain(model, task.graph, 3, task=task)
    part = Influence(node=7, id="<i>7", label=1, distance=None, contribution=0.5)
    explanation = replace(explanation, labelled=(part,))
    page = ElementTree.fromstring(why(explanation))
    values = [part.contribution for part in (*explanation.reasons, part)]
    kinds = [rect.get("class") for rect in page.iter("rect")]
    assert kinds == ["against" if value < 0 else "for" for value in values]
    assert len(set(kinds)) == 2
    link = page.find(".//a")
    assert link.get("href") == "/node/7"
    assert link.text == f"<i>7 ({(explanation.class_names or '01')[1]}, no path)"
    assert "no trained model yet" in why(None)


def made(*, measured=((10, 60), (20, 70)), now=(30, 75), expected=((50, 80), (130, 85)), spread=4):
    def point(pair):
        labels, score = pair
        return Point(labels=labels, score=score, low=score - spread, high=score + spread)

    return LearningCurve(
        measured=tuple(map(point, measured)),
        now=point(now),
        expected=tuple(map(point, expected)),
        advice="Go on.",
        enough=False,
    )


@pytest.mark.parametrize("spread", [0, 4, 20])
def test_the_curve_is_inside_its_chart_and_told_in_words(spread):
    svg = ElementTree.fromstring(curve_chart(made(spread=spread)))
    assert svg.get("viewBox") == f"0 0 {CHART_WIDTH} {CHART_HEIGHT}"
    paths = {shape: svg.find(shape).get("points").split() for shape in ("polyline", "polygon")}
    for pair in [*paths["polyline"], *paths["polygon"]]:
        x, y = map(float, pair.split(","))
        assert 0 <= x <= CHART_WIDTH
        assert -8 <= y <= CHART_HEIGHT
    assert len(list(svg.iter("circle"))) == 3
    points = [tuple(map(float, pair.split(","))) for pair in paths["polyline"]]
    assert points == sorted(points)  # more labels are further right, better scores higher
    assert points == sorted(points, key=lambda p: -p[1])
    assert svg.get("aria-label") == "Balanced accuracy 75 with 30 labels now, about 85 with 130."


def test_a_flat_curve_can_be_drawn():
    flat = made(measured=((10, 100), (20, 100)), now=(30, 100), expected=((50, 100),), spread=0)
    assert "polyline" in curve_chart(flat)
    assert "polyline" in curve_chart(made(measured=((1, 0),), now=(2, 0), expected=(), spread=0))
