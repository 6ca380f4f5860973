import re
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import pytest
from made_up import FEW, PUBMED, STEP, TAIL, make_results, published, spread

from evengraph.lab.figures import curve_panel, dots_panel, gaps_panel, some_values
from evengraph.lab.results import MANY
from evengraph.metrics.significance import bootstrap_interval

METRIC = "balanced_accuracy"
HOSTILE = "</svg><script>alert(1)</script>\"'&amp;"
PLACES = ("x1", "x2", "cx", "x", "y1", "y2", "cy")


def place(node, name):
    return float(node.attributes[name].removesuffix("%"))


def lines(tree):
    """The line of each method, by its name."""
    return {n.attributes["data-method"]: n for n in tree.all("li") if "data-method" in n.attributes}


def assert_inside(tree):
    """Everything that has a place in percent lies within its picture."""
    found = 0
    for node in tree.walk():
        for name in PLACES:
            text = node.attributes.get(name) or ""
            if text.endswith("%"):
                assert 0 <= float(text[:-1]) <= 100, (node.tag, name, text)
                found += 1
    assert found
    assert "nan" not in "".join(str(node.attributes) for node in tree.walk()).lower()


@pytest.mark.parametrize("setup", [STEP, TAIL, PUBMED])
def test_every_method_of_a_set_up_has_a_line(comparison, parse, setup):
    tree = parse(dots_panel(comparison, setup, METRIC))
    wanted = [cell.label for cell in comparison.cells if cell.setting == setup]
    assert list(lines(tree)) == wanted
    assert [node.text for node in tree.all("span", "name")] == wanted
    assert tree.all("h3")[0].text == comparison.setting_title(setup)
    assert_inside(tree)


def test_marks_are_in_the_order_of_their_values(comparison, parse):
    cells = {cell.label: cell for cell in comparison.cells if cell.setting == STEP}
    found = []
    for label, line in lines(parse(dots_panel(comparison, STEP, METRIC))).items():
        cell = cells[label]
        (mean,), seeds = line.all("circle", "mean"), line.all("circle", "seed")
        (whisker,) = line.all("line", "whisker")
        found.append((cell.mean(METRIC), place(mean, "cx")))
        found += zip(cell.values(METRIC), (place(seed, "cx") for seed in seeds), strict=True)
        low, high = cell.interval(METRIC)
        found += [(low, place(whisker, "x1")), (high, place(whisker, "x2"))]
        if (paper := cell.published(METRIC)) is not None:
            (dash,) = line.all("line", "paper")
            assert dash.attributes["x1"] == dash.attributes["x2"]
            found.append((paper, place(dash, "x1")))
        else:
            assert not line.all("line", "paper")
    # one straight scale for all
    (low, left), (high, right) = min(found), max(found)
    for value, at in found:
        wanted = left + (right - left) * (value - low) / (high - low)
        assert at == pytest.approx(wanted, abs=0.02)


def test_ticks_share_the_scale_of_the_dots(comparison, parse):
    tree = parse(dots_panel(comparison, STEP, METRIC))
    ticks = {float(tick.text): place(tick, "x") for tick in tree.all("text", "tick")}
    assert len(ticks) >= 2
    (low, left), (high, right) = min(ticks.items()), max(ticks.items())
    mean = comparison.find(STEP, "LTE4G").mean(METRIC)
    (dot,) = lines(tree)["LTE4G"].all("circle", "mean")
    wanted = left + (right - left) * (mean - low) / (high - low)
    assert place(dot, "cx") == pytest.approx(wanted, abs=0.02)


def test_screen_readers_hear_the_figures(comparison, parse):
    for label, line in lines(parse(dots_panel(comparison, STEP, METRIC))).items():
        cell = comparison.find(STEP, label)
        low, high = cell.interval(METRIC)
        words = f"{label}: {cell.mean(METRIC):.1f}, 95% interval {low:.1f} to {high:.1f}"
        words += f", {len(cell.rows)} seeds"
        if (paper := cell.published(METRIC)) is not None:
            words += f"; paper {paper:.1f}"
        (picture,) = line.all("svg")
        assert picture.attributes["role"] == "img"
        assert picture.attributes["aria-label"] == words
        assert picture.all("title")[0].text == words
        assert line.all("span", "value")[0].text == f"{cell.mean(METRIC):.1f}"


