import math
import random
from itertools import pairwise

import pytest

from evengraph.report.run.values import ClassRow
from evengraph.report.svg.charts import count_bar, recall_row, strip, thin, ticks


def row(**changes) -> ClassRow:
    given = {"index": 0, "name": "Theory", "count": 5, "minority": False}
    return ClassRow(**(given | {"recalls": [40.0, 60.0], "f1s": [50.0, 50.0]} | changes))


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
        (bar,) = parse(count_bar(row(count=count), 1000)).all("rect", "bar")
        return float(bar.attributes["width"].strip("%"))

    assert width(1000) == 100
    assert width(250) == 25
    assert width(0) == 0
    assert width(1) > 0.5


def test_recall_shows_range_and_mean(parse):
    tree = parse(recall_row(row(recalls=[40.0, None, 80.0]), reference=70.0))
    (whisker,) = tree.all("line", "whisker")
    assert (whisker.attributes["x1"], whisker.attributes["x2"]) == ("40%", "80%")
    assert tree.all("circle", "mean")[0].attributes["cx"] == "60%"
    assert tree.all("line", "reference")[0].attributes["x1"] == "70%"
    assert tree.all("title")[0].text == (
        "Theory: mean recall 60.0, from 40.0 to 80.0; mean F1 50.0"
    )


def test_undefined_recall_draws_no_dot(parse):
    tree = parse(recall_row(row(recalls=[None]), reference=None))
    assert not tree.all("circle")
    assert "undefined" in tree.all("title")[0].text


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
