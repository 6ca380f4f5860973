"""Results of a store: which runs make up a cell, and what is compared with what."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from statistics import fmean, pstdev

import pytest
from scipy.stats import ttest_rel

from evengraph.lab.results import (
    MIN_SEEDS,
    Cell,
    Estimate,
    ExperimentResults,
    best_first,
    compare,
    compare_with_paper,
    load_experiments,
    paired_gaps,
    rank_methods,
    tabulate,
)
from evengraph.lab.store import JobSpec, Row
from evengraph.lab.tables import significance_table
from evengraph.metrics.registry import HEADLINE
from evengraph.metrics.significance import bootstrap_interval, holm
from evengraph.pipeline.comparison import compare_pairs
from made_up import (
    CENTRES,
    CHOSEN,
    FEW,
    PUBMED,
    SETUPS,
    STEP,
    TAIL,
    figures_of,
    make_results,
    node_map,
    save_experiment,
    spread,
)


def drop(store, wanted):
    """Take rows out of a store."""
    keys = [(row.job.key,) for row in store.rows() if wanted(row.job)]
    with closing(sqlite3.connect(store.path)) as base, base:
        base.executemany("DELETE FROM runs WHERE key = ?", keys)


def test_boards_are_read_back_whole(experiments):
    assert [results.name for results in experiments] == ["comparison", "ablation", "sensitivity"]
    assert [results.kind for results in experiments] == ["comparison", "ablation", "sensitivity"]
    assert [results.title for results in experiments] == ["Comparison", "Ablation", "Sensitivity"]
    assert [len(results.cells) for results in experiments] == [11, 6, 8]
    assert all(results.seeds == [5, 6, 7] for results in experiments)


def test_cells_hold_what_was_kept(comparison):
    assert comparison.settings == list(SETUPS)
    assert comparison.labels == list(CENTRES)
    for setup, (dataset, *_) in SETUPS.items():
        for label in CENTRES:
            cell = comparison.find(setup, label)
            if (setup, label) == (PUBMED, "LTE4G"):
                assert cell is None
                continue
            figures = figures_of(setup, label)
            assert cell.dataset == dataset
            assert cell.by_seed("balanced_accuracy") == figures
            assert cell.values("balanced_accuracy") == list(figures.values())
            assert cell.mean("balanced_accuracy") == pytest.approx(fmean(figures.values()))
            assert cell.deviation("g_mean") == pytest.approx(pstdev(figures.values()))
            assert cell.selected == (CHOSEN if label == "Uni-GNN" else {})


def test_parts_and_values_give_the_same_numbers_as_rows(copied):
    whole = load_experiments(copied)
    stored = copied.values([f"metrics.{name}" for name in HEADLINE])
    contents = copied.experiments()
    for results, part in zip(whole, load_experiments(copied, parts=("metrics",)), strict=True):
        small = tabulate(copied, results.name, contents[results.name], stored)
        for cell, partial, plain in zip(results.cells, part.cells, small.cells, strict=True):
            assert (cell.size, cell.selected) == (plain.size, plain.selected)
            assert partial.outcomes() == [dict(row.outcome) for row in cell.rows]
            assert cell.outcomes() == [row.outcome for row in cell.rows]
            for name in HEADLINE:
                assert partial.values(name) == cell.values(name)
                assert plain.mean(name) == pytest.approx(cell.mean(name), abs=1e-9)
                assert cell.deviation(name) == pytest.approx(pstdev(cell.values(name)), abs=1e-9)


def test_published_means_are_of_the_metric(comparison):
    cell = comparison.find(STEP, "Uni-GNN")
    assert [cell.published(m) for m in ("balanced_accuracy", "macro_f1", "g_mean")] == [
        76.5,
        75.5,
        85.5,
    ]
    assert comparison.find(PUBMED, "Uni-GNN").published("g_mean") is None


def test_curves_keep_the_order_of_their_values(experiments):
    curves = experiments[2].curves()
    assert {name: [cell.value for cell in cells] for name, cells in curves.items()} == {
        "alpha": [1, 2, 3],
        "K": [3, 10, 20, 50],
    }
    assert [cell.varies for cell in curves["K"]] == ["clusters_per_class"] * 4
    assert experiments[2].find(STEP, "alpha") is None
    assert experiments[2].find(STEP, "Uni-GNN").selected == CHOSEN
    assert experiments[0].curves() == {}


def test_a_map_comes_with_its_board(experiments, copied):
    assert [results.tsne for results in experiments] == [node_map(), None, None]
    content = copied.experiments()["comparison"]
    copied.save_experiment("comparison", content | {"map": "of another copied"})
    assert load_experiments(copied)[0].tsne is None


def test_cells_whose_rows_are_gone_are_left_out(copied):
    drop(copied, lambda job: job.method == "lte4g" or (job.method == "gcn" and job.seed > 6))
    results = load_experiments(copied)[0]
    assert results.labels == ["GCN", "Re-weight", "Uni-GNN"]
    assert [row.job.seed for row in results.find(TAIL, "GCN").rows] == [5, 6]
    assert len(results.find(TAIL, "Uni-GNN").rows) == 20


def test_a_board_without_any_row_is_there_and_empty(copied):
    drop(copied, lambda job: True)
    assert [(results.name, list(results.cells)) for results in load_experiments(copied)] == [
        ("comparison", []),
        ("ablation", []),
        ("sensitivity", []),
    ]


def test_rows_that_failed_count_as_gone(copied):
    drop(copied, lambda job: job.method == "lte4g" and job.seed > 5)
    for row in copied.rows(method="lte4g"):
        copied.add(replace(row, status="failed", reason="no memory", outcome={}))
    assert load_experiments(copied)[0].labels == ["GCN", "Re-weight", "Uni-GNN"]


def test_a_board_kept_again_replaces_the_old_one(copied):
    cells = copied.experiments()["comparison"]["cells"]
    save_experiment(copied, "comparison", "comparison", cells[:1])
    assert {results.name: len(results.cells) for results in load_experiments(copied)}[
        "comparison"
    ] == 1


def test_first_seeds_are_those_of_the_paper(experiments, comparison):
    first = comparison.with_equal_seeds()
    assert (first.name, first.title, first.kind) == ("comparison", "Comparison", "comparison")
    assert all([row.job.seed for row in cell.rows] == list(FEW) for cell in first.cells)
    assert len(first.cells) == 11
    assert first.find(STEP, "GCN").selected == comparison.find(STEP, "GCN").selected
    assert len(comparison.find(STEP, "GCN").rows) == 20
    single = experiments[2].with_equal_seeds().curves()["K"][-1]
    assert [row.job.seed for row in single.rows] == [5]


def test_cells_without_a_first_seed_are_left_out(comparison):
    elsewhere = replace(comparison, seeds=[20, 21]).with_equal_seeds()
    assert elsewhere.labels == ["GCN", "Uni-GNN"]
    assert all(len(cell.rows) == 2 for cell in elsewhere.cells)


def test_roles_say_which_method_is_the_baseline_and_which_to_highlight(comparison):
    assert (comparison.baseline, comparison.highlight) == ("GCN", "Uni-GNN")
    cells = [replace(c, role={"LTE4G": "baseline"}.get(c.label, "")) for c in comparison.cells]
    assert replace(comparison, cells=cells).baseline == "LTE4G"


def test_others_are_compared_with_the_highlighted_method_if_none_was_tuned(comparison):
    untuned = replace(comparison, cells=[replace(cell, selected={}) for cell in comparison.cells])
    assert (comparison.reference, untuned.reference) == ("Uni-GNN", "Uni-GNN")
    plain = replace(untuned, cells=[replace(cell, role="") for cell in untuned.cells])
    assert plain.reference == "GCN"


def test_without_roles_the_first_is_the_baseline_and_the_tuned_one_highlighted(copied):
    """Stores of earlier versions have no roles."""
    content = copied.experiments()["comparison"]
    for cell in content["cells"]:
        del cell["role"]
    copied.save_experiment("comparison", content)
    first, *_ = load_experiments(copied)
    assert {cell.role for cell in first.cells} == {""}
    assert (first.baseline, first.highlight) == ("GCN", "Uni-GNN")
    untuned = replace(first, cells=[replace(cell, selected={}) for cell in first.cells])
    assert (untuned.baseline, untuned.highlight) == ("GCN", "")


def test_the_run_of_a_map_has_a_name(experiments):
    assert [results.tsne_label for results in experiments] == ["Uni-GNN", "", ""]


METRIC = "balanced_accuracy"


def test_settings_with_a_missing_method_are_left_out():
    values = {("a", "one"): {5: 60.0}, ("a", "two"): {5: 70.0}, ("b", "one"): {5: 90.0}}
    assert rank_methods(make_results(values), METRIC) == {"one": 2.0, "two": 1.0}
    assert rank_methods(make_results({**values, ("b", "two"): {5: 1.0}}), METRIC)["one"] == 1.5
    del values["a", "one"]
    assert rank_methods(make_results(values), METRIC) == {}


def test_ranks_are_of_the_metric_asked_for(comparison):
    ranks = rank_methods(comparison, "g_mean")
    assert list(ranks) == comparison.labels
    assert ranks == {"GCN": 4.0, "Re-weight": 3.0, "LTE4G": 2.0, "Uni-GNN": 1.0}


def test_comparisons_are_positive_where_the_first_is_better():
    better, worse = spread(75.0, range(10), "better"), spread(65.0, range(10), "worse")
    results = make_results({("a", "ours"): better, ("a", "theirs"): worse})
    (found,) = compare(results, "ours", METRIC)
    assert (found.setting, found.gaps.label, found.against) == ("a", "ours", "theirs")
    assert len(found.gaps.values) == 10
    assert found.gaps.mean == pytest.approx(fmean(better.values()) - fmean(worse.values()))
    low, high = found.gaps.interval
    assert 0 < low < found.gaps.mean < high
    (other,) = compare(results, "theirs", METRIC)
    assert other.gaps.mean == pytest.approx(-found.gaps.mean)
    assert other.gaps.interval == pytest.approx((-high, -low))
    assert other.p == pytest.approx(found.p)


def test_only_common_seeds_are_compared():
    one, two = spread(70.0, range(10), "one"), spread(69.0, range(4, 30), "two")
    results = make_results({("a", "ours"): one, ("a", "theirs"): two})
    (found,) = compare(results, "ours", METRIC)
    assert len(found.gaps.values) == 6
    ours, theirs = ([values[seed] for seed in range(4, 10)] for values in (one, two))
    assert found.gaps.mean == pytest.approx(fmean(ours) - fmean(theirs))
    assert found.p == pytest.approx(float(ttest_rel(ours, theirs).pvalue))
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    assert found.gaps.interval == bootstrap_interval(gaps)


@pytest.mark.parametrize(("common", "lines"), [(MIN_SEEDS, 1), (MIN_SEEDS - 1, 0), (0, 0)])
def test_too_few_common_seeds_say_nothing(common, lines):
    one, two = spread(70.0, range(20), "one"), spread(69.0, range(20 - common, 40), "two")
    results = make_results({("a", "ours"): one, ("a", "theirs"): two})
    assert len(compare(results, "ours", METRIC)) == lines


def test_comparisons_of_all_settings(comparison):
    found = compare(comparison, "Uni-GNN", METRIC)
    assert [(one.setting, one.against) for one in found] == [
        (setup, "GCN") for setup in comparison.settings
    ]
    assert [one.corrected for one in found] == holm([one.p for one in found])
    assert all(one.p <= one.corrected <= 3 * one.p for one in found)
    ours, gcn = (comparison.find(STEP, label).values(METRIC) for label in ("Uni-GNN", "GCN"))
    assert found[0].p == pytest.approx(float(ttest_rel(ours, gcn).pvalue))


def test_a_method_that_nobody_ran_is_compared_to_nothing(comparison):
    assert compare(comparison, "SMOTE", METRIC) == []


@pytest.mark.parametrize("shift", [0.0, 0.5, 12.7])
def test_equal_differences_have_the_p_value_of_the_sign_test(shift):
    one = {seed: 60.0 + seed / 7 for seed in range(8)}
    two = {seed: value - shift for seed, value in one.items()}
    results = make_results({("a", "x"): one, ("a", "y"): two})
    (found,) = compare(results, "x", METRIC)
    p = 2**-7 if shift else 1.0
    assert (found.p, found.corrected) == (p, p)
    assert (found.gaps.mean, *found.gaps.interval) == pytest.approx((shift,) * 3)


@pytest.mark.parametrize(
    "gaps",
    [[0.5] * 6, [0.0] * 6, [1.0, 2.0, 0.5, 3.0, 1.5, 2.5], [0.1, -0.1, 0.3, 0.2, -0.2, 0.1]],
    ids=["equal", "none", "clear", "unclear"],
)
def test_reports_and_compare_give_the_same_p_value(gaps):
    """The report of a store and `compare` test the same differences in the same way."""
    one = [70.0 + n for n in range(6)]
    two = [a - gap for a, gap in zip(one, gaps, strict=True)]
    (pair,) = compare_pairs({"x": one, "y": two}, overlap=0.0, independent=True)
    values = {("a", "x"): dict(enumerate(one)), ("a", "y"): dict(enumerate(two))}
    results = make_results(values, selected={"alpha": 1})
    (found,) = compare(results, "x", METRIC)
    assert found.corrected == pytest.approx(pair.p)
    (_, row) = significance_table(results)
    assert row[-1] == f"{pair.p:.2g}"


def test_gaps_are_paired_by_seed():
    values = {("a", "x"): {7: 3.0, 5: 1.0, 6: 2.0}, ("a", "y"): {5: 0.5, 7: 1.0, 9: 0.0}}
    x, y = make_results(values, paper={METRIC: {"mean": 60.0, "std": None}}).cells
    assert paired_gaps(x, y, METRIC) == Estimate("x", [0.5, 2.0], 0.0)
    assert paired_gaps(*make_results(values).cells, METRIC).paper is None


def test_methods_are_ordered_by_their_mean_rank():
    values = {
        (setup, label): spread(centre + shift, FEW, label, 0)
        for label, centre in {"a": 50, "b": 70, "c": 60}.items()
        for setup, shift in ((STEP, 0), (TAIL, 9))
    }
    assert best_first(make_results(values), METRIC) == ["b", "c", "a"]


def test_a_method_counts_where_it_has_been_run():
    values = {
        (STEP, "a"): spread(50, FEW, "a", 0),
        (STEP, "b"): spread(60, FEW, "b", 0),
        (TAIL, "a"): spread(90, FEW, "a", 0),
    }
    results = make_results(values)
    assert best_first(results, METRIC) == ["b", "a"]  # always the first; the first once in two


def cell(label, values, paper=None, setup="toy", chosen=None):
    """A cell with one run per seed, from 5 on."""
    rows = [
        Row(
            job=JobSpec(
                dataset="toy",
                imbalance="step",
                imbalance_fields={},
                method="gcn",
                method_fields={"label": label},
                seed=seed,
            ),
            outcome={"metrics": {METRIC: value}},
        )
        for seed, value in enumerate(values, start=5)
    ]
    return Cell(
        setting=setup,
        dataset="toy",
        label=label,
        varies=None,
        value=None,
        selected=chosen or {},
        paper=None if paper is None else {METRIC: {"mean": paper, "std": 1.0}},
        rows=rows,
    )


def results_of(*cells, draws="comparison"):
    return ExperimentResults(name="made", title="Made", kind=draws, seeds=[5, 6, 7], cells=cells)


@pytest.mark.parametrize(
    ("paper", "verdict"),
    [
        (70.0, "reached"),
        (69.9, "reached"),
        (70.1, "below, within chance"),
        (73.1, "below"),  # beyond what any three seeds could give
    ],
)
def test_a_published_mean_is_reached_outside_the_selection_or_not(paper, verdict):
    ours = cell("Ours", [75.0, 76.0, 77.0, 69.0, 73.0, 70.0, 68.0], paper, chosen={"alpha": 1})
    (found,) = compare_with_paper(results_of(ours), "Ours", [METRIC])
    assert found.verdict == verdict
    assert found.selection == pytest.approx(76.0)
    assert found.cell.mean(METRIC) == pytest.approx(70.0)
    assert {row.job.seed for row in found.cell.rows} == {8, 9, 10, 11}


def test_without_a_selection_or_other_seeds_all_runs_count():
    for ours in (cell("Ours", [69.0, 70.0, 71.0, 90.0], 70.0), cell("Ours", [69.0] * 3, 70.0)):
        (found,) = compare_with_paper(results_of(ours), "Ours", [METRIC])
        assert found.cell is ours


def test_a_mean_is_compared_as_the_paper_prints_it():
    (found,) = compare_with_paper(results_of(cell("Ours", [69.96] * 3, 70.0)), "Ours", [METRIC])
    assert found.verdict == "reached"


def test_the_chance_is_that_of_as_few_seeds_as_the_paper_has():
    half = cell("Ours", [0.0, 0.0, 0.0, 100.0, 100.0, 100.0], 100.0)
    (found,) = compare_with_paper(results_of(half), "Ours", [METRIC])
    assert found.chance == pytest.approx(1 / 8, abs=0.02)  # all three from the better half


def test_only_what_the_paper_has_and_the_method_asked_for_is_told():
    cells = cell("Ours", [1.0, 2.0], None), cell("GCN", [1.0, 2.0], 3.0)
    assert compare_with_paper(results_of(*cells), "Ours", [METRIC]) == []


WHOLE = [70.0, 71.0, 72.0, 73.0, 74.0, 75.0]


@pytest.mark.parametrize(
    ("gaps", "paper", "verdict"),
    [
        ([-5.0, -5.1, -4.9, -5.2, -4.8, -5.0], -3.0, "holds"),
        ([-5.0, -5.1, -4.9, -5.2, -4.8, -5.0], +3.0, "opposite sign"),
        ([-5.0, -5.1, -4.9, -5.2, -4.8, -5.0], None, "significant"),
        ([-3.0, -0.1, -2.0, -0.1, -0.2, 0.1], None, "uncorrected only"),
        ([5.0, -5.0, 4.0, -4.0, 1.0, -1.0], -3.0, "not significant"),
        ([0.0] * 6, -3.0, "identical"),
        ([-3.0, -0.1, -2.0, -0.1, -0.2, 0.1], -3.0, "uncorrected only"),
    ],
)
def test_a_claim_holds_or_is_not_significant(gaps, paper, verdict):
    other = [a + b for a, b in zip(WHOLE, gaps, strict=True)]
    theirs = None if paper is None else 76.0 + paper
    cells = (
        cell("Whole", WHOLE, 76.0, chosen={"alpha": 1}),
        cell("Without", other, theirs),
    )
    ablation = results_of(*cells, draws="ablation")
    (found,) = compare(ablation, "Whole", METRIC, variants=True)
    assert found.verdict == verdict
    assert found.gaps.mean == pytest.approx(sum(gaps) / 6)
    low, high = found.gaps.interval
    assert low <= found.gaps.mean + 1e-9
    assert found.gaps.mean <= high + 1e-9
    assert (found.gaps.label, found.against) == ("Without", "Whole")
    assert found.gaps.paper == (None if paper is None else pytest.approx(paper))


def test_with_few_seeds_nothing_is_claimed():
    cells = cell("Whole", WHOLE[:4], chosen={"alpha": 1}), cell("Without", WHOLE[:4])
    assert compare(results_of(*cells), "Whole", METRIC, variants=True) == []


def test_means_are_compared_over_equally_many_seeds():
    uneven = results_of(cell("Ours", WHOLE), cell("GCN", WHOLE[:3]))
    assert [len(one.rows) for one in uneven.with_equal_seeds().cells] == [3, 3]
    level = replace(uneven, cells=[cell("Ours", WHOLE), cell("GCN", WHOLE)])
    assert level.with_equal_seeds() is level
