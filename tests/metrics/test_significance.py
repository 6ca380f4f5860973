"""Tests."""

import math
from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from evengraph.metrics.significance import (
    format_p,
    holm,
    mean_ranks,
    mean_recall_interval,
    ranking_interval,
    share_interval,
    t_test,
)

chances = st.lists(st.floats(0, 1), max_size=6)
VALUES = st.lists(st.floats(-50, 50), min_size=2, max_size=8).filter(lambda v: np.std(v) > 1e-3)


@given(VALUES, st.sampled_from([0.5, 0.95]))
def test_without_overlap_it_is_the_usual_test(values, level):
    ours, theirs = t_test(values, level=level), ttest_1samp(values, 0)
    ends = theirs.confidence_interval(level)
    assert ours == pytest.approx((fmean(values), *ends, theirs.pvalue))


def test_the_corrected_test_by_hand():
    """Four splits of 10 test and 20 other nodes: s² = 5/3, so the error is sqrt(5/3 · 3/4)."""
    found = t_test([1.0, 2.0, 3.0, 4.0], overlap=0.5)
    assert found.mean == 2.5
    error = math.sqrt(1.25)  # t = 2.236 at three degrees of freedom, of which 3.182 is 95%
    assert (found.low, found.high) == pytest.approx(
        (2.5 - 3.18245 * error, 2.5 + 3.18245 * error), abs=1e-4
    )
    # the law of t at three degrees of freedom in closed form
    t = 2.5 / error
    below = 0.5 + (math.atan(t / 3**0.5) + t / 3**0.5 / (1 + t * t / 3)) / math.pi
    assert found.p == pytest.approx(2 * (1 - below))
    assert found.p == pytest.approx(0.1115, abs=1e-3)
    usual = t_test([1.0, 2.0, 3.0, 4.0])
    assert usual.p == pytest.approx(0.0305, abs=1e-3)


@pytest.mark.parametrize(("value", "p"), [(0.0, 1.0), (0.1, 2**-3)])
def test_values_that_are_all_the_same(value, p):
    assert t_test([value] * 4, overlap=1) == pytest.approx((value, value, value, p))


def test_a_single_value_says_nothing():
    assert mean_ranks({}) == mean_ranks({"one": [], "two": []}) == {}
    found = t_test([3.0])
    assert found.mean == 3
    assert math.isnan(found.p)
    assert math.isnan(found.low)
    assert math.isnan(t_test([3.0, math.nan]).p)


@pytest.mark.parametrize(
    ("values", "overlap", "message"),
    [([], 0, "at least one value"), ([1.0], -1, "overlap must be at least 0, got -1")],
)
def test_mistakes(values, overlap, message):
    with pytest.raises(ValueError, match=message):
        t_test(values, overlap=overlap)


@given(chances)
def test_holm_is_the_closed_test_of_bonferroni(values):
    """The largest correction among all sets of hypotheses that hold this one."""
    places = range(len(values))
    sets = [s for size in places for s in combinations(places, size + 1)]
    wanted = [
        min(1.0, max(len(s) * min(values[other] for other in s) for s in sets if place in s))
        for place in places
    ]
    assert holm(values) == pytest.approx(wanted)


@given(st.lists(st.lists(st.integers(60, 64), min_size=3, max_size=3), min_size=1, max_size=4))
def test_ranks_against_counting(rows):
    names = ["one", "two", "three"]
    ranks = mean_ranks({name: [row[n] for row in rows] for n, name in enumerate(names)})
    for n, name in enumerate(names):
        counts = [1 + sum(v > row[n] for v in row) + (row.count(row[n]) - 1) / 2 for row in rows]
        assert ranks[name] == pytest.approx(fmean(counts))


@pytest.mark.parametrize(
    ("p", "words"), [(0.0004, "p < 0.001"), (0.0123, "p = 0.012"), (0.256, "p = 0.26")]
)
def test_p_values_as_text(p, words):
    assert format_p(p) == words


def test_wilson_against_known_values():
    assert share_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert share_interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert share_interval(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert share_interval(0, 0) is None
    assert share_interval(1, 1) == pytest.approx((0.2065, 1.0), abs=1e-4)


def test_average_precision_of_a_handful_is_never_certain():
    low, high = ranking_interval(1.0, 3)
    assert (low, high) == pytest.approx((43.85, 100.0), abs=0.01)
    assert ranking_interval(0.5, 40) == pytest.approx([35.2, 64.8], abs=0.1)


def test_balanced_accuracy_lies_within_its_interval():
    low, high = mean_recall_interval([[8, 2], [5, 5]])
    assert low < 0.65 < high
    narrow = mean_recall_interval([[800, 200], [500, 500]])
    assert high - low > narrow[1] - narrow[0]
    without = mean_recall_interval([[8, 2, 0], [5, 5, 0], [0, 0, 0]])
    assert without == (low, high)  # a class without test nodes is left out
    low, high = mean_recall_interval([[5, 0], [0, 5]])  # all right is not certain
    assert low < 0.95
    assert high == 1.0
    assert mean_recall_interval([]) is None
