"""Class weights (Eq. 9) and the focal loss."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from evengraph.ops import focal_cross_entropy, inverse_class_weights
from small_graphs import normal

WEIGHTS = torch.tensor([0.05, 0.5, 1.0], dtype=torch.float64)
GAMMAS = [0.0, 0.5, 1.0, 2.0]


def rows_of(size, seed=0):
    stream = torch.Generator().manual_seed(seed)
    return 2 * normal(size, 3, seed=seed), torch.randint(3, (size,), generator=stream)


def test_one_over_the_class_size():
    weights = inverse_class_weights(torch.tensor([20, 4, 1]))
    torch.testing.assert_close(weights, torch.tensor([0.05, 0.25, 1.0]))


def test_an_empty_class_weighs_nothing():
    assert inverse_class_weights(torch.tensor([2, 0])).tolist() == [0.5, 0]


def test_each_class_weighs_the_same_in_all():
    counts = torch.tensor([341, 158, 73, 34, 15, 7, 3])
    weights = inverse_class_weights(counts, torch.float64)
    torch.testing.assert_close(weights * counts, torch.ones(7, dtype=torch.float64))


@given(st.integers(1, 9), st.integers(0, 99), st.sampled_from([None, WEIGHTS]), st.booleans())
def test_gamma_zero_is_cross_entropy(size, seed, weights, on_mean):
    logits, labels = rows_of(size, seed)
    logits.requires_grad_()
    ours = focal_cross_entropy(logits, labels, 0, weights, on_mean=on_mean)
    theirs = cross_entropy(logits, labels, weights)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, logits), torch.autograd.grad(theirs, logits)
    )


@given(
    st.integers(1, 9), st.integers(0, 99), st.sampled_from(GAMMAS), st.sampled_from([None, WEIGHTS])
)
def test_each_node_has_a_factor_of_its_own(size, seed, gamma, weights):
    logits, labels = rows_of(size, seed)
    total = norm = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        p = math.exp(row[label]) / sum(math.exp(value) for value in row)
        weight = 1.0 if weights is None else float(weights[label])
        total += weight * (1 - p) ** gamma * -math.log(p)
        norm += weight
    value = focal_cross_entropy(logits, labels, gamma, weights)
    assert value.item() == pytest.approx(total / norm, rel=1e-9)


@given(
    st.integers(1, 9), st.integers(0, 99), st.sampled_from(GAMMAS), st.sampled_from([None, WEIGHTS])
)
def test_one_factor_from_the_mean(size, seed, gamma, weights):
    logits, labels = rows_of(size, seed)
    value = focal_cross_entropy(logits, labels, gamma, weights, on_mean=True)
    factor = (1 - math.exp(-cross_entropy(logits, labels).item())) ** gamma
    assert value.item() == pytest.approx(
        factor * cross_entropy(logits, labels, weights).item(), rel=1e-9
    )


@pytest.mark.parametrize("on_mean", [False, True])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_gradient_of_the_focal_loss(gamma, on_mean):
    logits, labels = rows_of(6)
    assert torch.autograd.gradcheck(
        lambda logits: focal_cross_entropy(logits, labels, gamma, WEIGHTS, on_mean=on_mean),
        logits.requires_grad_(),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("on_mean", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_a_perfect_prediction_has_a_finite_gradient(gamma, on_mean, dtype):
    for logits in ([[2000.0, 0.0]], [[2000.0, 0.0], [1.0, 1.0]]):
        rows = torch.tensor(logits, dtype=dtype, requires_grad=True)
        labels = torch.zeros(len(logits), dtype=torch.long)
        value = focal_cross_entropy(rows, labels, gamma, on_mean=on_mean)
        (gradient,) = torch.autograd.grad(value, rows)
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()
        assert not gradient[0].any()
