from statistics import fmean

import pytest
from made_up import FEW, STEP, TAIL, make_results, spread
from scipy.stats import ttest_rel

from evengraph.experiment.ranking import compare_pairs
from evengraph.metrics.significance import bootstrap_interval, holm
from evengraph.report.store.comparisons import (
    MIN_SEEDS,
    best_first,
    compare_with_others,
    paired_gaps,
    published_gap,
    rank_methods,
)
from evengraph.report.store.tables import significance_table

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
    (found,) = compare_with_others(results, "ours", METRIC)
    assert (found.setting, found.label, found.against, found.seeds) == ("a", "ours", "theirs", 10)
    assert found.difference == pytest.approx(fmean(better.values()) - fmean(worse.values()))
    assert 0 < found.low < found.difference < found.high
    (other,) = compare_with_others(results, "theirs", METRIC)
    assert other.difference == pytest.approx(-found.difference)
    assert other.high < 0
    assert other.p == pytest.approx(found.p)


def test_only_common_seeds_are_compared():
    one, two = spread(70.0, range(10), "one"), spread(69.0, range(4, 30), "two")
    results = make_results({("a", "ours"): one, ("a", "theirs"): two})
    (found,) = compare_with_others(results, "ours", METRIC)
    assert found.seeds == 6
    ours, theirs = ([values[seed] for seed in range(4, 10)] for values in (one, two))
    assert found.difference == pytest.approx(fmean(ours) - fmean(theirs))
    assert found.p == pytest.approx(float(ttest_rel(ours, theirs).pvalue))
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    assert (found.low, found.high) == bootstrap_interval(gaps)


@pytest.mark.parametrize(("common", "lines"), [(MIN_SEEDS, 1), (MIN_SEEDS - 1, 0), (0, 0)])
def test_too_few_common_seeds_say_nothing(common, lines):
    one, two = spread(70.0, range(20), "one"), spread(69.0, range(20 - common, 40), "two")
    results = make_results({("a", "ours"): one, ("a", "theirs"): two})
    assert len(compare_with_others(results, "ours", METRIC)) == lines


def test_five_seeds_are_the_fewest():
    assert MIN_SEEDS == 5


def test_comparisons_of_all_settings(comparison):
    found = compare_with_others(comparison, "Uni-GNN", METRIC)
    assert [(one.setting, one.against) for one in found] == [
        (setup, "GCN") for setup in comparison.settings
    ]
    assert [one.corrected for one in found] == holm([one.p for one in found])
    assert all(one.p <= one.corrected <= 3 * one.p for one in found)
    ours, gcn = (comparison.find(STEP, label).values(METRIC) for label in ("Uni-GNN", "GCN"))
    assert found[0].p == pytest.approx(float(ttest_rel(ours, gcn).pvalue))


def test_a_method_that_nobody_ran_is_compared_to_nothing(comparison):
    assert compare_with_others(comparison, "SMOTE", METRIC) == []


@pytest.mark.parametrize("shift", [0.0, 0.5, 12.7])
def test_equal_differences_have_the_p_value_of_the_sign_test(shift):
    one = {seed: 60.0 + seed / 7 for seed in range(8)}
    two = {seed: value - shift for seed, value in one.items()}
    results = make_results({("a", "x"): one, ("a", "y"): two})
    (found,) = compare_with_others(results, "x", METRIC)
    p = 2**-7 if shift else 1.0
    assert (found.p, found.corrected) == (p, p)
    assert (found.difference, found.low, found.high) == pytest.approx((shift,) * 3)


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
    (found,) = compare_with_others(results, "x", METRIC)
    assert found.corrected == pytest.approx(pair.p)
    (_, row) = significance_table(results)
    assert row[-1] == f"{pair.p:.2g}"


def test_gaps_are_paired_by_seed():
    values = {("a", "x"): {7: 3.0, 5: 1.0, 6: 2.0}, ("a", "y"): {5: 0.5, 7: 1.0, 9: 0.0}}
    x, y = make_results(values, paper={METRIC: {"mean": 60.0, "std": None}}).cells
    assert paired_gaps(x, y, METRIC) == [0.5, 2.0]
    assert published_gap(x, y, METRIC) == 0.0
    assert published_gap(*make_results(values).cells, METRIC) is None


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
