"""Two classes against scikit-learn and every threshold tried one by one; costs and base rates."""

import json
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
from evengraph.metrics.binary import average_precision
from evengraph.metrics.decisions import (
    BASE_RATES,
    CostCurve,
    Costs,
    OperatingPoint,
    RiskCurve,
    average_precision_at,
    base_rate_sweep,
    cheapest,
    cheapest_threshold,
    operating_points,
)

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


POSITIVE = torch.tensor([True, False, True, False, False])
SCORES = torch.tensor([0.9, 0.8, 0.7, 0.2, 0.1])


def cost_by_hand(positive, scores, threshold, costs):
    flags = scores.double() >= threshold
    missed, alarms = (positive & ~flags).sum(), (~positive & flags).sum()
    return float(missed * costs.miss + alarms * costs.alarm)


@given(cases(), st.integers(1, 30), st.integers(1, 30))
def test_no_threshold_is_cheaper(case, miss, alarm):
    costs = Costs(miss, alarm)
    found = cost_by_hand(*case, cheapest_threshold(*case, costs), costs)
    others = [*case[1].double().tolist(), 2.0]
    assert found == pytest.approx(min(cost_by_hand(*case, one, costs) for one in others))


def test_dear_misses_lower_the_threshold_and_dear_alarms_raise_it():
    assert cheapest_threshold(POSITIVE, SCORES, Costs(10, 1)) == pytest.approx(0.7)
    assert cheapest_threshold(POSITIVE, SCORES, Costs(1, 10)) == pytest.approx(0.9)
    wrong = torch.tensor([False, True])
    threshold = cheapest_threshold(wrong, torch.tensor([0.9, 0.1]), Costs(1, 10))
    assert threshold > torch.tensor(0.9).double()  # to flag nothing is cheapest
    assert math.isnan(cheapest_threshold(wrong[:1], SCORES[:1], Costs(1, 1)))


def test_the_hull_keeps_what_can_be_cheapest():
    points = operating_points(POSITIVE, SCORES)
    assert [point.recall for point in points] == [0.0, 0.5, 1.0, 1.0]
    assert [point.false_positive_rate for point in points] == pytest.approx([0, 0, 1 / 3, 1])
    rare = cheapest(points, 0.001, Costs(5, 1))  # of a thousand nodes one is positive
    assert rare.false_positive_rate == 0


@given(cases())
def test_at_their_own_base_rate_nodes_give_what_they_give(case):
    share = float(case[0].double().mean())
    assert average_precision_at(*case, share) == pytest.approx(average_precision(*case))


def test_another_base_rate_is_that_of_repeated_nodes():
    many = torch.cat([POSITIVE, *[POSITIVE[~POSITIVE]] * 9])
    scores = torch.cat([SCORES, *[SCORES[~POSITIVE]] * 9])
    share = float(many.double().mean())
    assert average_precision_at(POSITIVE, SCORES, share) == pytest.approx(
        average_precision(many, scores)
    )
    point = OperatingPoint.at(POSITIVE, SCORES, 0.6)
    assert point == pytest.approx(OperatingPoint.at(many, scores, 0.6))
    assert point.precision(share) == pytest.approx(2 / 12)
    assert point.alarms(share) == pytest.approx(12 / 32)
    assert OperatingPoint(0.5, 0.5, 0.1).precision(0.2) == pytest.approx(0.1 / 0.18)


def test_a_sweep_starts_with_the_nodes_themselves():
    first, *others = base_rate_sweep(POSITIVE, SCORES, 0.6, Costs(10, 2))
    assert [row["base_rate"] for row in others] == list(BASE_RATES)
    assert first == pytest.approx(
        {
            "base_rate": 0.4,
            "alarms": 0.6,
            "precision": 2 / 3,
            "recall": 1.0,
            "average_precision": average_precision(POSITIVE, SCORES),
            "cost": 2 / 5,
        }
    )
    assert "cost" not in base_rate_sweep(POSITIVE, SCORES, 0.6)[0]
    assert base_rate_sweep(POSITIVE, SCORES, math.nan) == []
    assert base_rate_sweep(POSITIVE[:1], SCORES[:1], 0.5) == []
    assert math.isnan(base_rate_sweep(POSITIVE, SCORES, 2.0)[0]["precision"])


def test_costs_are_positive_and_one_is_enough():
    assert Costs.of(None, None) is None
    assert Costs.of(5, None) == (5, 1)
    assert Costs.of(None, 0.5) == (1, 0.5)
    for miss, alarm, name in ((0, 1, "cost_miss"), (1, math.inf, "cost_alarm"), (-1, 1, "cost_m")):
        with pytest.raises(ValueError, match=f"{name}.* must be above 0 and finite"):
            Costs.of(miss, alarm)


FIRST = torch.tensor([0.95, 0.9, 0.8, 0.7, 0.6, 0.55, 0.45, 0.1, 0.05, 0.02])
ROWS = torch.stack([FIRST, 1 - FIRST], dim=1)
LABELS = torch.tensor([0, 0, 0, 1, 0, 1, 1, 1, 1, 1])  # wrong at 0.7 and 0.55


def test_levels_by_hand():
    found = RiskCurve.of(LABELS, ROWS)
    assert found.nodes == 10
    everything = found.levels[0]
    assert everything.coverage == 1
    assert everything.confidence == 0  # also a node of less confidence than any of validation
    assert everything.error == pytest.approx(0.2)
    assert everything.balanced_error == pytest.approx((0 + 2 / 6) / 2)
    level = found.at_share(0.15)  # a tenth is too little
    assert level.coverage == pytest.approx(0.8)
    assert level.confidence == pytest.approx(0.6)
    assert level.error == pytest.approx(1 / 8)
    assert found.at_error(0.2) == everything
    assert found.at_error(0.1).coverage == pytest.approx(0.6)
    assert found.at_share(0) == everything
    found = RiskCurve.of(torch.tensor([0, 1, 0]), torch.full((3, 2), 0.5))
    assert len(found.levels) == 1
    assert found.at_share(0.5).coverage == 1


@pytest.mark.parametrize("value", [-0.1, 1.0])
def test_what_is_refused(value):
    found = RiskCurve.of(LABELS, ROWS)
    with pytest.raises(ValueError, match=r"abstain must lie in \[0, 1\)"):
        found.at_share(value)
    with pytest.raises(ValueError, match=r"max_error must lie in \[0, 1\)"):
        found.at_error(value)
    found = RiskCurve.of(torch.tensor([1, 1]), torch.tensor([[0.9, 0.1], [0.8, 0.2]]))
    with pytest.raises(ValueError, match=r"max_error must be at least 1.000, the lowest error"):
        found.at_error(0.5)


@pytest.mark.parametrize("costs", [None, Costs(miss=5.0, alarm=2.0)])
def test_a_curve_survives_json(costs):
    curve = CostCurve(0.4, tuple(operating_points(POSITIVE, SCORES)), costs)
    assert CostCurve.from_dict(json.loads(json.dumps(curve._asdict()))) == curve
