"""Figures of a store: panels of the page as SVG, and files drawn with matplotlib."""

import re
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from command_line import call
from evengraph.lab.figures import (
    HIGHLIGHT,
    MANY,
    _pareto_front,
    _ticks,
    ablation_figure,
    confusion_figure,
    cost_figure,
    curves_figure,
    figures,
    methods_figure,
    recall_figure,
    save,
    tsne_figure,
)
from evengraph.lab.pages import curve_panel, dots_panel, gaps_panel, some_values, write_report
from evengraph.lab.store import Store
from made_up import FEW, PUBMED, STEP, make_results, node_map, published, spread

matplotlib = pytest.importorskip("matplotlib", reason="figures want matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.text import Text  # noqa: E402

METRIC = "balanced_accuracy"


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt.close("all")


# Panels of the page.


def find(tree, tag, kind=""):
    return [n for n in tree.iter(tag) if not kind or kind in n.get("class", "").split()]


def place(node, name):
    return float(node.get(name).removesuffix("%"))


def parse(panel):
    """The panel as a tree; all that has a place in percent lies within its picture."""
    tree = ElementTree.fromstring(f"<div>{panel}</div>")
    for node in tree.iter():
        for name in ("x1", "x2", "cx", "x", "y1", "y2", "cy"):
            if node.get(name, "").endswith("%"):
                assert 0 <= place(node, name) <= 100, (node.tag, name)
    assert "nan" not in str(panel).lower()
    return tree


def lines(tree):
    """The line of each method, by its name."""
    return {n.get("data-method"): n for n in tree.iter("li") if n.get("data-method")}


def test_all_marks_and_ticks_of_a_panel_share_one_straight_scale(comparison):
    tree = parse(dots_panel(comparison, STEP, METRIC))
    found = [(float(tick.text), place(tick, "x")) for tick in find(tree, "text", "tick")]
    assert len(found) >= 2
    for label, line in lines(tree).items():
        cell = comparison.find(STEP, label)
        (mean,), seeds = find(line, "circle", "mean"), find(line, "circle", "seed")
        (whisker,), paper = find(line, "line", "whisker"), find(line, "line", "paper")
        found.append((cell.mean(METRIC), place(mean, "cx")))
        found += zip(cell.values(METRIC), (place(seed, "cx") for seed in seeds), strict=True)
        found += zip(cell.interval(METRIC), (place(whisker, n) for n in ("x1", "x2")), strict=True)
        assert len(paper) == (cell.published(METRIC) is not None)
        found += [(cell.published(METRIC), place(dash, "x1")) for dash in paper]
    (low, left), (high, right) = min(found), max(found)
    for value, at in found:
        assert at == pytest.approx(left + (right - left) * (value - low) / (high - low), abs=0.02)


def test_the_best_and_what_is_below_for_certain_stand_out(experiments):
    def strong(panel):
        found = lines(parse(panel)).items()
        return [label for label, line in found if line.get("class") == "strong"]

    for setting in experiments[0].settings:
        assert strong(dots_panel(experiments[0], setting, METRIC)) == ["Uni-GNN"]
    for setting in experiments[1].settings:
        assert strong(gaps_panel(experiments[1], setting, METRIC)) == ["no semantic"]


@pytest.mark.parametrize(
    "values", [{5: 60.0}, {5: 0.0, 6: 100.0}, {5: 50.0, 6: 50.0}, {5: 1e-9, 6: 0.0}]
)
def test_any_spread_stays_inside(values):
    results = make_results({("cora-step", "GCN"): values}, paper=published(100.0))
    tree = parse(dots_panel(results, "cora-step", METRIC))
    assert len(find(tree, "line", "whisker")) == (len(values) > 1)


def test_differences_are_paired_by_common_seeds(experiments):
    values = {("cora-step", "all"): {5: 70.0, 6: 72.0}, ("cora-step", "part"): {6: 71.0, 9: 10.0}}
    results = make_results(values, kind="ablation")
    whole, part = results.cells
    results = replace(results, cells=[replace(whole, selected={"alpha": 1}), part])
    (line,) = lines(parse(gaps_panel(results, "cora-step", METRIC))).values()
    assert find(line, "span", "value")[0].text == "-1.0"
    assert not find(line, "line", "whisker")
    apart = [
        cell.with_seeds(FEW if cell.selected else range(8, 25)) for cell in experiments[1].cells
    ]
    assert lines(parse(gaps_panel(replace(experiments[1], cells=apart), STEP, METRIC))) == {}


def test_the_band_goes_around_the_curve(experiments):
    cells = experiments[2].curves()["K"]
    tree = parse(curve_panel("K", cells, METRIC, (60.0, 80.0)))

    def points(texts):
        return [tuple(map(float, text.replace(",", " ").split())) for text in texts]

    band = points(find(tree, "polygon", "band")[0].get("points").split())
    curve = points(find(tree, "path", "curve")[0].get("d").removeprefix("M").split("L"))
    assert len(band) == 2 * len(curve) == 8
    for (x, y), (x1, top), (x2, bottom) in zip(curve, band[:4], reversed(band[4:]), strict=True):
        assert x == x1 == x2
        assert 0 <= top <= y <= bottom <= 1000
    heights = [y for _, y in curve]
    means = [cell.mean(METRIC) for cell in cells]
    assert np.argsort(heights).tolist() == np.argsort(means)[::-1].tolist()
    parse(curve_panel("K", cells[-1:], METRIC, (means[-1], means[-1])))


def test_many_methods_stand_in_order_and_few_of_many_seeds_are_drawn():
    centres = {f"method {n}": 40 + (n * 7) % 20 for n in range(MANY + 1)}
    cells = {(STEP, label): spread(value, FEW, label, 0) for label, value in centres.items()}
    shown = list(lines(parse(dots_panel(make_results(cells), STEP, METRIC))))
    assert shown == sorted(centres, key=lambda label: -centres[label])
    few, many = [3.0, 1.0, 2.0], [float(n * 7 % 251) for n in range(251)]
    assert some_values(few) == few
    assert len(some_values(many)) == 50
    assert (some_values(many)[:2], some_values(many)[-1]) == ([0.0, 5.0], 250.0)


# Files.


def shown(figure):
    return [panel for panel in figure.axes if panel.get_visible()]


def draw_all(results):
    """Lay every figure out, as saving does; returns their names."""
    names = []
    for name, figure in figures(results):
        figure.draw_without_rendering()
        names.append(name.removeprefix(f"{results.name}-"))
    return names


def with_outcome(results, change):
    """The results with other outcomes, by label; a part that becomes ... is taken out."""

    def other(label, row):
        outcome = {**row.outcome, **change(label)}
        return replace(row, outcome={k: v for k, v in outcome.items() if v is not ...})

    cells = [replace(c, rows=[other(c.label, row) for row in c.rows]) for c in results.cells]
    return replace(results, cells=cells)


def test_the_same_results_give_the_same_files_and_text_stays_text(experiments, tmp_path):
    before = dict(plt.rcParams)
    for results in experiments[1:]:
        (name, figure), *_ = figures(results)
        svg, png = save(figure, tmp_path / f"{name}-0.1")
        assert (svg.name, png.name) == (f"{name}-0.1.svg", f"{name}-0.1.png")
        assert plt.get_fignums() == []
        first = svg.read_bytes()
        (_, figure), *_ = figures(results)
        assert save(figure, tmp_path / f"{name}-0.1")[0].read_bytes() == first
        assert min(plt.imread(png).shape[:2]) > 300
    assert re.search(r"<text[^>]*>balanced accuracy, %</text>", first.decode())
    assert dict(plt.rcParams) == before


def test_means_intervals_and_published_means_are_where_they_belong(comparison):
    figure = methods_figure(comparison)
    panel = shown(figure)[0]
    assert panel.get_title() == "Cora\n3 minority classes at 10%"
    drawn = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in panel.lines]
    assert [tick.get_text() for tick in panel.get_xticklabels()] == comparison.labels
    for position, label in enumerate(comparison.labels):
        cell = comparison.find(STEP, label)
        assert ([position], [cell.mean(METRIC)]) in drawn
        assert ([position, position], list(cell.interval(METRIC))) in drawn
        paper = cell.published(METRIC)
        dashes = [ys for xs, ys in drawn if xs == [position - 0.4, position + 0.4]]
        assert dashes == ([] if paper is None else [[paper, paper]])
    strong = [line for line in panel.lines if line.get_color() == HIGHLIGHT]
    assert {round(np.mean(line.get_xdata())) for line in strong} == {3}  # Uni-GNN


