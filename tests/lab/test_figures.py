import re
from dataclasses import replace

import numpy as np
import pytest
from made_up import FEW, PUBMED, STEP, TAIL, make_results, node_map, spread

from evengraph.lab.figures import (
    ablation_figure,
    confusion_figure,
    curves_figure,
    figures,
    methods_figure,
    recall_figure,
    save,
    tsne_figure,
)
from evengraph.lab.results import HIGHLIGHT, MANY, panel_title

matplotlib = pytest.importorskip("matplotlib", reason="figures want matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.text import Text  # noqa: E402

METRIC = "balanced_accuracy"


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt.close("all")


def shown(figure):
    return [place for place in figure.axes if place.get_visible()]


def texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def with_outcome(results, **changes):
    """The results with other outcomes; a change to ... takes a name out."""

    def other(row):
        outcome = {k: v for k, v in {**row.outcome, **changes}.items() if v is not ...}
        return replace(row, outcome=outcome)

    cells = [replace(c, rows=[other(row) for row in c.rows]) for c in results.cells]
    return replace(results, cells=cells)


def test_every_kind_of_board_has_its_figures(experiments):
    names = [[name for name, _ in figures(results)] for results in experiments]
    assert names == [
        [f"comparison-{name}" for name in ("comparison", "recall", "confusion", "cost", "map")],
        ["ablation-ablation"],
        ["sensitivity-sensitivity"],
    ]


def test_figures_are_saved_as_svg_and_png(written):
    found = {name.rpartition(".")[0] for name in written if name.endswith((".svg", ".png"))}
    assert len(found) == 7
    for name in found:
        svg, png = written[f"{name}.svg"], written[f"{name}.png"]
        assert svg.read_text(encoding="utf-8").rstrip().endswith("</svg>")
        image = plt.imread(png)
        assert min(image.shape[:2]) > 300
        assert image.std() > 0.02


def test_saving_closes_the_figure(experiments, tmp_path):
    ((_, figure),) = figures(experiments[2])
    written = save(figure, tmp_path / "curves")
    assert [path.name for path in written] == ["curves.svg", "curves.png"]
    assert plt.get_fignums() == []


def test_the_same_board_gives_the_same_bytes(experiments, written, tmp_path):
    for results in experiments:
        for name, figure in figures(results):
            svg, _ = save(figure, tmp_path / name)
            assert svg.read_bytes() == written[svg.name].read_bytes(), name


def test_text_stays_text(written):
    svg = written["comparison-comparison.svg"].read_text(encoding="utf-8")
    for word in ("3 minority classes at 10%", "PubMed", "Re-weight", "balanced accuracy, %"):
        assert re.search(rf"<text[^>]*>{re.escape(word)}</text>", svg), word


def test_a_dot_in_a_name_is_no_suffix(tmp_path):
    written = save(plt.figure(), tmp_path / "ratio-0.1-comparison")
    assert [path.name for path in written] == [
        "ratio-0.1-comparison.svg",
        "ratio-0.1-comparison.png",
    ]


def test_drawing_leaves_the_settings_of_matplotlib(experiments, tmp_path):
    before = dict(plt.rcParams)
    for name, figure in figures(experiments[1]):
        save(figure, tmp_path / name)
    assert dict(plt.rcParams) == before


def titles(results, settings=None):
    """The titles of panels: settings in words, in two lines."""
    return [panel_title(results, setting) for setting in settings or results.settings]


def test_methods_have_a_panel_for_each_set_up(comparison):
    figure = methods_figure(comparison)
    assert [place.get_title() for place in shown(figure)] == titles(comparison)
    assert titles(comparison, [STEP]) == ["Cora\n3 minority classes at 10%"]
    for place in shown(figure):
        assert [tick.get_text() for tick in place.get_xticklabels()] == comparison.labels


@pytest.mark.parametrize(("setups", "panels"), [(1, 1), (4, 4), (5, 6), (6, 6), (9, 9), (14, 15)])
def test_panels_fill_even_rows_of_at_most_three_and_hide_the_rest(setups, panels):
    names = [f"cora-{n}" for n in range(setups)]
    results = make_results({(name, "GCN"): spread(60.0, FEW, name) for name in names})
    for draw in (methods_figure, recall_figure):
        figure = draw(results)
        assert len(figure.axes) == panels
        assert [place.get_title() for place in shown(figure)] == titles(results)


@pytest.mark.parametrize("paper", [None, {METRIC: {"mean": 55.5, "std": None}}])
def test_many_methods_lie_in_order_with_bars_where_something_was_published(paper):
    centres = {f"method {n}": 40 + (n * 7) % 20 for n in range(MANY + 1)}
    names = [f"cora-{n}" for n in range(5)]  # two rows
    values = {(s, m): spread(c, FEW, m, 0) for m, c in centres.items() for s in names}
    results = make_results(values, paper=paper)
    figure = methods_figure(results)
    places = shown(figure)
    assert [place.get_title() for place in places] == titles(results)
    labels = [[tick.get_text() for tick in place.get_yticklabels()] for place in places]
    in_order = sorted(centres, key=lambda label: -centres[label])
    assert [any(words) for words in labels] == [True, False, False, True, False]
    assert labels[0] == labels[3] == in_order
    bars = [line for line in places[0].lines if line.get_xdata().tolist() == [55.5, 55.5]]
    assert len(bars) == (len(centres) if paper else 0)
    assert ("bar: published mean" in figure.get_suptitle()) == bool(paper)


def test_means_intervals_and_the_papers_dashes_are_where_they_belong(comparison):
    (place, *_) = shown(methods_figure(comparison))
    lines = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in place.lines]
    for position, label in enumerate(comparison.labels):
        cell = comparison.find(STEP, label)
        assert ([position], [cell.mean(METRIC)]) in lines
        assert ([position, position], list(cell.interval(METRIC))) in lines
        paper = cell.published(METRIC)
        dashes = [ys for xs, ys in lines if xs == [position - 0.4, position + 0.4]]
        assert dashes == ([] if paper is None else [[paper, paper]])


