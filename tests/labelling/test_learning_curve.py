"""What more labels would bring."""

import json

import pytest
import torch

import evengraph as eg
from evengraph.labelling import Pool, learning_curve
from evengraph.labelling.learning_curve import _extrapolate


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
    assert curve.advice.startswith("You can stop" if curve.enough else "Go on")
    json.dumps(curve.as_dict())


def test_too_few_labels_give_none(pool):
    labels = pool.labels.clone()
    labels[20:] = -1
    assert learning_curve(pool, labels=labels) is None
    assert learning_curve(pool, labels=pool.labels.clamp(max=0)) is None


def test_reads_a_power_law_off_scores_without_noise():
    import numpy as np

    sizes = np.array([10.0, 20, 30, 40])
    scores = 0.9 - 1.0 * sizes**-0.5
    curve = _extrapolate(sizes, scores, 1e-4 * np.eye(4), 0.0, 50, (50,))
    assert curve.now.score == pytest.approx(100 * (0.9 - 50**-0.5), abs=1)
    assert curve.expected[0].score == pytest.approx(80, abs=1.5)


def test_a_flat_curve_says_stop():
    import numpy as np

    sizes = np.array([100.0, 200, 300, 400])
    curve = _extrapolate(sizes, np.full(4, 0.8), 1e-6 * np.eye(4), 0.0, 500, (100,))
    assert curve.enough
    assert curve.advice.startswith("You can stop: 100 more labels")
