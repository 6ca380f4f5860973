import xml.etree.ElementTree as tree

import pytest

from evengraph.report.explain.figure import (
    COLOURS,
    MAX_NAMES,
    SIZE,
    draw_explanation,
    write_explanation,
)

SVG = "{http://www.w3.org/2000/svg}"


def made_up(**changes):
    """Five nodes: the one explained, three around it, one without a path."""
    near = {
        "node_id": [7, 1, 2, 3, 4],
        "edge_index": [[0, 1, 0, 2, 2, 3], [1, 0, 2, 0, 3, 2]],
        "y": [-1, 0, -1, 1, 1],
        "predicted": [0, 0, 0, 1, 1],
        "contribution": [0.5, 1.0, 0.25, -0.5, 0.0],
        "distance": [0, 1, 1, 2, -1],
    }
    return {
        "node": 7,
        "predicted": 0,
        "probability": 0.9,
        "probabilities": [0.9, 0.1],
        "class_names": ["rare & odd", "common"],
        "neighbourhood": near | changes,
    }


IDS = [f"n{place}" for place in range(8)]


@pytest.fixture
def drawn():
    return tree.fromstring(draw_explanation(made_up(), IDS))


def dots(drawn):
    return [one for one in drawn.iter(f"{SVG}circle") if one.find(f"{SVG}title") is not None]


def test_every_node_and_edge_is_drawn_once(drawn):
    assert len(dots(drawn)) == 5
    assert len(list(drawn.iter(f"{SVG}line"))) == 3
    words = [dot.find(f"{SVG}title").text for dot in dots(drawn)]
    assert words[0] == "n7: predicted rare & odd"
    assert words[3] == "n3: labelled common"


def test_labelled_nodes_are_filled_and_those_against_dashed(drawn):
    found = dots(drawn)
    assert [dot.get("fill") for dot in found] == [
        "white",
        COLOURS[0],
        "white",
        COLOURS[1],
        COLOURS[1],
    ]
    assert [dot.get("stroke-dasharray") is not None for dot in found] == [False] * 3 + [True, False]


def test_distance_is_told_by_rings_and_weight_by_size(drawn):
    found = dots(drawn)
    middle = [float(found[0].get(name)) for name in ("cx", "cy")]

    def away(dot):
        gap = [float(dot.get(name)) - at for name, at in zip(("cx", "cy"), middle, strict=True)]
        return (gap[0] ** 2 + gap[1] ** 2) ** 0.5

    near, also_near, further, no_path = (away(dot) for dot in found[1:])
    assert near == pytest.approx(also_near, abs=20)
    assert near < further < no_path
    assert float(found[1].get("r")) > float(found[3].get("r")) > float(found[2].get("r"))


def test_a_lonely_node_is_drawn_alone():
    alone = {
        "node_id": [7],
        "edge_index": [[], []],
        "y": [-1],
        "predicted": [0],
        "contribution": [0.1],
        "distance": [0],
    }
    assert len(dots(tree.fromstring(draw_explanation(made_up(**alone), IDS)))) == 1


def named(drawn):
    """The ids that are drawn beside dots, with the box that each takes at most."""
    found = {}
    for one in drawn.iter(f"{SVG}text"):
        if one.get("paint-order") == "stroke":
            x, y = float(one.get("x")), float(one.get("y"))
            found[one.text] = (x, y - 9, x + 7 * len(one.text), y + 3)
    return found


def test_nodes_that_count_have_their_id_beside_them(drawn):
    assert set(named(drawn)) == {"n7", "n1", "n2", "n3"}  # n4 gave nothing


@pytest.mark.parametrize("length", [2, 12, 60])
def test_names_stand_on_nothing(length):
    many = 40
    crowd = {
        "node_id": list(range(many)),
        "edge_index": [[], []],
        "y": [0] * many,
        "predicted": [0] * many,
        "contribution": [(-1) ** place / (place + 1) for place in range(many)],
        "distance": [0, *([1] * 25), *([2] * 14)],
    }
    ids = [f"{place:02d}" + "x" * (length - 2) for place in range(many)]
    found = tree.fromstring(draw_explanation(made_up(**crowd) | {"node": 0}, ids))
    boxes = list(named(found).values())
    assert 4 <= len(boxes) <= MAX_NAMES
    for dot in dots(found):
        x, y, r = (float(dot.get(name)) for name in ("cx", "cy", "r"))
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


def test_percent_is_as_in_the_text():
    shown = draw_explanation(made_up() | {"probability": 0.8762}, IDS)
    assert "n7: rare &amp; odd, 87.6%" in shown


def test_the_file_is_written(tmp_path):
    write_explanation(made_up(), IDS, tmp_path / "why.svg")
    assert tree.parse(tmp_path / "why.svg").getroot().tag == f"{SVG}svg"