def test_what_was_searched_over_stands_out(comparison):
    (place, *_) = shown(methods_figure(comparison))
    last = [line for line in place.lines if line.get_xdata()[0] == 3]
    assert {line.get_color() for line in last} == {HIGHLIGHT}
    others = [line for line in place.lines if line.get_xdata()[0] < 2.5]
    assert HIGHLIGHT not in {line.get_color() for line in others}


def test_variants_are_bars_of_the_paired_difference(experiments):
    results = experiments[1]
    figure = ablation_figure(results)
    places = shown(figure)
    assert [place.get_title() for place in places] == titles(results)
    variants = ["no semantic", "no pseudo-labels"]
    assert [tick.get_text() for tick in places[0].get_yticklabels()] == variants
    assert "Uni-GNN" in figure.get_suptitle()
    for place, setting in zip(places, results.settings, strict=True):
        whole = results.find(setting, "Uni-GNN").by_seed(METRIC)
        for bar, label in zip(place.patches, variants, strict=True):
            one = results.find(setting, label).by_seed(METRIC)
            assert bar.get_width() == pytest.approx(np.mean([one[s] - whole[s] for s in one]))
    below, level = places[0].patches
    assert matplotlib.colors.to_hex(below.get_facecolor()) == HIGHLIGHT
    assert matplotlib.colors.to_hex(level.get_facecolor()) != HIGHLIGHT


def test_the_papers_difference_is_drawn_where_it_is_known(experiments):
    first, second = shown(ablation_figure(experiments[1]))
    upright = [line for line in first.lines if line.get_linewidth() == 2]
    assert [line.get_xdata()[0] for line in upright] == pytest.approx([-4.0, 0.2])
    assert not [line for line in second.lines if line.get_linewidth() == 2]


def test_curves_have_a_panel_each_and_one_scale(experiments):
    figure = curves_figure(experiments[2])
    places = shown(figure)
    assert [place.get_xlabel() for place in places] == ["alpha", "K"]
    assert len({place.get_ylim() for place in places}) == 1
    for place, cells in zip(places, experiments[2].curves().values(), strict=True):
        assert [t.get_text() for t in place.get_xticklabels()] == [str(c.value) for c in cells]
        (line,) = place.lines
        assert line.get_ydata().tolist() == [cell.mean(METRIC) for cell in cells]
    assert "Cora, 3 minority classes at 10%" in figure.get_suptitle()