@pytest.mark.parametrize(("settings", "panels"), [(1, 1), (4, 4), (5, 6), (9, 9), (14, 15)])
def test_panels_fill_even_rows_of_at_most_three_and_hide_the_rest(settings, panels):
    names = [f"cora-{n}" for n in range(settings)]
    results = make_results({(name, "GCN"): spread(60.0, FEW, name) for name in names})
    figure = methods_figure(results)
    assert (len(figure.axes), len(shown(figure))) == (panels, settings)


@pytest.mark.parametrize("paper", [None, {METRIC: {"mean": 55.5, "std": None}}])
def test_many_methods_lie_in_order_with_bars_where_something_was_published(paper):
    centres = {f"method {n}": 40 + (n * 7) % 20 for n in range(MANY + 1)}
    names = [f"cora-{n}" for n in range(5)]  # two rows
    values = {(s, m): spread(c, FEW, m, 0) for m, c in centres.items() for s in names}
    figure = methods_figure(make_results(values, paper=paper))
    labels = [[t.get_text() for t in panel.get_yticklabels()] for panel in shown(figure)]
    assert [any(words) for words in labels] == [True, False, False, True, False]
    assert labels[0] == labels[3] == sorted(centres, key=lambda label: -centres[label])
    bars = [line for line in shown(figure)[0].lines if line.get_xdata().tolist() == [55.5, 55.5]]
    assert len(bars) == (len(centres) if paper else 0)
    assert ("bar: published mean" in figure.get_suptitle()) == bool(paper)


