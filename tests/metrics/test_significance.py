import math
from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, ttest_1samp

from evengraph.metrics.significance import (
    bootstrap_interval,
    format_p,
    holm,
    mean_ranks,
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


@given(VALUES, st.floats(0, 10), st.floats(0, 10))
def test_more_overlap_means_less_evidence(values, one, other):
    less, more = (t_test(values, overlap=value) for value in sorted([one, other]))
    assert more.p >= less.p - 1e-12
    assert more.low <= less.low
    assert more.high >= less.high


@given(VALUES, st.floats(0, 5))
def test_the_interval_leaves_zero_out_just_when_the_test_says_so(values, overlap):
    found = t_test(values, overlap=overlap)
    if abs(found.p - 0.05) > 1e-6:
        assert (found.low > 0 or found.high < 0) == (found.p < 0.05)


def test_values_from_shared_nodes_fool_the_usual_test_and_not_the_corrected_one():
    """Two methods that are equally good; test sets of 20 out of the same 100 nodes."""
    stream = np.random.default_rng(0)
    usual = corrected = 0
    for _ in range(300):
        nodes = stream.choice([-1, 0, 1], size=100)
        splits = [nodes[stream.permutation(100)[:20]].mean() for _ in range(15)]
        usual += t_test(splits).p < 0.05
        corrected += t_test(splits, overlap=20 / 80).p < 0.05
    assert usual > 60
    assert corrected < 30


@pytest.mark.parametrize(("value", "p"), [(0.0, 1.0), (0.1, 2**-3)])
def test_values_that_are_all_the_same(value, p):
    assert t_test([value] * 4, overlap=1) == pytest.approx((value, value, value, p))


def test_a_single_value_says_nothing():
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


@given(chances)
def test_holm_keeps_the_order_and_only_adds(values):
    corrected = holm(values)
    pairs = sorted(zip(values, corrected, strict=True))
    assert [after for _, after in pairs] == sorted(corrected)
    assert all(before <= after <= 1 for before, after in pairs)


def test_holm_of_one_and_of_none():
    assert holm([0.03]) == [0.03]
    assert holm([]) == []


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


SAMPLES = [np.random.default_rng(size).normal(70, 1.5, size).tolist() for size in (2, 3, 5, 20, 60)]


@pytest.mark.parametrize("values", SAMPLES, ids=len)
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_interval_is_that_of_scipy(values, level):
    draw = {"n_resamples": 10_000, "confidence_level": level, "method": "percentile"}
    wanted = bootstrap((values,), np.mean, **draw, rng=np.random.default_rng(0))
    assert bootstrap_interval(values, level) == pytest.approx(wanted.confidence_interval)


@given(st.lists(st.floats(0, 100), min_size=2, max_size=8))
def test_the_interval_holds_the_mean_and_stays_inside_the_values(values):
    low, high = bootstrap_interval(values)
    assert min(values) - 1e-9 <= low <= fmean(values) + 1e-9
    assert fmean(values) - 1e-9 <= high <= max(values) + 1e-9
    assert bootstrap_interval(values) == (low, high)


def test_the_interval_leaves_the_random_state_alone(random_state):
    before = random_state()
    bootstrap_interval(SAMPLES[0])
    assert random_state() == before


@pytest.mark.parametrize("values", [[], [70.0]])
def test_a_single_value_has_no_interval(values):
    assert bootstrap_interval(values) is None


def test_equal_values_have_an_interval_of_no_width():
    assert bootstrap_interval([70.5] * 4) == (70.5, 70.5)


@given(st.lists(st.lists(st.integers(60, 64), min_size=3, max_size=3), min_size=1, max_size=4))
def test_ranks_against_counting(rows):
    names = ["one", "two", "three"]
    ranks = mean_ranks({name: [row[n] for row in rows] for n, name in enumerate(names)})
    for n, name in enumerate(names):
        counts = [1 + sum(v > row[n] for v in row) + (row.count(row[n]) - 1) / 2 for row in rows]
        assert ranks[name] == pytest.approx(fmean(counts))


@pytest.mark.parametrize("values", [{}, {"one": [], "two": []}])
def test_without_values_there_are_no_ranks(values):
    assert mean_ranks(values) == {}


@pytest.mark.parametrize(
    ("p", "words"), [(0.0004, "p < 0.001"), (0.0123, "p = 0.012"), (0.256, "p = 0.26")]
)
def test_p_values_as_text(p, words):
    assert format_p(p) == words