def test_recall_falls_from_the_largest_class_to_the_smallest(comparison):
    figure = recall_figure(comparison)
    (place, *_) = shown(figure)
    assert [line.get_label() for line in place.lines] == ["GCN", "LTE4G", "Uni-GNN"]
    for line in place.lines:
        values = line.get_ydata()
        assert len(values) == 7
        assert (np.diff(values) < 0).all()
    assert [len(one.lines) for one in shown(figure)] == [3, 3, 2]
    legend = [text.get_text() for text in place.get_legend().get_texts()]
    assert legend == ["GCN", "LTE4G", "Uni-GNN"]


def test_confusion_is_in_percent_of_the_true_class(comparison):
    figure = confusion_figure(comparison)
    assert [place.get_title() for place in shown(figure)] == ["GCN", "Uni-GNN"]
    for place in shown(figure):
        share = place.images[0].get_array()
        assert share.shape == (7, 7)
        assert np.asarray(share).sum(axis=1).tolist() == pytest.approx([100.0] * 7)
        assert [text.get_text() for text in place.texts] == [f"{v:.0f}" for v in share.flat]


# Many methods.


@pytest.fixture
def crowd():
    """Thirty methods in two set-ups; number 29 is the best."""
    labels = ["GCN", *(f"method {n}" for n in range(1, 29)), "Uni-GNN"]
    values = {
        (setup, label): spread(40 + number, FEW, f"{setup}{label}", 0.1)
        for setup in (STEP, TAIL)
        for number, label in enumerate(labels)
        if (setup, label) != (TAIL, "method 7")
    }
    return make_results(values)


def test_many_methods_lie_one_below_the_other(crowd):
    first, second = shown(methods_figure(crowd))
    names = [text.get_text() for text in first.get_yticklabels()]
    assert names[:2] == ["Uni-GNN", "method 28"]
    assert names[-1] == "GCN"
    assert [text.get_text() for text in second.get_yticklabels()] == [""] * 30
    means = {
        line.get_ydata()[0]: line.get_xdata()[0]
        for line in first.lines
        if len(line.get_xdata()) == 1
    }
    assert sorted(means, key=lambda place: -means[place]) == list(range(30))
    assert first.get_ylim() == (29.5, -0.5)


def test_recall_of_many_methods_is_that_of_three(crowd):
    place = shown(recall_figure(crowd))[0]
    assert [line.get_label() for line in place.lines] == ["GCN", "method 28", "Uni-GNN"]


def test_no_label_leaves_the_figure(experiments):
    for results in experiments:
        for name, figure in figures(results):
            figure.canvas.draw()
            for text in figure.findobj(Text):
                if text.get_text() and text.get_visible() and text.axes is not None:
                    box = text.get_window_extent()
                    assert box.x0 >= -1, (name, text)
                    assert box.y0 >= -1, (name, text)
                    assert box.x1 <= figure.bbox.x1 + 1, (name, text)
                    assert box.y1 <= figure.bbox.y1 + 1, (name, text)


@pytest.mark.parametrize(
    "label",
    [
        "a$b",
        "x_1^2",
        "100%",
        "<b>&",
        pytest.param("_first"),
        pytest.param("$\\oops{$"),
    ],
)
def test_signs_in_a_name_do_not_stop_a_figure(label):
    results = make_results({("cora-step", label): spread(60.0, FEW, "x")})
    assert draw_all(results) == ["comparison", "recall", "confusion", "cost"]
    assert label in texts(methods_figure(results))


