"""The map of nodes, and the picture of an explanation."""

import colorsys
import re
import xml.etree.ElementTree as tree
from math import dist
from pathlib import Path

import pytest
from samples import HOSTILE, explained

from contrasts import DARK, LIGHT, colours, contrast
from evengraph.report import node_pictures
from evengraph.report.node_pictures import (
    COLOURS,
    LEGEND,
    MAP_SCRIPT,
    MAP_STYLE,
    MAX_NAMES,
    ORANGE,
    RARE,
    SIZE,
    class_colours,
    draw_explanation,
    map_figure,
    map_section,
    path_tree,
    ring_numbers,
    ring_positions,
)
from made_up import node_map


def map_dots(tree):
    return tree.all("svg", "nodes")[0].all("circle")


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, ["class", "cluster"]),
        ({"clusters": None}, ["class"]),
        ({"predicted": [0] * 60}, ["class", "prediction", "cluster"]),
    ],
)
def test_a_map_has_a_button_for_each_colouring(parse, changes, wanted):
    tree = parse(map_figure(node_map() | changes))
    buttons = [n.attributes for n in tree.all("button") if "data-colours" in n.attributes]
    assert [one["data-colours"] for one in buttons] == wanted
    pressed = [one["aria-pressed"] for one in buttons]
    assert pressed == ["true", "false", "false"][: len(wanted)]


def test_the_legend_counts_the_classes(parse):
    tree = parse(map_figure(node_map()))
    (legend,) = tree.all("ul", "classes")
    assert [node.text for node in legend.all("li")][:2] == ["Topic 0 (9)", "Topic 1 (9)"]
    many = node_map(nodes=90, classes=30) | {"class_names": []}
    legend = parse(map_figure(many)).all("ul", "classes")[0]
    assert legend.all("li")[-1].text == f"{30 - LEGEND} more classes; colours repeat"
    assert legend.all("li")[3].text == "class 3 (3)"


def test_predictions_and_unlabelled_nodes(parse):
    found = node_map(clusters=None)
    found |= {"predicted": [0] * 60, "classes": [-1, 1, 0, *[2] * 57]}
    drawn = map_dots(parse(map_figure(found)))
    first, second, third = (node.all("title")[0].text for node in drawn[:3])
    assert first.startswith("no class, predicted Topic 0")
    assert second == "Topic 1, predicted Topic 0"
    assert third == "Topic 0, predicted correctly"
    assert drawn[0].kinds == {f"p{ORANGE}", "train"}


def test_a_rare_class_is_orange_and_no_other(parse):
    few = node_map(clusters=None) | {"classes": [2] * 10 + [0] * 25 + [1] * 25}
    drawn = map_dots(parse(map_figure(few)))
    shades = [next(kind for kind in dot.kinds if kind[0] == "k") for dot in drawn]
    assert [shades[0], shades[10], shades[35]] == [f"k{ORANGE}", "k0", "k2"]
    even = node_map(clusters=None) | {"classes": [1] * 30 + [0] * 30}
    assert "k0" in map_dots(parse(map_figure(even)))[59].kinds


def test_only_numbers_are_drawn(parse):
    found = node_map()
    found["x"][3] = None
    found["y"][4] = float("nan")
    found["classes"][5] = "text"
    tree = parse(map_figure(found))
    assert len(map_dots(tree)) == 58
    assert map_section({"map": "text"}) == map_section({"map": {"x": 3}}) == map_section({}) == ""


def test_the_section_says_what_was_laid_out_and_escapes_names(parse):
    nodes = node_map() | {"seed": 7, "class_names": [HOSTILE] * 7}
    tree = parse(map_section({"map": nodes}))
    assert "t-SNE of the embeddings of seed 7" in tree.text
    assert not tree.all("script")
    assert any(HOSTILE in node.text for node in tree.all("title"))
    other = parse(map_section({"map": nodes | {"of": "probabilities"}}))
    assert "t-SNE of the predicted probabilities" in other.text


def map_colours(theme=LIGHT):
    pattern = r"\.k(\d), [^{]*\.m\1 {\s*fill: hsl\((\d+) (\d+)% var\(--light\)\); }"
    light, dark, paper = re.findall(r":root { --light: (\d+)%; }", MAP_STYLE)
    assert paper == light  # paper is white
    light = dark if theme == DARK else light
    for number, hue, fullness in re.findall(pattern, MAP_STYLE):
        parts = colorsys.hls_to_rgb(int(hue) / 360, int(light) / 100, int(fullness) / 100)
        yield number, tuple(255 * part for part in parts)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_ten_colours_of_a_map_reach_the_contrast_of_graphics(theme):
    found, ground = dict(map_colours(theme)), colours(theme)["surface"]
    assert sorted(found) == [str(n) for n in range(10)]
    assert len(set(found.values())) == 10
    assert {n: c for n, c in found.items() if contrast(c, ground) < 3} == {}
    for text in (MAP_STYLE, MAP_SCRIPT):
        assert text.count("{") == text.count("}")


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
