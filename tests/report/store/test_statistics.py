import math
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import STEP, make_board, spread
from scipy.stats import bootstrap, ttest_rel

from evengraph.metrics.significance import holm
from evengraph.report.store.statistics import FEWEST, comparisons, interval, mean_ranks

METRIC = "balanced_accuracy"
SAMPLES = [list(spread(70.0, range(size), str(size)).values()) for size in (3, 5, 20, 60)]


@pytest.mark.parametrize("values", SAMPLES, ids=len)
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_interval_is_that_of_scipy(values, level):
    draw = {"n_resamples": 10_000, "confidence_level": level, "method": "percentile"}
    wanted = bootstrap((values,), np.mean, **draw, rng=np.random.default_rng(1))
    slack = 0.06 * np.std(values) if len(values) > 3 else 0.2 * np.std(values)
    assert interval(values, level) == pytest.approx(wanted.confidence_interval, abs=slack)


@given(st.lists(st.floats(0, 100), min_size=2, max_size=8))
def test_the_interval_holds_the_mean_and_stays_inside_the_values(values):
    low, high = interval(values)
    assert min(values) - 1e-9 <= low <= fmean(values) + 1e-9
    assert fmean(values) - 1e-9 <= high <= max(values) + 1e-9
    assert interval(values) == (low, high)


def test_the_interval_leaves_the_random_state_alone(random_state):
    before = random_state()
    interval(SAMPLES[0])
    assert random_state() == before


@pytest.mark.parametrize("values", [[], [70.0]])
def test_a_single_value_has_no_interval(values):
    assert interval(values) is None


def test_equal_values_have_an_interval_of_no_width():
    assert interval([70.5] * 4) == (70.5, 70.5)


@given(st.lists(st.lists(st.integers(60, 64), min_size=3, max_size=3), min_size=1, max_size=4))
def test_ranks_against_counting(rows):
    labels = ["one", "two", "three"]
    board = make_board(
        {
            (f"cora-{place}", label): {5: float(value)}
            for place, row in enumerate(rows)
            for label, value in zip(labels, row, strict=True)
        }
    )
    for place, label in enumerate(labels):
        own = [
            1 + sum(v > row[place] for v in row) + (row.count(row[place]) - 1) / 2 for row in rows
        ]
        assert mean_ranks(board, METRIC)[label] == pytest.approx(fmean(own))


def test_set_ups_with_a_missing_method_are_left_out():
    values = {("a", "one"): {5: 60.0}, ("a", "two"): {5: 70.0}, ("b", "one"): {5: 90.0}}
    assert mean_ranks(make_board(values), METRIC) == {"one": 2.0, "two": 1.0}
    assert mean_ranks(make_board({**values, ("b", "two"): {5: 1.0}}), METRIC)["one"] == 1.5
    del values["a", "one"]
    assert mean_ranks(make_board(values), METRIC) == {}


def test_ranks_are_of_the_metric_asked_for(comparison):
    ranks = mean_ranks(comparison, "g_mean")
    assert list(ranks) == comparison.labels
    assert ranks == {"GCN": 4.0, "Re-weight": 3.0, "LTE4G": 2.0, "Uni-GNN": 1.0}


def test_comparisons_are_positive_where_the_first_is_better():
    better, worse = spread(75.0, range(10), "better"), spread(65.0, range(10), "worse")
    board = make_board({("a", "ours"): better, ("a", "theirs"): worse})
    (found,) = comparisons(board, "ours", METRIC)
    assert (found.setup, found.label, found.against, found.seeds) == ("a", "ours", "theirs", 10)
    assert found.difference == pytest.approx(fmean(better.values()) - fmean(worse.values()))
    assert 0 < found.low < found.difference < found.high
    (other,) = comparisons(board, "theirs", METRIC)
    assert other.difference == pytest.approx(-found.difference)
    assert other.high < 0
    assert other.p == pytest.approx(found.p)


def test_only_common_seeds_are_compared():
    one, two = spread(70.0, range(10), "one"), spread(69.0, range(4, 30), "two")
    board = make_board({("a", "ours"): one, ("a", "theirs"): two})
    (found,) = comparisons(board, "ours", METRIC)
    assert found.seeds == 6
    ours, theirs = ([values[seed] for seed in range(4, 10)] for values in (one, two))
    assert found.difference == pytest.approx(fmean(ours) - fmean(theirs))
    assert found.p == pytest.approx(float(ttest_rel(ours, theirs).pvalue))
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    assert (found.low, found.high) == interval(gaps)


@pytest.mark.parametrize(("common", "lines"), [(FEWEST, 1), (FEWEST - 1, 0), (0, 0)])
def test_too_few_common_seeds_say_nothing(common, lines):
    one, two = spread(70.0, range(20), "one"), spread(69.0, range(20 - common, 40), "two")
    board = make_board({("a", "ours"): one, ("a", "theirs"): two})
    assert len(comparisons(board, "ours", METRIC)) == lines


def test_five_seeds_are_the_fewest():
    assert FEWEST == 5


def test_comparisons_of_a_whole_board(comparison):
    found = comparisons(comparison, "Uni-GNN", METRIC)
    assert [(one.setup, one.against) for one in found] == [
        (setup, "GCN") for setup in comparison.setups
    ]
    assert [one.corrected for one in found] == holm([one.p for one in found])
    assert all(one.p <= one.corrected <= 3 * one.p for one in found)
    ours, gcn = (comparison.find(STEP, label).values(METRIC) for label in ("Uni-GNN", "GCN"))
    assert found[0].p == pytest.approx(float(ttest_rel(ours, gcn).pvalue))


def test_a_method_that_nobody_ran_is_compared_to_nothing(comparison):
    assert comparisons(comparison, "SMOTE", METRIC) == []


@pytest.mark.parametrize(("shift", "p"), [(0.0, 1.0), (0.5, 0.0)])
def test_differences_that_are_all_the_same(shift, p):
    one = {seed: 60.0 + seed / 4 for seed in range(8)}
    two = {seed: value - shift for seed, value in one.items()}
    (found,) = comparisons(make_board({("a", "x"): one, ("a", "y"): two}), "x", METRIC)
    assert (found.p, found.corrected) == (p, p)
    assert (found.difference, found.low, found.high) == (shift, shift, shift)


def test_differences_that_are_the_same_but_for_rounding():
    one = {seed: 60.1 + seed / 7 for seed in range(8)}
    two = {seed: value - 12.7 for seed, value in one.items()}
    (found,) = comparisons(make_board({("a", "x"): one, ("a", "y"): two}), "x", METRIC)
    assert found.difference == pytest.approx(12.7)
    assert math.isclose(found.p, 0.0, abs_tol=1e-9)
