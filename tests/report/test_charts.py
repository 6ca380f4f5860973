"""Elements, formats and the geometry of charts."""

import math
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from evengraph.report import charts, markup
from evengraph.report.inspect_page import homophily_row
from evengraph.report.view import ClassSummary


def test_plain_text_is_escaped_and_markup_is_not():
    assert markup.tag("p", "a < b", markup.Markup("<b>c</b>")) == "<p>a &lt; b<b>c</b></p>"
    assert markup.join(["<", markup.Markup("<br>")], " & ") == "&lt; &amp; <br>"
    element = markup.tag(
        "input", class_="x", aria_label='"', hidden=True, disabled=False, id=None, r=2.50
    )
    assert element == '<input class="x" aria-label="&quot;" hidden r="2.5">'


def test_control_characters_are_written_out():
    text, written = "\x1b[2J\x07\x00\u202e\ud800", r"\x1b[2J\x07\x00\u202e\ud800"
    element = markup.tag("p", text, title=text)
    assert element == f'<p title="{written}">{written}</p>'
    ElementTree.fromstring(element)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "7", True, [], 10**400])
def test_undefined_values_show_as_a_dash(value):
    assert (
        markup.decimals(value)
        == markup.integer(value)
        == markup.percentage(value)
        == markup.plus_minus(value, 1.0)
        == "–"
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (markup.decimals(-0.04), "0.0"),
        (markup.decimals(-2.345, 2), "−2.35"),
        (markup.signed(0.04), "0.0"),
        (markup.signed(1.26), "+1.3"),
        (markup.signed(-1.26), "−1.3"),
        (markup.integer(12345.6), "12,346"),
        (markup.percentage(0.125, 1), "12.5%"),
        (markup.plus_minus(70.0, 1.25), "70.0 ± 1.2"),
        (markup.plus_minus(70.0, None), "70.0"),
        (markup.plural(1, "class", "classes"), "1 class"),
        (markup.plural(1200, "class", "classes"), "1,200 classes"),
        (markup.plural(0, "seed"), "0 seeds"),
        (markup.metric_value("tuned_threshold", 98.92), "0.989"),  # a probability
        (markup.metric_value("tuned_threshold", 50.0, 1.25), "0.500 ± 0.013"),
        (markup.metric_value("macro_f1", 50.0, 1.25), "50.0 ± 1.2"),
        (markup.metric_value("tuned_threshold", None), "–"),
    ],
)
def test_formats(text, wanted):
    assert text == wanted


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0.27, 2.31), (-3, 8000), (99.99, 100.01), (1e-12, 3e-12), (0, 1e30)]
)
def test_ticks_are_round_and_inside(low, high):
    found = charts.ticks(low, high, 4)
    slack = 1e-9 * (high - low)
    assert 2 <= len(found) <= 6
    assert all(low - slack <= value <= high + slack for value in found)
    steps = [after - before for before, after in pairwise(found)]
    assert all(math.isclose(step, steps[0], rel_tol=1e-4) for step in steps)
    assert charts.ticks(3, 3) == [3]


def place(node, name):
    return float(node.attributes[name].removesuffix("%"))


def summary(**changes):
    numbers = {"labelled": 10.0, "homophily": 62.5, "chance": 20.0}
    plain = {"name": "a", "rare": False, "reach": [10.0, 40.0]}
    return ClassSummary(**plain | numbers | changes)


@pytest.mark.parametrize(("count", "wanted"), [(1000, 100), (250, 25), (1, 0.8), (0, 0)])
def test_bars_are_in_proportion_and_never_vanish(parse, count, wanted):
    (drawn,) = parse(charts.bar("nodes", count, 1000)).all("rect")
    assert place(drawn, "width") == wanted


def test_dots_stay_on_the_axis(parse):
    tree = parse(charts.dot_row("label", 120.0, span=(-5.0, 40.0), reference=70.0))
    (whisker,) = tree.all("line", "whisker")
    assert (whisker.attributes["x1"], whisker.attributes["x2"]) == ("0%", "40%")
    assert tree.all("circle", "mean")[0].attributes["cx"] == "100%"
    assert tree.all("line", "reference")[0].attributes["x1"] == "70%"
    assert not parse(charts.dot_row("undefined", None)).all("circle")


def test_homophily(parse):
    assert not parse(homophily_row(summary(homophily=None, chance=None))).all("circle")


@pytest.mark.parametrize(("values", "limits"), [([], (-6, 106)), ([5.0, None], (4.5, 5.5))])
def test_limits_without_values(values, limits):
    assert charts.padded(values) == limits