def test_a_map_is_drawn_by_class_and_by_cluster(comparison):
    figure = tsne_figure(comparison)
    assert [place.get_title() for place in shown(figure)] == ["by class", "by cluster"]
    for place in shown(figure):
        (dots,) = place.collections
        assert len(dots.get_offsets()) == 60
    assert "Cora, 3 minority classes at 10%" in figure.get_suptitle()
    (place,) = shown(tsne_figure(replace(comparison, tsne=node_map(clusters=None))))
    assert place.get_title() == "by class"
    assert tsne_figure(replace(comparison, tsne=None)) is None


def test_many_clusters_keep_a_colour_each(comparison):
    _, place = shown(tsne_figure(replace(comparison, tsne=node_map(clusters=20))))
    (dots,) = place.collections
    assert len(set(dots.get_array().tolist())) == len(set(node_map(clusters=20)["clusters"]))


def test_thirty_seven_clusters_keep_a_colour_each(comparison):
    found = node_map(clusters=37)
    _, place = shown(tsne_figure(replace(comparison, tsne=found)))
    (dots,) = place.collections
    assert len(set(dots.get_array().tolist())) == len(set(found["clusters"]))


# What may be missing.


def draw_all(results):
    """Lay every figure out, as saving does; returns their names."""
    names = []
    for name, figure in figures(results):
        figure.draw_without_rendering()
        names.append(name.removeprefix(f"{results.name}-"))
    return names


def test_runs_that_lack_something_are_drawn(comparison):
    lacking = dict.fromkeys(("confusion_matrix", "class_counts", "seconds", "memory"), ...)
    drawn = draw_all(with_outcome(comparison, **lacking))
    assert {"comparison", "recall"} <= set(drawn)
    assert "confusion" not in drawn


def test_runs_without_classes_are_drawn(comparison):
    assert draw_all(with_outcome(comparison, per_class=...))


def test_a_single_seed_is_drawn(experiments):
    for results in experiments:
        assert draw_all(replace(results, seeds=[5]).with_selection_seeds())


def test_a_missing_first_cell_is_drawn(comparison):
    cells = [c for c in comparison.cells if (c.setting, c.label) != (STEP, "Uni-GNN")]
    figure = confusion_figure(replace(comparison, cells=cells))
    assert [place.get_title() for place in shown(figure)] == ["GCN"]
    assert len(draw_all(replace(comparison, cells=cells))) == 5


def test_methods_of_other_names_are_drawn():
    results = make_results({("cora-step", f"m{n}"): spread(60.0, FEW, str(n)) for n in range(12)})
    assert draw_all(results) == ["comparison", "recall", "confusion", "cost"]


def test_a_variant_missing_in_a_set_up_is_drawn(experiments):
    cells = [c for c in experiments[1].cells if (c.setting, c.label) != (PUBMED, "no semantic")]
    figure = ablation_figure(replace(experiments[1], cells=cells))
    assert [len(place.patches) for place in shown(figure)] == [2, 1]
    assert draw_all(replace(experiments[1], cells=cells))


def test_the_whole_method_missing_in_a_set_up_is_drawn(experiments):
    cells = [c for c in experiments[1].cells if (c.setting, c.label) != (PUBMED, "Uni-GNN")]
    figure = ablation_figure(replace(experiments[1], cells=cells))
    assert [len(place.patches) for place in shown(figure)] == [2, 0]


def test_an_ablation_without_a_choice_is_drawn(experiments):
    cells = [replace(cell, selected={}) for cell in experiments[1].cells]
    assert draw_all(replace(experiments[1], cells=cells)) == ["ablation"]


def test_an_ablation_without_common_seeds_is_drawn(experiments):
    cells = [
        c.with_seeds(range(5, 8) if c.selected else range(8, 25)) for c in experiments[1].cells
    ]
    assert draw_all(replace(experiments[1], cells=cells)) == ["ablation"]


def test_curves_of_two_set_ups_stay_apart(experiments):
    other = [replace(c, setting=PUBMED) for c in experiments[2].cells]
    figure = curves_figure(replace(experiments[2], cells=[*experiments[2].cells, *other]))
    longest = max(len(line.get_xdata()) for place in shown(figure) for line in place.lines)
    assert longest == 4


def test_a_board_without_curves_has_no_figure_of_them(comparison):
    assert list(figures(replace(comparison, kind="sensitivity"))) == []
