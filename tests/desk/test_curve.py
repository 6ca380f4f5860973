import xml.etree.ElementTree as ElementTree

import pytest

from evengraph.desk import LearningCurve
from evengraph.desk.curve import CHART_WIDTH as WIDTH
from evengraph.desk.curve import HEIGHT, Point, curve_chart


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
def test_everything_is_inside(spread):
    svg = ElementTree.fromstring(curve_chart(made(spread=spread)))
    for shape in (*svg.iter("polyline"), *svg.iter("polygon")):
        for pair in shape.get("points").split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= WIDTH
            assert -8 <= y <= HEIGHT
    assert len(list(svg.iter("circle"))) == 3


def test_more_labels_are_further_right_and_better_scores_higher():
    svg = ElementTree.fromstring(curve_chart(made()))
    points = [tuple(map(float, p.split(","))) for p in svg.find("polyline").get("points").split()]
    assert points == sorted(points, key=lambda p: p[0])
    assert points == sorted(points, key=lambda p: -p[1])


def test_it_is_told_in_words():
    svg = ElementTree.fromstring(curve_chart(made()))
    assert svg.get("aria-label") == ("Balanced accuracy 75 with 30 labels now, about 85 with 130.")


def test_a_flat_curve_can_be_drawn():
    flat = made(measured=((10, 100), (20, 100)), now=(30, 100), expected=((50, 100),), spread=0)
    assert "polyline" in curve_chart(flat)
    assert "polyline" in curve_chart(made(measured=((1, 0),), now=(2, 0), expected=(), spread=0))
