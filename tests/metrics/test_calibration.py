"""Class shares by expectation maximisation, on nodes whose shares are known."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.metrics import brier_score_loss
from torch.nn.functional import cross_entropy

from evengraph.metrics.calibration import (
    MANY_NODES,
    MAX_TEMPERATURE,
    MIN_NODES,
    MIN_TEMPERATURE,
    Calibrator,
    adjust_to_shares,
    brier_score,
    carried,
    estimate_shares,
    expected_calibration_error,
)
from small_graphs import normal


def drawn(nodes=4000, classes=3, seed=0, bias=None):
    """Logits and labels that are drawn from them: calibrated by construction."""
    logits = 1.5 * normal(nodes, classes, seed=seed)
    if bias is not None:
        logits = logits + torch.tensor(bias)
    stream = torch.Generator().manual_seed(seed + 1)
    return logits, torch.multinomial(logits.softmax(1), 1, generator=stream).flatten()


@given(st.integers(0, 50), st.integers(2, 5), st.floats(0.3, 4))
def test_the_temperature_is_the_likeliest(seed, classes, scale):
    probabilities = (scale * normal(60, classes, seed=seed)).softmax(1)
    labels = torch.randint(classes, (60,), generator=torch.Generator().manual_seed(seed))
    probabilities, labels = probabilities.repeat(20, 1), labels.repeat(20)  # enough to be used
    found, logs = Calibrator.fit(probabilities, labels), probabilities.log()

    def cost(inverse):
        return float(cross_entropy(logs * float(inverse), labels))

    bounds, options = (1 / MAX_TEMPERATURE, 1 / MIN_TEMPERATURE), {"xatol": 1e-10}
    wanted = minimize_scalar(cost, bounds=bounds, method="bounded", options=options)
    assert cost(1 / found.temperature) <= wanted.fun + 1e-9
    assert (found.nodes, found.note, found.shift) == (1200, "", ())


@given(
    st.integers(0, 200),
    st.sampled_from([MIN_TEMPERATURE, 0.5, 1.0, 2.5, MAX_TEMPERATURE]),
    st.sampled_from([torch.float32, torch.float64, torch.float16]),
    st.floats(1e-8, 30),
)
def test_the_first_class_stays_the_first(seed, temperature, kind, scale):
    probabilities = (scale * normal(50, 4, seed=seed)).softmax(1).to(kind)
    result = Calibrator(temperature=temperature)(probabilities)
    assert torch.equal(result.argmax(1), probabilities.argmax(1))
    assert torch.allclose(result.double().sum(1), torch.ones(50).double(), atol=3e-3)
    assert result.dtype == kind


def test_rounding_to_a_tie_does_not_change_the_first_class():
    second = torch.tensor(0.5).nextafter(torch.tensor(1.0))
    probabilities = torch.stack([1 - second, second]).unsqueeze(0)
    for temperature in (2.0, 20.0):
        assert Calibrator(temperature=temperature)(probabilities).argmax(1).tolist() == [1]


def test_too_few_nodes_change_nothing_and_say_so():
    logits, labels = drawn(MIN_NODES - 1)
    found = Calibrator.fit((5 * logits).softmax(1), labels)
    assert found.temperature == 1
    assert f"{MIN_NODES - 1} held-out nodes are too few" in found.note
    logits, labels = drawn(MIN_NODES)
    assert "too few" not in Calibrator.fit((5 * logits).softmax(1), labels).note
    probabilities = logits.softmax(1)
    assert found(probabilities) is probabilities
    right = Calibrator.fit(probabilities, logits.argmax(1))  # no mistake, so it cannot tell
    assert right.temperature == 1
    assert f"All {MIN_NODES} held-out nodes are predicted correctly" in right.note


@pytest.mark.parametrize("seed", range(5))
def test_a_temperature_that_few_nodes_cannot_support_is_not_used(seed):
    logits, labels = drawn(80, seed=seed)
    found = Calibrator.fit(logits.softmax(1), labels)  # calibrated as it is
    assert found.temperature == 1
    assert "would fit the 80 held-out nodes, but" in found.note
    assert found.describe().startswith("not calibrated: a temperature of ")
    needed = Calibrator.fit((4 * logits).softmax(1), labels)
    assert needed.temperature > 2
    assert needed.note == ""


def test_many_nodes_need_no_check(monkeypatch):
    logits, labels = drawn(MANY_NODES)
    monkeypatch.setattr("evengraph.metrics.calibration._helps", None)
    assert Calibrator.fit(logits.softmax(1), labels).temperature != 1


def test_a_shift_mends_what_class_weights_do():
    bias = [2.0, 0.0, -1.5]
    logits, labels = drawn(bias=bias)
    weighted = (logits - torch.tensor(bias)).softmax(1)
    plain, moved = (Calibrator.fit(weighted, labels, shift=shift) for shift in (False, True))
    for found in (plain, moved):
        assert Calibrator.from_dict(json.loads(json.dumps(found.as_dict()))) == found
    assert plain.shift == ()
    assert np.diff(moved.shift) == pytest.approx(np.diff(bias), abs=0.25)
    assert moved.temperature == pytest.approx(1, abs=0.1)
    assert expected_calibration_error(labels, moved(weighted)) < 0.03
    assert brier_score(labels, moved(weighted)) < brier_score(labels, plain(weighted)) - 0.05


def test_a_shift_needs_nodes_of_every_class():
    logits, labels = drawn(200)
    labels[labels == 2] = 0
    labels[:4] = 2
    confident = (3 * logits).softmax(1)
    plain, asked = (Calibrator.fit(confident, labels, shift=shift) for shift in (False, True))
    assert plain.temperature == asked.temperature > 1
    assert asked.shift == ()
    assert "rarest class has 4 held-out nodes" in asked.note


def test_probabilities_of_zero_are_no_trouble():
    probabilities = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(20, 1)
    labels = torch.tensor([0, 1]).repeat(20)
    labels[0], labels[1] = 1, 0
    found = Calibrator.fit(probabilities, labels)
    assert found.temperature > 1
    assert torch.isfinite(found(probabilities)).all()


@given(st.integers(0, 100), st.integers(1, 20), st.integers(2, 4))
def test_calibration_error_bin_by_bin(seed, bins, classes):
    probabilities = (2 * normal(80, classes, seed=seed)).softmax(1)
    labels = torch.randint(classes, (80,), generator=torch.Generator().manual_seed(seed))
    confidence, guess = (part.numpy() for part in probabilities.max(1))
    edges, wanted = np.linspace(0, 1, bins + 1), 0.0
    for low, high in pairwise(edges):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            right = (guess[inside] == labels.numpy()[inside]).mean()
            wanted += inside.mean() * abs(confidence[inside].mean() - right)
    assert expected_calibration_error(labels, probabilities, bins) == pytest.approx(wanted)


@given(st.integers(0, 100))
def test_the_brier_score_of_two_classes_is_twice_the_usual(seed):
    probabilities = normal(30, 2, seed=seed).softmax(1)
    labels = torch.randint(2, (30,), generator=torch.Generator().manual_seed(seed))
    usual = brier_score_loss(labels, probabilities[:, 1], pos_label=1)
    assert brier_score(labels, probabilities) == pytest.approx(2 * usual)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, y: Calibrator.fit(p[:1], y), "one row per label"),
        (lambda p, y: Calibrator.fit(p[:0], y[:0]), "at least one, got"),
        (lambda p, y: Calibrator.fit(3 * p, y), "sum to one; apply softmax"),
        (lambda p, y: Calibrator.fit(p * math.nan, y), "finite"),
        (lambda p, y: Calibrator.fit(p + torch.tensor([0.6, -0.6]), y), "at least 0"),
        (lambda p, y: Calibrator.fit(p, y + 1), "labels must lie between 0 and 1, got 1 to 2"),
        (lambda p, y: Calibrator.fit(p, y - 1), "labels must lie between 0 and 1, got -1 to 0"),
        (lambda p, y: expected_calibration_error(y, p, 0), "bins must be at least 1"),
        (lambda p, y: Calibrator(temperature=0), "temperature must be above 0"),
        (lambda p, y: Calibrator(shift=(math.inf,)), "shift must be finite"),
        (lambda p, y: Calibrator.from_dict({"shift": []}), "Not a saved calibrator"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.tensor([[0.5, 0.5], [0.2, 0.8]]), torch.tensor([0, 1]))


@pytest.mark.parametrize(
    ("margin", "right", "wanted"), [(0.01, 999, MIN_TEMPERATURE), (9.0, 100, MAX_TEMPERATURE)]
)
def test_temperatures_end_at_their_limits(margin, right, wanted):
    """With so small a margin for nodes that are nearly all right, or so large a one for few."""
    labels = torch.zeros(1000, dtype=torch.long)
    logits = torch.tensor([[0.0, margin]]).repeat(1000, 1)
    logits[:right] = logits[:right].flip(1)
    found = Calibrator.fit(logits.softmax(1), labels)
    assert found.temperature == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("positive", [0, 1])
def test_a_threshold_goes_where_its_probability_goes(positive):
    halved = Calibrator(temperature=2.0)
    assert carried(lambda pair: pair, 0.3, positive) == pytest.approx(0.3)
    odds = math.sqrt(0.3 / 0.7)
    assert carried(halved, 0.3, positive) == pytest.approx(odds / (1 + odds))
    certain = 1 / (1 + 2**-12.5)  # 1 - 2**-25 is the largest probability below 1
    assert carried(halved, 1.0, positive) == pytest.approx(certain, abs=1e-12)
    first = Calibrator(temperature=1.0, shift=(math.log(4.0), 0.0))
    assert carried(first, 0.5, positive) == pytest.approx((0.8, 0.2)[positive])


def test_predictions_that_say_nothing_do_not_become_confident():
    uniform = torch.full((MANY_NODES, 4), 0.25, dtype=torch.double)
    found = Calibrator.fit(uniform, torch.arange(MANY_NODES) % 4)
    assert found.temperature >= 1


def posterior(x, share):
    """The probability of the second of two normal classes at -1 and 1, (N, 2)."""
    odds = (2 * x).exp() * share / (1 - share)
    second = odds / (1 + odds)
    return torch.stack([1 - second, second], dim=1)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_shares_are_found_and_corrected_for(share):
    draw = torch.Generator().manual_seed(0)
    labels = torch.rand(20_000, generator=draw, dtype=torch.float64) < share
    x = torch.randn(20_000, generator=draw, dtype=torch.float64) + 2 * labels - 1
    training = torch.tensor([0.6, 0.4])
    found = estimate_shares(posterior(x, 0.4), training)
    assert float(found[1]) == pytest.approx(share, abs=0.02)
    corrected = adjust_to_shares(posterior(x, 0.4), training, torch.tensor([1 - share, share]))
    torch.testing.assert_close(corrected, posterior(x, share), atol=1e-6, rtol=0)


def test_unchanged_shares_and_a_class_that_is_gone():
    rows = torch.tensor([[0.2, 0.8], [0.7, 0.3]])
    mean = rows.double().mean(0)
    torch.testing.assert_close(estimate_shares(rows, mean), mean, atol=1e-5, rtol=0)
    torch.testing.assert_close(adjust_to_shares(rows, mean, mean), rows.double())
    rows = torch.tensor([[0.0, 1.0], [0.5, 0.5]])
    shares = torch.tensor([1.0, 0.0])
    found = adjust_to_shares(rows, torch.tensor([0.5, 0.5]), shares)
    assert found.tolist() == [[0, 1], [1, 0]]  # the first row leaves no other class
