"""ReLU and dropout by bytes."""

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.rng import seeded
from evengraph.fast.dropout import Noise, _device_dropout, relu_dropout
from small_graphs import normal

RATES = [0.1, 0.25, 0.5, 0.8]


@pytest.mark.parametrize(("rate", "training"), [(0.5, False), (0.0, True), (0.0, False)])
def test_relu_alone_when_not_training_or_at_rate_zero(rate, training):
    x = normal(30, 3).requires_grad_()
    value = relu_dropout(x, rate, training=training)
    assert torch.equal(value, x.relu())
    assert torch.equal(*torch.autograd.grad(value.sum(), x), (x > 0).double())


@pytest.mark.parametrize("rate", RATES)
def test_the_rate_is_met_and_entries_are_dropped_independently(rate):
    with seeded(0):
        dropped = relu_dropout(torch.ones(25_000, 16), rate, training=True)
    # 400,000 draws: the share is within 0.004 of its mean, itself within 1/512 of the rate
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=0.006)
    survivors = dropped[dropped > 0].unique()
    assert survivors.numel() == 1
    assert survivors.item() == pytest.approx(1 / (1 - rate), rel=0.02)  # keeps the mean
    kept = (dropped > 0).double()
    assert (kept.mean(0) - (1 - rate)).abs().max() < 0.02
    assert (torch.corrcoef(kept.t()) - torch.eye(16)).abs().max() < 0.05


@given(st.integers(1, 40), st.integers(1, 5), st.sampled_from(RATES), st.integers(0, 99))
def test_gradient_is_mask_times_scale(rows, width, rate, seed):
    x = normal(rows, width, seed=seed).requires_grad_()
    with seeded(seed):
        value = relu_dropout(x, rate, training=True)
    weight = normal(rows, width, seed=seed + 1)
    (gradient,) = torch.autograd.grad(value, x, weight)
    scale = 256 / (256 - round(256 * rate))
    mask = value > 0
    torch.testing.assert_close(value, torch.where(mask, x * scale, 0.0))
    torch.testing.assert_close(gradient, torch.where(mask, weight * scale, 0.0))
    assert not mask[x <= 0].any()


def test_the_highest_rate_lets_something_through():
    with seeded(0):
        dropped = relu_dropout(torch.ones(500, 500), 0.9999, training=True)
    assert torch.isfinite(dropped).all()
    assert (dropped > 0).any()


@pytest.mark.parametrize("dropout", [_device_dropout, partial(relu_dropout, training=True)])
def test_a_part_of_a_batch_drops_what_the_whole_batch_does(dropout):
    x, index = normal(2, 6, 3).abs(), torch.tensor([1, 4])
    with seeded(0):
        whole = dropout(x, 0.5, share=None)
    with seeded(0):
        part = dropout(x[:, index], 0.5, share=(index, 6))
    torch.testing.assert_close(part, whole[:, index])


@pytest.mark.parametrize(("shape", "words"), [((2, 4), 1), ((3, 3), 2)])
def test_a_random_word_is_drawn_for_eight_values(shape, words):
    with seeded(0):
        relu_dropout(torch.ones(shape), 0.5, training=True)
        after = torch.rand(1)
    with seeded(0):
        torch.empty(words, dtype=torch.int64).random_(-(2**63), None)
        assert torch.rand(1) == after


def test_streams_depend_on_their_seed_and_call_alone():
    shape = 3, 50, 7
    first, other = Noise(torch.tensor([4, 5, 6])), Noise(torch.tensor([6, 4]))
    drawn = [first.bytes(shape) for _ in range(2)]
    assert not torch.equal(*drawn)
    for draw in drawn:
        assert torch.equal(other.bytes((2, *shape[1:])), draw[[2, 0]])
    values = Noise(torch.arange(4)).bytes((4, 1000, 25)).float()
    assert len({tuple(row) for row in values[:, 0].tolist()}) == 4
    assert values.mean((1, 2)).tolist() == pytest.approx([127.5] * 4, abs=2)
    assert values.var((1, 2)).tolist() == pytest.approx([(256**2 - 1) / 12] * 4, rel=0.03)


def test_noise_of_runs_and_its_gradient():
    x = normal(2, 400, 30).requires_grad_()
    noise = Noise(torch.tensor([1, 2]))
    value = relu_dropout(x, 0.25, training=True, noise=noise)
    passed = value > 0
    assert float(passed[x > 0].float().mean()) == pytest.approx(0.75, abs=0.02)
    torch.testing.assert_close(value, torch.where(passed, x / 0.75, 0.0))
    (gradient,) = torch.autograd.grad(value.sum(), x)
    torch.testing.assert_close(gradient, passed.double() / 0.75)
