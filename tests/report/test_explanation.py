import xml.etree.ElementTree as tree

import pytest

from evengraph.report.explanation import COLOURS, draw_explanation, write_explanation

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


def test_the_file_is_written(tmp_path):
    write_explanation(made_up(), IDS, tmp_path / "why.svg")
    assert tree.parse(tmp_path / "why.svg").getroot().tag == f"{SVG}svg"
