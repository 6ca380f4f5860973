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

from evengraph.core.schema import read
from evengraph.metrics import binary
from evengraph.metrics.decisions import (
    BEST_F1,
    MAX_POINTS,
    Costs,
    Decision,
    DecisionCurve,
    Outcome,
    Rule,
    covering,
    share_sets,
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


RULES = [
    BEST_F1,
    Rule.of(alerts=0.1),
    Rule.of(precision=0.5),
    Rule.of(recall=0.8),
    Rule.of(Costs(50, 1)),
]


def payments(nodes=4000, share=0.05, seed=0):
    """Which nodes are positive, drawn from probabilities that are right."""
    stream = torch.Generator().manual_seed(seed)
    odds = 2 * torch.randn(nodes, generator=stream, dtype=torch.double) - 4
    scores = odds.sigmoid()
    return torch.rand(nodes, generator=stream, dtype=torch.double) < scores, scores


def test_each_rule_reaches_its_goal_on_many_nodes():
    positive, scores = payments()
    curve = DecisionCurve.of(positive, scores)
    few = DecisionCurve.of(positive[:900], scores[:900])
    ranked = sk.average_precision_score(positive[:900], scores[:900])
    assert few.average_precision == pytest.approx(ranked)
    f1, alerts, precision, recall, cost = (curve.outcome(curve.threshold(rule)) for rule in RULES)
    by_hand = [
        (2 * hits / (hits + wrong + int(positive.sum())), hits, wrong)
        for _, hits, wrong in every_threshold(positive, scores)
    ]
    best = max(value for value, *_ in by_hand)
    assert 2 * f1.found / (f1.flagged + f1.positives) == pytest.approx(best, abs=0.03)
    assert alerts.flagged == pytest.approx(400, abs=40)
    assert precision.found / precision.flagged == pytest.approx(0.5, abs=0.04)
    assert recall.found / recall.positives == pytest.approx(0.8, abs=0.04)
    assert cost.threshold == pytest.approx(1 / 51)  # what is best for probabilities that are right
    assert len(curve.points) <= MAX_POINTS + 1


def test_a_few_positive_nodes_do_not_choose_a_threshold_alone():
    """Four nodes that happen to be on top of the others would set it just below the lowest."""
    scores = torch.linspace(0, 0.2, 1001, dtype=torch.double)
    positive = torch.zeros(1001, dtype=torch.bool)
    positive[-4:] = True
    value = DecisionCurve.of(positive, scores).threshold(BEST_F1)
    assert binary.best_threshold(positive, scores) == pytest.approx(float(scores[-4]))
    assert value < float(scores[-40])


@pytest.mark.parametrize("rule", RULES)
def test_labels_that_were_collected_unevenly_count_as_in_the_population(rule):
    positive, scores = payments(20_000)
    rare = ~positive | (torch.arange(20_000) % 4 == 0)  # a quarter of the positive nodes is seen
    share = float(positive.double().mean())
    whole = DecisionCurve.of(positive, scores)
    found = DecisionCurve.of(positive[rare], scores[rare], share)
    outcomes = [curve.outcome(curve.threshold(rule)) for curve in (whole, found)]
    flagged, hits = ([getattr(o, n) / o.nodes for o in outcomes] for n in ("flagged", "found"))
    assert flagged[1] == pytest.approx(flagged[0], rel=0.15)
    assert hits[1] == pytest.approx(hits[0], rel=0.15)


@given(cases(), st.sampled_from(RULES), st.booleans())
def test_a_decision_counts_what_it_did_and_survives_json(case, rule, second):
    positive, scores = case
    rows = torch.stack([1 - scores / 2, scores / 2], 1)
    rows, labels = (rows if second else rows.flip(1)), (positive == second).long()
    found = Decision.choose(rows, labels, int(second), rule)
    stored = json.loads(json.dumps(found.as_dict()))
    assert stored.pop("options")
    assert read(Decision, stored) == found
    flags = (scores / 2).double() >= found.threshold
    hits = int((flags & positive).sum())
    expected = (len(positive), int(positive.sum()), int(flags.sum()), hits)
    assert found.outcome == pytest.approx((found.threshold, *expected))
    for other in RULES:
        assert found.by(other) == Decision.choose(rows, labels, int(second), other)
    chosen = [row for row in found.options() if row["chosen"]]
    assert [row["threshold"] for row in chosen] == [found.threshold]
    assert Decision.choose(rows, labels * 0, 1, rule) is None


def test_an_outcome_in_words_with_intervals():
    outcome = Outcome(0.3, 900, 18, 40, 14)
    value, (low, high) = outcome.cost(Costs(50, 1))
    assert value == 4 * 50 + 26
    assert low < 150 < value < 350 < high
    assert outcome.words("fraud") == (
        "finds 14 of 18 nodes of class fraud (55% to 91%); 14 of 40 alarms are right (22% to 50%)"
    )
    assert f"; it costs 226 ({low:,.0f} to {high:,.0f})" in outcome.words("fraud", Costs(50, 1))
    assert Outcome(1.0, 900, 18, 0, 0).words("fraud").endswith("; it raises no alarm")
    words = "has no node of class fraud to find; it raises no alarm"
    assert Outcome(1.0, 900, 0, 0, 0).words("fraud") == words


@pytest.mark.parametrize("wanted", [0.8, 0.95])
def test_sets_hold_the_class_of_so_many_nodes_of_every_class(wanted):
    """On average over draws; of a class with too few nodes to tell, always."""
    held = []
    for seed in range(60):
        positive, scores = payments(2000, seed=seed)
        rows, labels = torch.stack([1 - scores, scores], 1), positive.long()
        half = torch.arange(2000) < 1000
        counts = torch.bincount(labels[half]).tolist()
        lowest = covering(share_sets(labels[half], rows[half]), counts, wanted)
        inside = rows.gather(1, labels[:, None]).squeeze(1) >= lowest[labels]
        held.append([float(inside[~half & (labels == c)].double().mean()) for c in (0, 1)])
    for mean in np.mean(held, 0):
        assert mean == pytest.approx(wanted, abs=0.02)
    few = share_sets(torch.tensor([0, 1]), torch.tensor([[0.9, 0.1], [0.4, 0.6]]))
    assert covering(few, (1, 1), 0.9).tolist() == [0, 0]
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1, got 1"):
        covering(few, (1, 1), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alerts": 0}, "alerts must be above 0 and at most 1, got 0"),
        ({"recall": 1.5}, "recall must be above 0 and at most 1"),
        ({"costs": Costs(), "precision": 0.5}, "exclude each other"),
    ],
)
def test_rules_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        Rule.of(**options)


def test_costs_are_positive_and_one_is_enough():
    assert Costs.of(None, None) is None
    assert Costs.of(5, None) == (5, 1)
    assert Costs.of(None, 0.5) == (1, 0.5)
    for miss, alarm, name in ((0, 1, "cost_miss"), (1, math.inf, "cost_alarm"), (-1, 1, "cost_m")):
        with pytest.raises(ValueError, match=f"{name}.* must be above 0 and finite"):
            Costs.of(miss, alarm)


@given(cases(), st.floats(0.01, 0.99))
def test_counts_of_a_curve_fit_one_another_whatever_the_shares(case, share):
    curve = DecisionCurve.of(*case, share)
    assert curve.counts_nodes
    assert not curve._replace(nodes=curve.positives / 2).counts_nodes
    assert not curve._replace(positives=-1.0).counts_nodes
    assert not curve._replace(points=()).counts_nodes
    alone = curve._replace(points=curve.points[:1])  # flags nothing, whatever is wanted
    assert alone.counts_nodes
    assert {alone.threshold(rule) for rule in RULES[:4]} == {alone.points[0][0]}
