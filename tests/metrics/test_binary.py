"""Two classes against scikit-learn, and against every threshold tried one by one."""

import math
from itertools import permutations
from statistics import fmean

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from evengraph.metrics import binary

BUDGETS = [0.0, 0.01, 0.1, 0.25, 1 / 3, 0.5, 1.0]


@st.composite
def cases(draw, both=True, most=25):
    """Which nodes are positive, and scores with many ties."""
    size = draw(st.integers(2 if both else 1, most))
    positive = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    if both:
        positive[0], positive[-1] = True, False
    levels = draw(st.integers(1, 12))
    scores = draw(st.lists(st.integers(0, levels), min_size=size, max_size=size))
    kind = draw(st.sampled_from([torch.float32, torch.float64]))
    return torch.tensor(positive), torch.tensor(scores, dtype=kind) / 7


def every_threshold(positive, scores):
    """Threshold, true positives, false positives: also that which flags nothing."""
    values = scores.double().numpy()
    truth = positive.numpy()
    for threshold in [*sorted(set(values), reverse=True), np.nextafter(values.max(), np.inf)]:
        chosen = values >= threshold
        yield threshold, (chosen & truth).sum(), (chosen & ~truth).sum()


@given(cases())
def test_average_precision(case):
    assert binary.average_precision(*case) == pytest.approx(sk.average_precision_score(*case))


@given(cases(), st.sampled_from(BUDGETS))
def test_recall_at_a_budget(case, budget):
    wrong, found, _ = sk.roc_curve(*case, drop_intermediate=False)
    assert binary.recall_at(*case, budget) == pytest.approx(max(found[wrong <= budget]))


@given(cases(both=False, most=6), st.data())
def test_precision_at_k_is_the_mean_over_all_orders_of_ties(case, data):
    positive, scores = (part.tolist() for part in case)
    k = data.draw(st.integers(1, len(scores)))
    shares = []
    for order in permutations(range(len(scores))):
        ranked = [scores[place] for place in order]
        if ranked == sorted(scores, reverse=True):
            shares.append(sum(positive[place] for place in order[:k]) / k)
    assert binary.precision_at(*case, k) == pytest.approx(fmean(shares))


@given(cases())
def test_the_threshold_with_the_best_f1(case):
    threshold = binary.best_threshold(*case)
    total = int(case[0].sum())
    best = max(2 * hit / (hit + wrong + total) for _, hit, wrong in every_threshold(*case))
    assert binary.f1_at(*case, threshold) == pytest.approx(best)
    assert sk.f1_score(case[0], case[1].double() >= threshold) == pytest.approx(best)
    above = case[1].double() > threshold  # the highest of those that are as good
    assert sk.f1_score(case[0], above, zero_division=0) < best


@given(cases())
def test_the_threshold_with_the_best_balanced_accuracy(case):
    threshold = binary.best_threshold(*case, "balanced_accuracy")
    best = max(
        sk.balanced_accuracy_score(case[0], case[1].double().numpy() >= one)
        for one, _, _ in every_threshold(*case)
    )
    ours = sk.balanced_accuracy_score(case[0], binary.flagged(case[1], threshold))
    assert ours == pytest.approx(best)


@given(cases(), st.sampled_from(BUDGETS))
def test_the_threshold_that_keeps_a_budget(case, budget):
    threshold = binary.best_threshold(*case, "false_positives", budget=budget)
    negatives = int((~case[0]).sum())
    chosen = binary.flagged(case[1], threshold)
    assert int((chosen & ~case[0]).sum()) / negatives <= budget
    best = max(hit for _, hit, wrong in every_threshold(*case) if wrong / negatives <= budget)
    assert int((chosen & case[0]).sum()) == best


def test_a_budget_that_not_even_the_first_tie_keeps_flags_nothing():
    scores = torch.ones(4)  # single precision: the next number above is one that it cannot hold
    positive = torch.tensor([True, True, False, False])
    threshold = binary.best_threshold(positive, scores, "false_positives", budget=0.4)
    assert threshold > 1
    assert not binary.flagged(scores, threshold).any()
    positive, scores = torch.tensor([0, 1, 0, 0]).bool(), torch.tensor([0.9, 0.8, 0.8, 0.8])
    threshold = binary.best_threshold(positive, scores, "false_positives", budget=0.4)
    assert threshold == pytest.approx(0.9)  # better no hits than beyond the budget


def test_one_class_alone_leaves_figures_undefined():
    scores = torch.tensor([0.2, 0.8])
    for positive in (torch.ones(2, dtype=torch.bool), torch.zeros(2, dtype=torch.bool)):
        assert math.isnan(binary.recall_at(positive, scores, 0.1))
        assert math.isnan(binary.best_threshold(positive, scores))
    assert math.isnan(binary.average_precision(torch.zeros(2, dtype=torch.bool), scores))
    assert math.isnan(binary.f1_at(torch.tensor([True, False]), scores, math.nan))


@pytest.mark.parametrize(("counts", "wanted"), [([3, 9], 0), ([9, 3], 1), ([4, 4], 1), ([0, 4], 0)])
def test_the_rarer_class_is_the_positive_one(counts, wanted):
    assert binary.positive_class(torch.tensor(counts)) == wanted


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, s: binary.precision_at(p, s, 0), "k must lie between 1 and the 2 nodes, got 0"),
        (lambda p, s: binary.precision_at(p, s, 3), "got 3"),
        (lambda p, s: binary.recall_at(p, s, 1.5), r"budget must lie in \[0, 1\], got 1.5"),
        (lambda p, s: binary.best_threshold(p, s, "auc"), "goal must be one of f1"),
        (lambda p, s: binary.curve(p, s[:1]), "of the same length"),
        (lambda p, s: binary.curve(p[:0], s[:0]), "at least 1"),
        (lambda p, s: binary.curve(p, s * math.nan), "scores must be finite"),
        (lambda p, s: binary.positive_class(torch.ones(3)), "two classes, got 3"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.tensor([True, False]), torch.tensor([0.5, 0.25]))


def test_points_of_the_precision_recall_curve():
    positive = torch.tensor([True, False, True, False])
    scores = torch.tensor([0.9, 0.8, 0.7, 0.6])
    assert binary.precision_recall_points(positive, scores) == [[0.5, 1.0], [1.0, 0.6667]]
    assert binary.precision_recall_points(positive, scores, limit=1) == [[0.5, 1.0]]
    assert binary.precision_recall_points(torch.zeros(4, dtype=torch.bool), scores) == []
    last = torch.tensor([False, False, False, True])
    assert binary.precision_recall_points(last, scores) == [[1.0, 0.25]]


def test_recall_of_the_highest_scores_by_hand():
    positive, scores = torch.tensor([1, 0, 1, 1]).bool(), torch.tensor([4.0, 3.0, 2.0, 1.0])
    assert binary.recall_at_top(positive, scores, 3) == pytest.approx(2 / 3)
    assert math.isnan(binary.recall_at_top(~positive & positive, scores, 3))