def test_the_best_stands_out_alone(comparison, parse):
    for setup in comparison.settings:
        found = lines(parse(dots_panel(comparison, setup, METRIC)))
        assert [label for label, line in found.items() if "strong" in line.kinds] == ["Uni-GNN"]


def test_one_seed_has_a_dot_and_no_interval(parse):
    results = make_results({("cora-step", "GCN"): {5: 60.0}})
    tree = parse(dots_panel(results, "cora-step", METRIC))
    assert not tree.all("line", "whisker")
    assert place(tree.all("circle", "mean")[0], "cx") == 50
    assert "interval" not in tree.all("title")[0].text
    assert_inside(tree)


@pytest.mark.parametrize("values", [{5: 0.0, 6: 100.0}, {5: 50.0, 6: 50.0}, {5: 1e-9, 6: 0.0}])
def test_any_spread_stays_inside(values, parse):
    results = make_results({("cora-step", "GCN"): values}, paper=published(100.0))
    assert_inside(parse(dots_panel(results, "cora-step", METRIC)))


# Differences.


def test_variants_are_shown_by_their_paired_difference(experiments, parse):
    for setup in experiments[1].settings:
        whole = experiments[1].find(setup, "Uni-GNN").by_seed(METRIC)
        tree = parse(gaps_panel(experiments[1], setup, METRIC))
        assert list(lines(tree)) == ["no semantic", "no pseudo-labels"]
        assert_inside(tree)
        for label, line in lines(tree).items():
            one = experiments[1].find(setup, label).by_seed(METRIC)
            gaps = [one[seed] - whole[seed] for seed in one]
            low, high = bootstrap_interval(gaps)
            words = line.all("title")[0].text
            assert words.startswith(f"{label}: {fmean(gaps):+.1f} points")
            assert f"95% interval {low:+.1f} to {high:+.1f}, 20 seeds" in words
            assert ("; paper" in words) == (setup == STEP)
            assert line.all("span", "value")[0].text == f"{fmean(gaps):+.1f}"
            (zero,), (mean,) = line.all("line", "axis"), line.all("circle", "mean")
            assert (place(mean, "cx") < place(zero, "x1")) == (fmean(gaps) < 0)


def test_what_lies_below_for_certain_stands_out(experiments, parse):
    for setup in experiments[1].settings:
        found = lines(parse(gaps_panel(experiments[1], setup, METRIC)))
        assert {label: "strong" in line.kinds for label, line in found.items()} == {
            "no semantic": True,
            "no pseudo-labels": False,
        }


def test_the_interval_is_read_before_the_papers_figure(experiments, parse):
    tree = parse(gaps_panel(experiments[1], STEP, METRIC))
    words = tree.all("title")[0].text
    assert words.index("interval") < words.index("paper")


def test_only_common_seeds_make_a_difference(parse):
    values = {("cora-step", "all"): {5: 70.0, 6: 72.0}, ("cora-step", "part"): {6: 71.0, 9: 10.0}}
    results = make_results(values, kind="ablation")
    whole, part = results.cells
    results = replace(results, cells=[replace(whole, selected={"alpha": 1}), part])
    (line,) = lines(parse(gaps_panel(results, "cora-step", METRIC))).values()
    assert line.all("span", "value")[0].text == "-1.0"
    assert not line.all("line", "whisker")


def test_where_nothing_was_chosen_the_first_is_the_whole(experiments, parse):
    cells = [replace(cell, selected={}) for cell in experiments[1].cells]
    tree = parse(gaps_panel(replace(experiments[1], cells=cells), STEP, METRIC))
    assert list(lines(tree)) == experiments[1].labels[1:]


def test_without_a_difference_the_panel_is_empty(experiments, parse):
    cells = [
        cell.with_seeds(FEW if cell.selected else range(8, 25)) for cell in experiments[1].cells
    ]
    tree = parse(gaps_panel(replace(experiments[1], cells=cells), STEP, METRIC))
    assert lines(tree) == {}
    assert_inside(tree)


# Curves.