def test_variants_are_bars_of_the_paired_difference(experiments):
    results = experiments[1]
    variants = ["no semantic", "no pseudo-labels"]
    panels = shown(ablation_figure(results))
    assert [tick.get_text() for tick in panels[0].get_yticklabels()] == variants
    for panel, setting in zip(panels, results.settings, strict=True):
        whole = results.find(setting, "Uni-GNN").by_seed(METRIC)
        for bar, label in zip(panel.patches, variants, strict=True):
            one = results.find(setting, label).by_seed(METRIC)
            assert bar.get_width() == pytest.approx(np.mean([one[s] - whole[s] for s in one]))
    colours = [matplotlib.colors.to_hex(bar.get_facecolor()) for bar in panels[0].patches]
    assert [colour == HIGHLIGHT for colour in colours] == [True, False]
    papers = [[n.get_xdata()[0] for n in p.lines if n.get_linewidth() == 2] for p in panels]
    assert papers[0] == pytest.approx([-4.0, 0.2])
    assert papers[1] == []


def test_curves_have_a_panel_each_and_one_scale(experiments):
    panels = shown(curves_figure(experiments[2]))
    assert [panel.get_xlabel() for panel in panels] == ["alpha", "K"]
    assert len({panel.get_ylim() for panel in panels}) == 1
    for panel, cells in zip(panels, experiments[2].curves().values(), strict=True):
        assert [t.get_text() for t in panel.get_xticklabels()] == [str(c.value) for c in cells]
        assert panel.lines[0].get_ydata().tolist() == [cell.mean(METRIC) for cell in cells]
    other = [replace(c, setting=PUBMED) for c in experiments[2].cells]
    both = curves_figure(replace(experiments[2], cells=[*experiments[2].cells, *other]))
    assert max(len(line.get_xdata()) for panel in shown(both) for line in panel.lines) == 4


def test_recall_falls_from_the_largest_class_to_the_smallest(comparison):
    panels = shown(recall_figure(comparison))
    assert [line.get_label() for line in panels[0].lines] == ["GCN", "LTE4G", "Uni-GNN"]
    assert all((np.diff(line.get_ydata()) < 0).all() for line in panels[0].lines)
    assert [len(panel.lines) for panel in panels] == [3, 3, 2]


def test_confusion_is_in_percent_of_the_true_class(comparison):
    panels = shown(confusion_figure(comparison))
    assert [panel.get_title() for panel in panels] == ["GCN", "Uni-GNN"]
    for panel in panels:
        share = np.asarray(panel.images[0].get_array())
        assert share.sum(axis=1).tolist() == pytest.approx([100.0] * 7)
        assert [text.get_text() for text in panel.texts] == [f"{v:.0f}" for v in share.flat]


