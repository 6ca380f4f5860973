import colorsys
import re

import pytest
from contrasts import DARK, LIGHT, colours, contrast
from evengraph.report.node_map import LEGEND, ORANGE, SCRIPT, STYLE, map_figure, map_section
from made_up import node_map

HOSTILE = "</svg><script>alert(1)</script>\"'&amp;"


def dots(tree):
    return tree.all("svg", "nodes")[0].all("circle")


def test_a_map_has_a_dot_for_each_node(parse):
    found = node_map()
    tree = parse(map_figure(found, "Embeddings"))
    (picture,) = tree.all("svg", "map")
    assert picture.attributes["data-colours"] == "class"
    assert picture.attributes["aria-label"] == "Map of 60 nodes"
    assert len(dots(tree)) == 60
    for n, dot in enumerate(dots(tree)):
        words = f"Topic {found['classes'][n]}, cluster {found['clusters'][n]}"
        words += ", training node" if found["train"][n] else ""
        assert dot.all("title")[0].text == words
        kinds = {f"k{found['classes'][n]}", f"m{found['clusters'][n] % 10}"}
        assert dot.kinds == kinds | ({"train"} if found["train"][n] else set())
        for name, value in (("cx", found["x"][n]), ("cy", 100 - found["y"][n])):
            place = float(dot.attributes[name].removesuffix("%"))
            assert place == pytest.approx(2 + 0.96 * value, abs=0.01)


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
    drawn = dots(parse(map_figure(found)))
    first, second, third = (node.all("title")[0].text for node in drawn[:3])
    assert first.startswith("no class, predicted Topic 0")
    assert second == "Topic 1, predicted Topic 0"
    assert third == "Topic 0, predicted correctly"
    assert drawn[0].kinds == {f"p{ORANGE}", "train"}


def test_a_rare_class_is_orange_and_no_other(parse):
    few = node_map(clusters=None) | {"classes": [2] * 10 + [0] * 25 + [1] * 25}
    drawn = dots(parse(map_figure(few)))
    shades = [next(kind for kind in dot.kinds if kind[0] == "k") for dot in drawn]
    assert [shades[0], shades[10], shades[35]] == [f"k{ORANGE}", "k0", "k2"]
    even = node_map(clusters=None) | {"classes": [1] * 30 + [0] * 30}
    assert "k0" in dots(parse(map_figure(even)))[59].kinds


def test_only_numbers_are_drawn(parse):
    found = node_map()
    found["x"][3] = None
    found["y"][4] = float("nan")
    found["classes"][5] = "text"
    tree = parse(map_figure(found))
    assert len(dots(tree)) == 58
    assert map_section({"map": "text"}) == map_section({"map": {"x": 3}}) == map_section({}) == ""


def test_the_section_says_what_was_laid_out(parse):
    nodes = node_map() | {"seed": 7}
    assert "t-SNE of the embeddings of seed 7" in parse(map_section({"map": nodes})).text
    other = parse(map_section({"map": nodes | {"of": "probabilities"}}))
    assert "t-SNE of the predicted probabilities" in other.text


def test_names_are_escaped(parse):
    found = node_map() | {"class_names": [HOSTILE] * 7}
    text = map_figure(found, HOSTILE)
    assert "<script" not in text
    assert any(HOSTILE in node.text for node in parse(text).all("title"))


def map_colours(theme=LIGHT):
    pattern = r"\.k(\d), [^{]*\.m\1 {\s*fill: hsl\((\d+) (\d+)% var\(--light\)\); }"
    light, dark, paper = re.findall(r":root { --light: (\d+)%; }", STYLE)
    assert paper == light  # paper is white
    light = dark if theme == DARK else light
    for number, hue, fullness in re.findall(pattern, STYLE):
        parts = colorsys.hls_to_rgb(int(hue) / 360, int(light) / 100, int(fullness) / 100)
        yield number, tuple(255 * part for part in parts)


def test_a_map_has_ten_colours():
    found = dict(map_colours())
    assert sorted(found) == [str(n) for n in range(10)]
    assert len(set(found.values())) == 10


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_dots_of_a_map_reach_the_contrast_of_graphics(theme):
    ground = colours(theme)["surface"]
    assert {n: c for n, c in map_colours(theme) if contrast(c, ground) < 3} == {}


def test_assets_are_whole():
    assert STYLE.count("{") == STYLE.count("}")
    assert SCRIPT.count("{") == SCRIPT.count("}")