def test_a_curve_has_a_point_for_each_value(experiments, parse):
    for name, cells in experiments[2].curves().items():
        ends = [c.interval(METRIC) or (c.mean(METRIC),) * 2 for c in cells]
        low, high = min(end[0] for end in ends), max(end[1] for end in ends)
        tree = parse(curve_panel(name, cells, METRIC, (low, high)))
        assert_inside(tree)
        points = tree.all("g", "point")
        for point, cell, (low_end, high_end) in zip(points, cells, ends, strict=True):
            assert point.all("title")[0].text == (
                f"{name} = {cell.value}: {cell.mean(METRIC):.1f}, {low_end:.1f} to {high_end:.1f}"
                f", {len(cell.rows)} seeds"
            )
        xs = [place(point.all("circle")[0], "cx") for point in points]
        assert all(before < after for before, after in pairwise(xs))
        by_height = sorted(zip((c.mean(METRIC) for c in cells), points, strict=True), key=first)
        heights = [place(point.all("circle")[0], "cy") for _, point in by_height]
        assert heights == sorted(heights, reverse=True)
        below = [n.text for n in tree.all("text") if n.attributes["y"] == "100%"]
        assert below == [str(cell.value) for cell in cells]
        means = [cell.mean(METRIC) for cell in cells]
        label = tree.all("svg", "curves")[0].attributes["aria-label"]
        assert label == (
            f"{name} from {cells[0].value} to {cells[-1].value}: "
            f"bAcc {min(means):.1f} to {max(means):.1f}"
        )


def first(pair):
    return pair[0]


def test_the_band_goes_around_the_curve(experiments, parse):
    cells = experiments[2].curves()["K"]
    tree = parse(curve_panel("K", cells, METRIC, (60.0, 80.0)))

    def points(text):
        return [tuple(map(float, point.replace(",", " ").split())) for point in text]

    band = points(tree.all("polygon", "band")[0].attributes["points"].split())
    curve = points(tree.all("path", "curve")[0].attributes["d"].removeprefix("M").split("L"))
    assert len(band) == 2 * len(curve) == 8
    for (x, y), (x1, top), (x2, bottom) in zip(curve, band[:4], reversed(band[4:]), strict=True):
        assert x == x1 == x2
        assert 0 <= top <= y <= bottom <= 1000


def test_a_curve_of_one_point(experiments, parse):
    (*_, cell) = experiments[2].curves()["K"]
    mean = cell.mean(METRIC)
    assert_inside(parse(curve_panel("K", [cell], METRIC, (mean, mean))))


def test_rings_are_few_and_reach_from_the_worst_seed_to_the_best():
    few, many = [3.0, 1.0, 2.0], [float(n * 7 % 251) for n in range(251)]
    assert some_values(few) == few
    assert len(some_values(many)) == 50
    assert some_values(many)[:2] == [0.0, 5.0]
    assert some_values(many)[-1] == 250.0


# Whatever a label holds.


def test_labels_are_escaped(experiments, parse):
    values = {(f"cora-{HOSTILE}", HOSTILE): spread(60.0, FEW, "x")}
    results = make_results(values, selected={"alpha": 1})
    cells = [replace(cell, value=HOSTILE) for cell in experiments[2].curves()["K"]]
    other = replace(experiments[1].cells[1], label=HOSTILE)
    ablation = replace(experiments[1], cells=[experiments[1].cells[0], other])
    for text in (
        dots_panel(results, f"cora-{HOSTILE}", METRIC),
        gaps_panel(ablation, STEP, METRIC),
        curve_panel(HOSTILE, cells, METRIC, (60.0, 80.0)),
    ):
        tree = parse(text)
        assert "<script" not in text
        assert not tree.all("script")
        assert not re.search(r"&amp;amp;amp;", text)
        assert any(HOSTILE in node.text for node in tree.walk())


def test_many_methods_stand_in_order():
    centres = {f"method {n}": 40 + (n * 7) % 20 for n in range(MANY + 1)}
    cells = {(STEP, label): spread(value, FEW, label, 0) for label, value in centres.items()}
    text = str(dots_panel(make_results(cells), STEP, "balanced_accuracy"))
    shown = re.findall(r'data-method="([^"]+)"', text)
    assert shown == sorted(centres, key=lambda label: -centres[label])