@pytest.mark.parametrize("clusters", [14, 20, 37, None])
def test_a_map_is_drawn_by_class_and_by_cluster_with_a_colour_each(comparison, clusters):
    found = node_map(clusters=clusters)
    panels = shown(tsne_figure(replace(comparison, tsne=found)))
    titles = ["by class", "by cluster"][: 1 if clusters is None else 2]
    assert [panel.get_title() for panel in panels] == titles
    dots = panels[-1].collections[0].get_array().tolist()
    assert len(set(dots)) == len(set(found["clusters"] or found["classes"]))
    assert tsne_figure(replace(comparison, tsne=None)) is None


def test_no_label_leaves_the_figure(experiments):
    names = ("a$b", "x_1^2", "100%", "<b>&", "_first", "$\\oops{$")
    odd = make_results({("cora-step", name): spread(60.0, FEW, name) for name in names})
    for results in (*experiments, odd):
        for name, figure in figures(results):
            figure.canvas.draw()
            for text in figure.findobj(Text):
                if text.get_text() and text.get_visible() and text.axes is not None:
                    box, edge = text.get_window_extent(), figure.bbox
                    assert min(box.x0, box.y0) >= -1, (name, text)
                    assert max(box.x1 - edge.x1, box.y1 - edge.y1) <= 1, (name, text)


def test_what_is_missing_is_left_out(experiments):
    comparison, ablation, curves = experiments
    lacking = dict.fromkeys(("confusion_matrix", "class_counts", "seconds", "memory"), ...)
    drawn = draw_all(with_outcome(comparison, lambda _: lacking))
    assert drawn == ["comparison", "recall", "cost", "map"]
    assert draw_all(with_outcome(comparison, lambda _: {"per_class": ...}))
    # a row under another key than that of its job has no outcome
    parted = [replace(c, store=SimpleNamespace(outcomes=lambda _: [])) for c in comparison.cells]
    assert confusion_figure(replace(comparison, cells=parted)) is None
    for results in experiments:
        assert draw_all(replace(results, seeds=[5]).with_equal_seeds())
    cells = [c for c in comparison.cells if (c.setting, c.label) != (STEP, "Uni-GNN")]
    panels = shown(confusion_figure(replace(comparison, cells=cells)))
    assert [panel.get_title() for panel in panels] == ["GCN"]
    for label, bars in (("no semantic", [2, 1]), ("Uni-GNN", [2, 0])):
        cells = [c for c in ablation.cells if (c.setting, c.label) != (PUBMED, label)]
        panels = shown(ablation_figure(replace(ablation, cells=cells)))
        assert [len(panel.patches) for panel in panels] == bars
    assert list(figures(replace(comparison, kind="sensitivity"))) == []
    assert draw_all(replace(curves, kind="sensitivity")) == ["sensitivity"]


# Cost.


def crowd(score, seconds):
    """Twenty-one methods, each with a score and a cost by its number."""
    labels = ["GCN", *(f"method {n}" for n in range(1, 20)), "Uni-GNN"]
    results = make_results(
        {(STEP, one): spread(score(n), FEW, one, 0) for n, one in enumerate(labels)}
    )
    costs = {label: seconds(n) for n, label in enumerate(labels)}
    return with_outcome(results, lambda label: {"seconds": costs[label], "memory": None})


def overlapping(names):
    boxes = [name.get_window_extent() for name in names]
    return any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])


def test_runs_side_by_side_share_the_seconds_but_not_the_memory(comparison):
    def costs(change):
        figure = cost_figure(with_outcome(comparison, change))
        assert [t.get_text() for t in shown(figure)[0].texts] == comparison.labels
        offsets = [panel.collections[0].get_offsets()[0][0] for panel in shown(figure)]
        return offsets, [panel.get_xlabel() for panel in shown(figure)]

    (seconds, memory), _ = costs(lambda _: {"together": 1})
    assert costs(lambda _: {"together": 8})[0] == pytest.approx([seconds / 8, memory])
    assert costs(lambda _: {"memory": None})[1] == ["amortized seconds per run"]
    _, (_, title) = costs(lambda label: {"memory": None} if label == "GCN" else {})
    assert title.endswith("not measured (1): GCN")
    first, *others = comparison.cells
    rows = [replace(row, environment={"device": "cuda (a GPU)"}) for row in first.rows]
    mixed = replace(comparison, cells=[replace(first, rows=rows), *others])
    assert shown(cost_figure(mixed))[0].get_xlabel().endswith(" (some on CPU, some on GPU)")


