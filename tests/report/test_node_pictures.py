"""The picture of an explanation."""

import xml.etree.ElementTree as tree
from math import dist
from pathlib import Path

import pytest
from samples import explained

from evengraph.report import node_pictures
from evengraph.report.node_pictures import (
    COLOURS,
    MAX_NAMES,
    RARE,
    SIZE,
    class_colours,
    draw_explanation,
    path_tree,
    ring_numbers,
    ring_positions,
)

SVG = "{http://www.w3.org/2000/svg}"
IDS = [f"n{place}" for place in range(8)]


@pytest.fixture
def drawn():
    return tree.fromstring(draw_explanation(explained(), IDS))


def dots(drawn):
    """The marks of nodes: circles and squares with a tooltip."""
    marks = (f"{SVG}circle", f"{SVG}rect")
    return [one for one in drawn.iter() if one.tag in marks and one.find(f"{SVG}title") is not None]


def box(dot):
    """The middle of a mark, and half its width."""
    if dot.tag == f"{SVG}circle":
        return [float(dot.get(name)) for name in ("cx", "cy", "r")]
    half = float(dot.get("width")) / 2
    return [float(dot.get("x")) + half, float(dot.get("y")) + half, half]


def crowd(distance, contribution, **changes):
    """Nodes without edges, as the neighbourhood of an explanation holds them."""
    count = len(distance)
    nodes = {"node_id": list(range(count)), "y": [0] * count, "predicted": [0] * count}
    nodes |= {"distance": distance, "contribution": contribution, "edge_index": [[], []]}
    return explained(**nodes | changes) | {"node": 0}


def test_distances_of_rings_are_not_covered_by_marks():
    nodes = crowd([0] + [1] * 24, [0.1] * 25)  # on one ring, one of them at its top
    picture = tree.fromstring(draw_explanation(nodes, [f"n{n}" for n in range(25)]))
    (text,) = [one for one in picture.iter(f"{SVG}text") if one.text == "1 step"]
    x, y = float(text.get("x")), float(text.get("y")) - 5
    for across, down, half in (box(dot) for dot in dots(picture)):
        assert abs(across - x) >= 20 + half or abs(down - y) >= half
    assert len(dots(tree.fromstring(draw_explanation(crowd([0], [0.1]), IDS)))) == 1


def named(drawn):
    """The ids that are drawn beside dots, with the box that each takes at most."""
    found = {}
    for one in drawn.iter(f"{SVG}text"):
        if one.get("paint-order") == "stroke" and one.get("text-anchor") is None:  # no ring's
            x, y = float(one.get("x")), float(one.get("y"))
            found[one.text] = (x, y - 9, x + 7 * len(one.text), y + 3)
    return found


@pytest.mark.parametrize("length", [2, 12, 60])
def test_nodes_that_count_have_their_id_beside_them_and_names_stand_on_nothing(drawn, length):
    assert set(named(drawn)) == {"n7", "n1", "n2", "n3"}  # n4 gave nothing
    many = 40
    weights = [(-1) ** place / (place + 1) for place in range(many)]
    nodes = crowd([0, *([1] * 25), *([2] * 14)], weights)
    ids = [f"{place:02d}" + "x" * (length - 2) for place in range(many)]
    found = tree.fromstring(draw_explanation(nodes, ids))
    boxes = list(named(found).values())
    assert 4 <= len(boxes) <= MAX_NAMES
    for dot in dots(found):
        x, y, r = box(dot)
        boxes.append((x - r, y - r, x + r, y + r))
    texts = len(named(found))
    for one in range(texts):
        left, top, right, bottom = boxes[one]
        assert left >= 0
        assert right <= SIZE
        for other in range(len(boxes)):
            a, t, r, b = boxes[other]
            gap = 0.2  # of rounding
            apart = left > r - gap or a > right - gap or top > b - gap or t > bottom - gap
            assert one == other or apart
    for name in named(found):
        assert name in ids or (name.endswith("…") and len(name) == 16)


def test_a_class_has_the_colour_of_its_number_and_the_rarest_is_orange():
    assert class_colours([20, 3, 10, 4]) == [COLOURS[0], RARE, COLOURS[2], COLOURS[3]]
    assert class_colours([5, 5]) == list(COLOURS[:2])
    style = (Path(node_pictures.__file__).parent / "style.css").read_text(encoding="utf-8")
    assert all(f"--colour-{place}: {colour};" in style for place, colour in enumerate(COLOURS))
    assert f"--rare: {RARE};" in style


# 0 joins 1 and 2; 3 and 4 hang on 2; 1 and 4 are joined, too; 5 has no path.
NEAR = {
    "edge_index": [[0, 1, 0, 2, 2, 3, 2, 4, 1, 4], [1, 0, 2, 0, 3, 2, 4, 2, 4, 1]],
    "distance": [0, 1, 1, 2, 2, -1],
}


def positions(distances, before):
    return ring_positions(distances, before, centre=(50.0, 50.0), radius=30)


def test_every_node_hangs_on_one_that_is_nearer():
    assert path_tree(NEAR) == {1: 0, 2: 0, 3: 2, 4: 1}
    assert path_tree({"edge_index": [[], []], "distance": [0, 3]}) == {}  # the path was left out


def test_rings_are_distances_and_those_without_a_path_outside():
    assert ring_numbers(NEAR["distance"]) == [0, 1, 1, 2, 2, 3]
    points = positions(NEAR["distance"], path_tree(NEAR))
    far = [dist(points[0], point) for point in points]
    assert points[0] == (50, 50)
    assert positions([0], {}) == [(50, 50)]
    assert far == pytest.approx([0, 10, 10, 20, 20, 30], abs=0.1)


def test_no_two_nodes_of_a_large_tree_meet():
    before = {n: (n - 1) // 3 for n in range(1, 40)}
    distances = [0] * 40
    for n, parent in before.items():
        distances[n] = distances[parent] + 1
    points = positions(distances, before)
    assert len(set(points)) == 40
    for n, parent in before.items():  # nearer to its own path than to the other side
        assert dist(points[n], points[parent]) < 25
