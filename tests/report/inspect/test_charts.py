import pytest

from evengraph.report.charts import COLOURS
from evengraph.report.inspect_page import (
    ClassSummary,
    coloured,
    degree_bars,
    homophily_row,
    reach_legend,
    reach_panel,
    size_bar,
)


def row(
    name="a",
    labelled=10.0,
    hidden=0.0,
    homophily=50.0,
    chance=20.0,
    reach=(10.0, 40.0, 90.0),
    colour="",
    rare=False,
):
    return ClassSummary(
        name=name,
        labelled=labelled,
        hidden=hidden,
        rare=rare,
        homophily=homophily,
        chance=chance,
        reach=list(reach),
        colour=colour,
    )


def width(node):
    return float(node.attributes["width"].rstrip("%"))


def test_bars_are_as_long_as_the_counts(parse):
    bars = parse(size_bar(row(labelled=10, hidden=30), 80)).all("rect")
    assert [(bar.attributes["class"], width(bar)) for bar in bars] == [
        ("hidden", 50.0),
        ("bar", 12.5),
    ]
    (bar,) = parse(size_bar(row(labelled=1), 10_000)).all("rect")
    assert width(bar) == 0.8  # one node of ten thousand is still seen


def test_homophily_is_a_dot(parse):
    (dot,) = parse(homophily_row(row(homophily=62.5))).all("circle")
    assert dot.attributes["cx"] == "62.5%"
    (line,) = parse(homophily_row(row(homophily=62.5))).all("line", "reference")
    assert line.attributes["x1"] == "20%"
    assert not parse(homophily_row(row(homophily=None, chance=None))).all("circle")


def test_degrees(parse):
    found = parse(degree_bars([(0, 0, 5), (1, 1, 0), (2, 3, 20)]))
    assert [node.text for node in found.all("span", "name")] == ["0", "1", "2–3"]
    assert [width(bar) for bar in found.all("rect")] == [25.0, 0.0, 100.0]
    assert [node.text for node in found.all("span", "value")] == ["5", "0", "20"]


def test_curves_rise_with_the_share(parse):
    found = parse(
        reach_panel([row(colour="colour-0", reach=(0.0, 50.0, 100.0))], [0.0, 60.0, 100.0])
    )
    dots = found.all("circle")
    assert [dot.attributes["cy"] for dot in dots] == ["100%", "50%", "0%"]
    across = [float(dot.attributes["cx"].rstrip("%")) for dot in dots]
    assert across == sorted(across)
    assert across[0] > 0
    assert across[-1] < 100
    first, second = found.all("path")
    assert first.attributes["d"].endswith("0.0")
    assert "any class" in second.text


@pytest.mark.parametrize("number", [1, COLOURS, COLOURS + 1, 30])
def test_the_least_reached_get_the_colours(parse, number):
    rows = [row(name=f"c{place}", reach=[float(number - place)] * 2) for place in range(number)]
    rows = coloured(rows)
    own = [place for place in range(number) if rows[place].colour]
    assert own == list(range(number))[-COLOURS:]
    assert len({rows[place].colour for place in own}) == len(own)
    found = parse(reach_panel(rows, [50.0, 60.0]))
    assert len(found.all("path")) == number + 1
    assert len(found.all("path", "faint")) == max(number - COLOURS, 0)
    legend = [entry.text for entry in parse(reach_legend(rows)).all("li")]
    assert legend[-1] == "any class"
    assert ("other classes" in legend) == (number > COLOURS)


def test_the_smallest_class_is_orange_if_it_is_rare():
    rows = [row(name="a"), row(name="b", rare=True), row(name="c", rare=True)]
    assert [one.colour for one in coloured(rows)] == ["colour-0", "colour-3", "colour-rare"]
    assert coloured([row(name="a"), row(name="b")])[1].colour == "colour-3"


def test_a_single_hop(parse):
    found = parse(reach_panel([row(colour="colour-0", reach=(30.0,))], [40.0]))
    assert found.all("circle")[0].attributes["cx"] == "50%"
    assert found.all("path")[0].attributes["d"].endswith("Z")
