"""Costs, thresholds that minimise them, and other base rates, against all thresholds by hand."""

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

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

POSITIVE = torch.tensor([True, False, True, False, False])
SCORES = torch.tensor([0.9, 0.8, 0.7, 0.2, 0.1])


@st.composite
def cases(draw):
    size = draw(st.integers(2, 12))
    labels = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    labels[:2] = [True, False]
    scores = draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    return torch.tensor(labels), torch.tensor(scores) / 8


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
