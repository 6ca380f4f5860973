"""Calibration against logistic regression and shares that are known."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss

from evengraph.core.schema import read
from evengraph.metrics.calibration import (
    MIN_NODES,
    Calibrator,
    adjust_to_shares,
    brier_score,
    estimate_shares,
    expected_calibration_error,
    reliability,
)
from small_graphs import normal


def drawn(nodes=4000, classes=3, seed=0, bias=None):
    """Logits and labels that are drawn from them: calibrated by construction."""
    logits = 1.5 * normal(nodes, classes, seed=seed)
    if bias is not None:
        logits = logits + torch.tensor(bias)
    stream = torch.Generator().manual_seed(seed + 1)
    return logits, torch.multinomial(logits.softmax(1), 1, generator=stream).flatten()


def test_many_nodes_of_two_classes_give_logistic_calibration():
    logits, labels = drawn(20_000, classes=2, bias=[1.0, -2.0])
    weighted = (2 * (logits - torch.tensor([1.0, -2.0]))).softmax(1)
    gap = (weighted[:, 1] / weighted[:, 0]).log().unsqueeze(1).numpy()
    wanted = LogisticRegression(C=1e9).fit(gap, labels)
    found = Calibrator.fit(weighted, labels)
    assert 1 / found.temperature == pytest.approx(float(wanted.coef_[0, 0]), abs=0.01)
    assert found.shift[1] - found.shift[0] == pytest.approx(float(wanted.intercept_[0]), abs=0.01)
    expected = wanted.predict_proba(gap)
    np.testing.assert_allclose(found(weighted).numpy(), expected, atol=0.005)


def test_shifts_undo_what_class_weights_do():
    bias = [2.0, 0.0, -1.5]
    logits, labels = drawn(bias=bias)
    weighted = (logits - torch.tensor(bias)).softmax(1)
    found = Calibrator.fit(weighted, labels)
    assert read(Calibrator, json.loads(json.dumps(found.as_dict()))) == found
    assert np.diff(found.shift) == pytest.approx(np.diff(bias), abs=0.25)
    assert found.temperature == pytest.approx(1, abs=0.1)
    shares = torch.bincount(labels, minlength=3).double() / len(labels)
    torch.testing.assert_close(found(weighted).double().mean(0), shares, atol=2e-3, rtol=0)
    assert found.counts == tuple(torch.bincount(labels).tolist())
    assert expected_calibration_error(labels, found(weighted)) < 0.03


@pytest.mark.parametrize("seed", range(8))
def test_twenty_positive_nodes_are_enough_for_the_mean(seed):
    stream = torch.Generator().manual_seed(seed)
    labels = (torch.arange(1000) < 20).long()
    gap = torch.randn(1000, generator=stream) + 2 * labels  # of balanced classes
    found = Calibrator.fit(torch.stack([-gap / 2, 3 * gap / 2], 1).softmax(1), labels)
    other = torch.randn(50_000, generator=stream)
    other[:1000] += 2
    rows = found(torch.stack([-other / 2, 3 * other / 2], 1).softmax(1))
    assert 0.02 / 1.5 < float(rows[:, 1].mean()) < 0.02 * 1.5
    assert float(rows[:, 1].max()) < 0.999


def test_few_nodes_stay_cautious_even_if_all_are_right():
    labels = torch.tensor([0, 1]).repeat(10)
    sure = torch.nn.functional.one_hot(labels, 2).double()
    assert 0.8 < float(Calibrator.fit(sure, labels)(sure).max()) < 0.99


def test_shares_of_the_population_are_corrected_for():
    logits, labels = drawn()
    plain = Calibrator.fit(logits.softmax(1), labels)
    told = Calibrator.fit(logits.softmax(1), labels, shares=[0.9, 0.09, 0.01])
    assert told.shares == (0.9, 0.09, 0.01)
    expected = adjust_to_shares(
        plain(logits.softmax(1)), torch.tensor(plain.shares), torch.tensor(told.shares)
    )
    torch.testing.assert_close(told(logits.softmax(1)).double(), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("counts", "reliable", "text"),
    [
        (
            (40, 12),
            (True, True),
            "Probabilities are calibrated on 52 held-out nodes (a: 40, b: 12).",
        ),
        (
            (400, 9),
            (False, False),
            "Scores, not probabilities: 409 held-out nodes (a: 400, b: 9) ar",
        ),
        ((11, 11), (False, False), "Scores, not probabilities: 22 held-out nodes"),
        ((40, 30, 3), (True, True, False), "(a: 40, b: 30, c: 3); those of c are scores, "),
    ],
)
def test_numbers_are_called_scores_where_nodes_are_too_few(counts, reliable, text):
    labels = torch.cat([torch.full((n,), label) for label, n in enumerate(counts)])
    found = Calibrator.fit(normal(len(labels), len(counts)).softmax(1), labels)
    assert found.reliable == reliable
    assert text in found.describe(["a", "b", "c"][: len(counts)])
    assert MIN_NODES == 30


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
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.tensor([[0.5, 0.5], [0.2, 0.8]]), torch.tensor([0, 1]))


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1), st.integers(1, 12))
def test_bins_of_equal_size_hold_every_node_once(nodes, bins):
    values = torch.tensor([value / 7 for value, _ in nodes], dtype=torch.double)
    right = torch.tensor([hit for _, hit in nodes])
    rows = torch.stack([1 - values, values], 1)
    found = reliability(right.long(), rows, 1, bins)
    assert reliability(1 - right.long(), rows.flip(1), 0, bins) == found
    assert len(found) <= bins
    assert sum(row[2] for row in found) == len(nodes)
    hits = sum(share * count for _, share, count in found)
    assert hits == pytest.approx(int(right.sum()), abs=1e-4 * len(nodes))
    means = [mean for mean, _, _ in found]
    assert means == sorted(set(means))  # equal probabilities are in one bin


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