def test_of_many_methods_the_front_is_named():
    results = crowd(lambda n: 60 + n, lambda n: 0.5 if n == 3 else 100.0 - n)
    (panel,) = shown(cost_figure(results))
    assert {text.get_text() for text in panel.texts} == {"GCN", "method 3", "Uni-GNN"}
    assert len(panel.collections) == 21
    points = {"a": (1.0, 50.0), "b": (2.0, 50.0), "c": (1.0, 40.0), "d": (9.0, 51.0)}
    assert _pareto_front(points) == ["a", "d"]


def test_names_of_points_do_not_overlap():
    (panel,) = shown(cost_figure(crowd(lambda n: n**2, lambda n: 100.0 + n / 99)))
    names = [text for text in panel.texts if text.get_visible()]
    assert 3 < len(names) < len(panel.texts) == 21
    assert "Uni-GNN" in {name.get_text() for name in names}  # the best one
    assert not overlapping(names)
    few = make_results({(STEP, f"m {n}"): spread(60 + n, FEW, str(n), 0) for n in range(6)})
    few = with_outcome(few, lambda _: {"seconds": 1.0, "memory": None})
    (panel,) = shown(cost_figure(few))
    assert all(name.get_visible() for name in panel.texts)
    assert not overlapping(panel.texts)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.5, 2000, [1, 10, 100, 1000]),
        (0.8, 60, [1, 2, 5, 10, 20, 50]),
        (0.045, 0.16, [0.05, 0.1, 0.15]),
        (99, 102, [99, 100]),
    ],
)
def test_ticks_are_round_and_three_where_there_are_as_many(low, high, ticks):
    found = _ticks(low, high)
    assert set(ticks) <= {round(tick, 6) for tick in found}
    assert all(low <= tick <= high for tick in found)


# `evengraph report`.


def test_the_command_tells_what_it_wrote(copied, tmp_path, capsys, monkeypatch):
    with closing(sqlite3.connect(copied.path)) as base, base:
        base.execute("DELETE FROM runs WHERE method_fields NOT LIKE '%alpha\": 1%'")
    assert call("report", copied.path, "--out", tmp_path / "report") == 0
    told = capsys.readouterr().out.splitlines()
    assert sorted(told) == sorted(f"wrote {path}" for path in (tmp_path / "report").iterdir())
    assert len(told) == 6  # experiments without runs are passed over
    Store(tmp_path / "empty.sqlite")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for store, words in (
        (tmp_path / "none.sqlite", "There is no store"),
        (copied.path, "matplotlib"),
        (tmp_path / "empty.sqlite", "holds no finished experiment"),
    ):
        assert call("report", store, "--out", tmp_path / "other") == 2
        assert words in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", ".hidden", "a/b", "a\x1b"])
def test_names_of_a_foreign_store_do_not_lead_out_of_the_folder(copied, tmp_path, name):
    with closing(sqlite3.connect(copied.path)) as base, base:
        base.execute("UPDATE boards SET name = ? WHERE name = 'ablation'", (name,))
    with pytest.raises(ValueError, match=r"sqlite: the name of an experiment must hold"):
        write_report(copied, tmp_path / "inner" / "out")
    assert [path.name for path in tmp_path.iterdir()] == [copied.path.name]


@pytest.mark.parametrize(
    "change",
    [
        """UPDATE runs SET outcome = '{"metrics": {"macro_f1": "x"}, "validation": 1}'""",
        """UPDATE runs SET outcome = json_set(outcome, '$.metrics.balanced_accuracy', '[]')""",
        """UPDATE boards SET content = json_set(content, '$.title', 5)""",
    ],
)
def test_results_of_another_kind_are_one_line_with_the_store(copied, tmp_path, change):
    with closing(sqlite3.connect(copied.path)) as base, base:
        base.execute(change)
    with pytest.raises(ValueError, match=r"sqlite.* cannot be drawn: a result is") as caught:
        write_report(copied, tmp_path / "out")
    assert "\n" not in str(caught.value)
