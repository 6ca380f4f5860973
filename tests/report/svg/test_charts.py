import math
import random
from itertools import pairwise

import pytest

from evengraph.report.charts import bar, curve, dot_row, line_plot, strip, swatch, thin, ticks


def test_a_short_series_is_kept_whole():
    assert thin([3.0, None, 1.0]) == [(0, 3.0), (2, 1.0)]
    assert thin([]) == []


@pytest.mark.parametrize("size", [401, 1500, 9999])
def test_thinning_keeps_extremes_and_ends(size):
    draw = random.Random(size)
    values = [draw.gauss(0, 1) for _ in range(size)]
    values[size // 3], values[size // 2] = 99.0, -99.0
    kept = thin(values, limit=400)
    assert len(kept) <= 400
    assert kept[0] == (0, values[0])
    assert kept[-1] == (size - 1, values[-1])
    assert (size // 3, 99.0) in kept
    assert (size // 2, -99.0) in kept
    assert kept == sorted(kept)
    assert all(values[index] == value for index, value in kept)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0.27, 2.31), (-3, 8000), (99.99, 100.01), (1e-12, 3e-12), (0, 1e30)]
)
def test_ticks_are_round_and_inside(low, high):
    found = ticks(low, high, 4)
    slack = 1e-9 * (high - low)
    assert 2 <= len(found) <= 6
    assert all(low - slack <= value <= high + slack for value in found)
    steps = [after - before for before, after in pairwise(found)]
    assert all(math.isclose(step, steps[0], rel_tol=1e-4) for step in steps)


def test_an_empty_range_has_one_tick():
    assert ticks(3, 3) == [3]


def test_bars_are_in_proportion_and_never_vanish(parse):
    def width(count):
        (drawn,) = parse(bar("nodes", count, 1000)).all("rect")
        return float(drawn.attributes["width"].strip("%"))

    assert width(1000) == 100
    assert width(250) == 25
    assert width(0) == 0
    assert width(1) > 0.5


def test_a_longer_bar_behind(parse):
    bars = parse(bar("nodes", 10, 80, total=40)).all("rect")
    drawn = [(one.attributes["class"], one.attributes["width"]) for one in bars]
    assert drawn == [("hidden", "50%"), ("bar", "12.5%")]


def test_dots_stay_on_the_axis(parse):
    tree = parse(dot_row("label", 120.0, span=(-5.0, 40.0), points=[30.0], reference=70.0))
    (whisker,) = tree.all("line", "whisker")
    assert (whisker.attributes["x1"], whisker.attributes["x2"]) == ("0%", "40%")
    assert tree.all("circle", "mean")[0].attributes["cx"] == "100%"
    assert tree.all("circle", "seed")[0].attributes["cx"] == "30%"
    assert tree.all("line", "reference")[0].attributes["x1"] == "70%"
    assert not parse(dot_row("undefined", None)).all("circle")


def test_a_line_plot_labels_its_axes(parse):
    lines = [curve([(0, 100), (50, 25)], "two", "curve"), curve([(10, 20)], "one", "curve")]
    marks = {"rows": [(0, "1"), (100, "0")], "columns": [(10, "a"), (100, "b")]}
    tree = parse(line_plot("label", lines, [], axis="epoch", **marks))
    two, one = tree.all("path")
    assert two.attributes["d"] == "M0.0 1000.0L500.0 250.0"
    assert one.attributes["d"].endswith("Z")  # a single point is still visible
    assert [text.text for text in tree.all("text")] == ["1", "0", "a", "b"]
    anchors = [text.attributes["text-anchor"] for text in tree.all("text")]
    assert anchors == ["end", "end", "middle", "end"]  # the last stays inside
    assert tree.all("p", "axis-name")[0].text == "epoch"


def test_a_swatch_combines_marks(parse):
    assert len(parse(swatch("whisker mean")).all("circle")) == 1
    assert len(parse(swatch("whisker mean")).all("line")) == 1


def test_a_strip_needs_something_to_compare():
    assert strip([70.0], 70.0, (None, None), "one") == ""
    assert strip([], None, (None, None), "none") == ""


def test_a_strip_keeps_order_and_stays_inside(parse):
    tree = parse(strip([70.0, 72.0, None], 71.0, (75.0, 1.0), "label"))
    places = [float(n.attributes["cx"].strip("%")) for n in tree.all("circle", "seed")]
    (paper,) = tree.all("line", "paper")
    assert 0 <= places[0] < places[1] < float(paper.attributes["x1"].strip("%")) <= 100
    (band,) = tree.all("rect", "band")
    left, width = (float(band.attributes[key].strip("%")) for key in ("x", "width"))
    assert left + width / 2 == pytest.approx(float(paper.attributes["x1"].strip("%")), abs=0.02)
    assert left + width <= 100
