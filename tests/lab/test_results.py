"""Results of a store: which runs make up a cell, and what is compared with what."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from statistics import fmean, stdev

import pytest
from scipy.stats import ttest_rel

from evengraph.lab.results import (
    MIN_SEEDS,
    Estimate,
    ExperimentResults,
    compare,
    compare_with_paper,
    load_experiments,
    paired_gaps,
    paired_table,
    rank_methods,
)
from evengraph.metrics.registry import HEADLINE
from evengraph.metrics.significance import t_test
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
    spread,
)


def drop(store, wanted):
    """Take rows out of a store."""
    keys = [(row.job.key,) for row in store.rows() if wanted(row.job)]
    with closing(sqlite3.connect(store.path)) as base, base:
        base.executemany("DELETE FROM runs WHERE key = ?", keys)


def test_experiments_are_read_back_whole(experiments, copied):
    names = ["comparison", "ablation", "sensitivity"]
    assert [(results.name, results.kind) for results in experiments] == [(n, n) for n in names]
    assert [results.title for results in experiments] == ["Comparison", "Ablation", "Sensitivity"]
    assert [len(results.cells) for results in experiments] == [11, 6, 8]
    assert all(results.seeds == [5, 6, 7] for results in experiments)
    content = copied.experiments()["comparison"] | {"map": "of version 0.2"}
    copied.save_experiment("comparison", content | {"cells": content["cells"][:1]})
    first = load_experiments(copied)[0]
    assert (first.name, len(first.cells)) == ("comparison", 1)


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
            assert cell.deviation("g_mean") == pytest.approx(stdev(figures.values()))
            assert cell.selected == (CHOSEN if label == "Uni-GNN" else {})
    cell = comparison.find(STEP, "Uni-GNN")
    assert [cell.published(metric) for metric in HEADLINE] == [76.5, 75.5, 85.5]
    assert comparison.find(PUBMED, "Uni-GNN").published("g_mean") is None


def test_parts_give_the_same_numbers_as_rows(copied):
    whole = load_experiments(copied)
    for results, part in zip(whole, load_experiments(copied, parts=("metrics",)), strict=True):
        for cell, partial in zip(results.cells, part.cells, strict=True):
            assert (len(cell.rows), cell.selected) == (len(partial.rows), partial.selected)
            for name in HEADLINE:
                assert partial.values(name) == cell.values(name)


def test_cells_whose_rows_are_gone_or_failed_are_left_out(copied):
    drop(copied, lambda job: job.method == "lte4g" or (job.method == "gcn" and job.seed > 6))
    for row in copied.rows(method="re-weight"):
        copied.add(replace(row, status="failed", reason="no memory", outcome={}))
    results = load_experiments(copied)[0]
    assert results.labels == ["GCN", "Uni-GNN"]
    assert [row.job.seed for row in results.find(TAIL, "GCN").rows] == [5, 6]
    assert len(results.find(TAIL, "Uni-GNN").rows) == 20
    drop(copied, lambda job: True)
    names = ("comparison", "ablation", "sensitivity")
    empty = [(results.name, list(results.cells)) for results in load_experiments(copied)]
    assert empty == [(name, []) for name in names]


def test_equal_seeds_are_those_of_the_paper(experiments, comparison):
    first = comparison.with_equal_seeds()
    assert (first.name, first.title, first.kind) == ("comparison", "Comparison", "comparison")
    assert all([row.job.seed for row in cell.rows] == list(FEW) for cell in first.cells)
    assert len(first.cells) == 11
    assert first.with_equal_seeds() is first
    assert len(comparison.find(STEP, "GCN").rows) == 20
    single = experiments[2].with_equal_seeds().curves()["K"][-1]
    assert [row.job.seed for row in single.rows] == [5]
    elsewhere = replace(comparison, seeds=[20, 21]).with_equal_seeds()
    assert elsewhere.labels == ["GCN", "Uni-GNN"]  # the others were not run with these
    assert all(len(cell.rows) == 2 for cell in elsewhere.cells)


def test_the_tuned_or_highlighted_method_is_the_reference(comparison, copied):
    def name(results, **changes):
        cells = [replace(cell, **changes) for cell in results.cells]
        return replace(results, cells=cells).reference

    assert name(comparison) == name(comparison, selected={}) == "Uni-GNN"
    assert name(comparison, selected={}, role="") == "GCN"
    content = copied.experiments()["comparison"]
    for cell in content["cells"]:
        del cell["role"]  # stores of earlier versions have none
    copied.save_experiment("comparison", content)
    assert name(load_experiments(copied)[0]) == "Uni-GNN"


METRIC = "balanced_accuracy"


def test_ranks_leave_out_settings_with_a_missing_method(comparison):
    values = {("a", "one"): {5: 60.0}, ("a", "two"): {5: 70.0}, ("b", "one"): {5: 90.0}}
    assert rank_methods(make_results(values), METRIC) == {"one": 2.0, "two": 1.0}
    assert rank_methods(make_results({**values, ("b", "two"): {5: 1.0}}), METRIC)["one"] == 1.5
    del values["a", "one"]
    assert rank_methods(make_results(values), METRIC) == {}
    ranks = rank_methods(comparison, "g_mean")
    assert ranks == {"GCN": 4.0, "Re-weight": 3.0, "LTE4G": 2.0, "Uni-GNN": 1.0}


def test_comparisons_are_positive_where_the_first_is_better():
    better, worse = spread(75.0, range(10), "better"), spread(65.0, range(10), "worse")
    results = make_results({("a", "ours"): better, ("a", "theirs"): worse})
    (found,) = compare(results, "ours", METRIC)
    assert (found.setting, found.gaps.label, found.against) == ("a", "ours", "theirs")
    assert found.gaps.mean == pytest.approx(fmean(better.values()) - fmean(worse.values()))
    low, high = found.gaps.interval
    assert 0 < low < found.gaps.mean < high
    (other,) = compare(results, "theirs", METRIC)
    assert (other.gaps.mean, other.p) == pytest.approx((-found.gaps.mean, found.p))
    assert other.gaps.interval == pytest.approx((-high, -low))
    assert compare(results, "SMOTE", METRIC) == []


def test_only_common_seeds_are_compared_whatever_their_order():
    one, two = spread(70.0, range(10), "one"), spread(69.0, range(4, 30), "two")
    turned = dict(reversed(two.items()))
    results = make_results({("a", "ours"): one, ("a", "theirs"): turned})
    (found,) = compare(results, "ours", METRIC)
    ours, theirs = ([values[seed] for seed in range(4, 10)] for values in (one, two))
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    assert found.gaps == Estimate("ours", gaps, None, results.cells[0].overlap)
    tested = t_test(gaps, overlap=results.cells[0].overlap)
    assert (found.p, found.gaps.interval) == (tested.p, tested[1:3])
    usual = found.gaps._replace(overlap=0.0).evidence
    assert usual.p == pytest.approx(float(ttest_rel(ours, theirs).pvalue))
    assert usual.p < found.p
    published = make_results(
        {("a", "ours"): one, ("a", "theirs"): two}, paper={METRIC: {"mean": 60.0, "std": None}}
    )
    assert paired_gaps(*published.cells, METRIC).paper == 0.0


@pytest.mark.parametrize(("common", "lines"), [(MIN_SEEDS, 1), (MIN_SEEDS - 1, 0), (0, 0)])
def test_too_few_common_seeds_say_nothing(common, lines):
    one, two = spread(70.0, range(20), "one"), spread(69.0, range(20 - common, 40), "two")
    results = make_results({("a", "ours"): one, ("a", "theirs"): two})
    assert len(compare(results, "ours", METRIC)) == lines


@pytest.mark.parametrize(
    "gaps",
    [[0.5] * 6, [0.0] * 6, [1.0, 2.0, 0.5, 3.0, 1.5, 2.5], [0.1, -0.1, 0.3, 0.2, -0.2, 0.1]],
    ids=["equal", "none", "clear", "unclear"],
)
def test_reports_and_compare_give_the_same_p_value(gaps):
    """The report of a store and `compare` test the same differences in the same way."""
    one = [70.0 + n for n in range(6)]
    two = [a - gap for a, gap in zip(one, gaps, strict=True)]
    values = {("a", "x"): dict(enumerate(one)), ("a", "y"): dict(enumerate(two))}
    results = make_results(values, selected={"alpha": 1})
    overlap = results.cells[0].overlap
    (pair,) = compare_pairs({"x": one, "y": two}, overlap=overlap)
    (found,) = compare(results, "x", METRIC)
    assert found.corrected == pytest.approx(pair.p)
    (_, row) = paired_table(results)
    assert row[-2] == f"{pair.p:.2g}"
    if len(set(gaps)) == 1:  # the p value of the sign test
        assert found.p == (2**-5 if gaps[0] else 1.0)


def cell(label, values, paper=None, chosen=None):
    """A cell with one run per seed, from 5 on."""
    means = None if paper is None else {METRIC: {"mean": paper, "std": 1.0}}
    runs = {("toy", label): dict(enumerate(values, start=5))}
    return make_results(runs, selected=chosen or {}, paper=means).cells[0]


def results_of(*cells):
    return ExperimentResults(
        name="made", title="Made", kind="comparison", seeds=[5, 6, 7], cells=cells
    )


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


def test_all_runs_count_without_a_selection_and_chance_is_that_of_few_seeds():
    def told(*cells):
        return compare_with_paper(results_of(*cells), "Ours", [METRIC])

    for ours in (cell("Ours", [69.0, 70.0, 71.0, 90.0], 70.0), cell("Ours", [69.0] * 3, 70.0)):
        assert told(ours)[0].cell is ours
    assert told(cell("Ours", [69.96] * 3, 70.0))[0].verdict == "reached"  # as the paper prints it
    half = cell("Ours", [0.0, 0.0, 0.0, 100.0, 100.0, 100.0], 100.0)
    assert told(half)[0].chance == pytest.approx(1 / 8, abs=0.02)  # all three from the better half
    assert told(cell("Ours", [1.0, 2.0], None), cell("GCN", [1.0, 2.0], 3.0)) == []


WHOLE = [70.0, 71.0, 72.0, 73.0, 74.0, 75.0]


CLEAR, UNCLEAR = [-5.0, -5.1, -4.9, -5.2, -4.8, -5.0], [-3.0, -0.1, -2.0, -0.1, -0.2, 0.1]


@pytest.mark.parametrize(
    ("gaps", "paper", "verdict"),
    [
        (CLEAR, -3.0, "holds"),
        (CLEAR, +3.0, "opposite sign"),
        (CLEAR, None, "significant"),
        (UNCLEAR, None, "not significant"),
        ([5.0, -5.0, 4.0, -4.0, 1.0, -1.0], -3.0, "not significant"),
        ([0.0] * 6, -3.0, "identical"),
    ],
)
def test_a_claim_holds_or_is_not_significant(gaps, paper, verdict):
    other = [a + b for a, b in zip(WHOLE, gaps, strict=True)]
    theirs = None if paper is None else 76.0 + paper
    cells = cell("Whole", WHOLE, 76.0, chosen={"alpha": 1}), cell("Without", other, theirs)
    (found,) = compare(results_of(*cells), "Whole", METRIC, variants=True)
    assert found.verdict == verdict
    assert found.gaps.mean == pytest.approx(sum(gaps) / 6)
    assert (found.gaps.label, found.against) == ("Without", "Whole")
    assert found.gaps.paper == (None if paper is None else pytest.approx(paper))
    if verdict in ("holds", "significant"):  # many comparisons might give it by chance
        assert found._replace(p=0.04, corrected=0.06).verdict == "uncorrected only"
