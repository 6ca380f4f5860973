"""What more labels would bring."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import evengraph as eg
from evengraph.desk import Pool, learning_curve
from evengraph.desk.curve import _extrapolate, _with_unknown, can_judge


@pytest.fixture(scope="module")
def pool():
    graph = eg.toy(200, 1200, 30, 2, size_ratio=0.5)
    graph.y = torch.where(torch.arange(200) % 4 == 0, graph.y, -1)
    return Pool.open(graph)


def test_expects_a_score_for_more_labels_and_says_how_sure_it_is(pool):
    curve = learning_curve(pool)
    assert [point.labels for point in (curve.now, *curve.expected)] == [50, 70, 100, 150]
    for point in (curve.now, *curve.expected):
        assert 0 <= point.low <= point.score <= point.high <= 100
    gains = [point.gain for point in curve.expected]
    assert gains == sorted(gains)
    assert gains[0] >= 0
    assert curve.advice.startswith("You can stop") == curve.enough
    json.dumps(curve.as_dict())


def extrapolated(sizes, scores, error, between, count, more):
    sizes = np.array(sizes, dtype=float)
    covariance = error * np.eye(len(sizes))
    return _extrapolate(sizes, np.array(scores), covariance, between, count, (more,))


def test_reads_a_power_law_off_scores_without_noise():
    sizes = (10, 20, 30, 40)
    curve = extrapolated(sizes, [0.9 - size**-0.5 for size in sizes], 1e-4, 0.0, 50, 50)
    assert curve.now.score == pytest.approx(100 * (0.9 - 50**-0.5), abs=1)
    assert curve.expected[0].score == pytest.approx(80, abs=1.5)


def test_a_flat_curve_says_stop_only_if_it_is_sure():
    sure = extrapolated((100, 200, 300, 400), [0.8] * 4, 1e-6, 0.0, 500, 100)
    assert sure.enough
    assert sure.advice.startswith("You can stop: 100 more labels")
    unsure = extrapolated((10, 20, 30, 40), [0.8] * 4, 1e-6, 0.03**2, 50, 10)
    assert not unsure.enough
    assert unsure.advice.startswith("Unclear: 10 more labels should bring about 0.")


def test_what_the_labels_cannot_tell_is_said(pool):
    names = ("much", "little", "one", "none")
    labels = torch.where(pool.labels >= 0, 0, -1)
    labels[[0, 4, 8]], labels[12] = 1, 2
    curve = learning_curve(replace(pool, class_names=names), labels=labels)
    assert curve.unknown == (
        "Little or nothing is known of little, one, none: fewer than 5 labels; more there may "
        "bring much.",
    )
    assert not curve.enough
    assert learning_curve(pool).unknown == ()


def test_a_class_without_labels_is_a_reason_to_go_on():
    flat = extrapolated((100, 200, 300, 400), [0.8] * 4, 1e-6, 0.0, 500, 100)
    assert _with_unknown(flat, {"a": 130, "b": 100}) == flat
    few = _with_unknown(flat, {"a": 130, "b": 96})
    assert not few.enough
    assert few.advice.startswith("Unclear: 100 more labels would bring about ")
    assert few.advice.endswith("A trial holds out 19 labels of b, and advice to stop takes 20.")
    curve = _with_unknown(flat, {"a": 90, "b": 80, "c": 0})
    assert not curve.enough
    assert curve.advice.endswith("A trial holds out 0 labels of c, and advice to stop takes 20.")
    many = _with_unknown(flat, {"a": 90, "b": 80} | dict.fromkeys("cdefghijk", 0))
    assert "known of c, d, e, f, g, h and 3 more: fewer" in many.unknown[0]


@pytest.mark.parametrize(
    ("counts", "enough"), [([8, 2], True), ([7, 2], False), ([20, 1, 1], False), ([], False)]
)
def test_it_takes_ten_labels_and_two_of_each_of_two_classes(pool, counts, enough):
    assert can_judge(counts) is enough
    labels = torch.full((200,), -1)
    given = [label for label, count in enumerate(counts) for _ in range(count)]
    labels[: len(given)] = torch.tensor(given, dtype=torch.long)
    named = replace(pool, class_names=("a", "b", "c"))
    assert (learning_curve(named, labels=labels) is not None) is enough
