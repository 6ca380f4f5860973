import xml.etree.ElementTree as tree

import pytest
from evengraph.report.explain_page import (
    COMMON,
    MAX_NAMES,
    RARE,
    SAME_CLUSTER,
    SIZE,
    class_colours,
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
        "class_counts": [3, 20],
        "neighbourhood": near | changes,
    }


IDS = [f"n{place}" for place in range(8)]


@pytest.fixture
def drawn():
    return tree.fromstring(draw_explanation(made_up(), IDS))


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


def test_every_node_and_edge_is_drawn_once(drawn):
    assert len(dots(drawn)) == 5
    assert len(list(drawn.iter(f"{SVG}line"))) == 3
    words = [dot.find(f"{SVG}title").text for dot in dots(drawn)]
    assert words[0] == "n7: predicted rare & odd"
    assert words[4] == "n4: labelled common"


def test_labelled_nodes_are_filled_and_those_against_square(drawn):
    found = dots(drawn)
    fills = ["white", RARE[0], "white", COMMON[0], COMMON[0]]
    assert [dot.get("fill") for dot in found] == fills
    shapes = [dot.tag.removeprefix(SVG) for dot in found]
    assert shapes == ["circle", "circle", "circle", "rect", "circle"]
    assert found[3].find(f"{SVG}title").text.endswith("evidence against")


def test_rare_classes_are_orange_and_common_ones_blue_grey():
    """As on the pages of runs; the second of a kind has another colour."""
    assert class_colours([3, 20, 10, 4]) == [RARE[0], COMMON[0], COMMON[1], RARE[1]]
    assert "rare &amp; odd, 3 labelled, rare" in draw_explanation(made_up(), IDS)
    assert class_colours([5, 5]) == [COMMON[0], COMMON[1]]


def test_nodes_of_the_same_cluster_have_a_halo(drawn):
    def halos(svg):
        return len([one for one in svg.iter() if one.get("fill-opacity")])

    assert halos(drawn) == 0
    assert SAME_CLUSTER not in draw_explanation(made_up(), IDS)
    text = draw_explanation(made_up(cluster=[4, 4, 1, 4, 2]), IDS)
    assert halos(tree.fromstring(text)) == 3  # the explained node and two others
    assert "halo: in the same cluster as n7" in text


def test_paths_are_stronger_than_other_edges():
    crossed = {"edge_index": [[0, 1, 0, 2, 2, 3, 1, 2], [1, 0, 2, 0, 3, 2, 2, 1]]}
    groups = [one for one in tree.fromstring(draw_explanation(made_up(**crossed), IDS))
              if one.find(f"{SVG}line") is not None]  # fmt: skip
    assert [len(group) for group in groups] == [1, 3]
    assert float(groups[0].get("stroke-width")) < float(groups[1].get("stroke-width"))


def test_distance_is_told_by_rings_and_weight_by_size(drawn):
    found = [box(dot) for dot in dots(drawn)]

    def away(mark):
        return ((mark[0] - found[0][0]) ** 2 + (mark[1] - found[0][1]) ** 2) ** 0.5

    near, also_near, further, no_path = (away(mark) for mark in found[1:])
    assert near == pytest.approx(also_near, abs=1)
    assert near < further < no_path
    assert found[1][2] > found[3][2] > found[2][2]


def test_distances_of_rings_are_not_covered_by_marks():
    count = 25  # on one ring, one of them at its top
    near = {
        "node_id": list(range(count)),
        "edge_index": [[0] * (count - 1), list(range(1, count))],
        "y": [-1] * count,
        "predicted": [0] * count,
        "contribution": [0.1] * count,
        "distance": [0] + [1] * (count - 1),
    }
    picture = tree.fromstring(draw_explanation(made_up(**near), [f"n{n}" for n in range(count)]))
    (text,) = [one for one in picture.iter(f"{SVG}text") if one.text == "1 step"]
    x, y = float(text.get("x")), float(text.get("y")) - 5
    for across, down, half in (box(dot) for dot in dots(picture)):
        assert abs(across - x) >= 20 + half or abs(down - y) >= half


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
        if one.get("paint-order") == "stroke" and one.get("text-anchor") is None:  # no ring's
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


def test_percent_is_as_in_the_text():
    shown = draw_explanation(made_up() | {"probability": 0.8762}, IDS)
    assert "n7: rare &amp; odd, 87.6%" in shown


def test_the_file_is_written(tmp_path):
    write_explanation(made_up(), IDS, tmp_path / "why.svg")
    assert tree.parse(tmp_path / "why.svg").getroot().tag == f"{SVG}svg"
