"""Dropout by bytes, and the graph convolution."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.rng import seeded
from evengraph.nn import GraphClassifier, GraphConv, relu_dropout
from evengraph.ops import Sparse
from small_graphs import dense_adjacency, dense_row, normal, random_edges

RATES = [0.1, 0.25, 0.5, 0.8]


@given(st.integers(0, 30), st.sampled_from([0.0, *RATES]), st.booleans())
def test_relu_alone_when_not_training_or_at_rate_zero(size, rate, training):
    x = normal(size, 3).requires_grad_()
    if training and rate:
        return
    value = relu_dropout(x, rate, training=training)
    assert torch.equal(value, x.relu())
    assert torch.equal(*torch.autograd.grad(value.sum(), x), (x > 0).double())


@pytest.mark.parametrize("rate", RATES)
def test_the_rate_is_met_and_the_mean_kept(rate):
    x = torch.ones(1000, 400)
    with seeded(0):
        dropped = relu_dropout(x, rate, training=True)
    # 400,000 draws: the share is within 0.004 of its mean, itself within 1/512 of the rate
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=0.006)
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)
    survivors = dropped[dropped > 0].unique()
    assert survivors.numel() == 1
    assert survivors.item() == pytest.approx(1 / (1 - rate), rel=0.02)


@pytest.mark.parametrize("rate", RATES)
def test_scaling_matches_the_rate_that_bytes_can_meet(rate):
    with seeded(0):
        dropped = relu_dropout(torch.ones(2000, 500), rate, training=True)
    share = (dropped > 0).double().mean().item()
    assert share * dropped.max().item() == pytest.approx(1, abs=0.01)


def test_entries_are_dropped_independently():
    with seeded(0):
        kept = (relu_dropout(torch.ones(20_000, 16), 0.5, training=True) > 0).double()
    assert (kept.mean(0) - 0.5).abs().max() < 0.02
    correlation = torch.corrcoef(kept.t()) - torch.eye(16)
    assert correlation.abs().max() < 0.05


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


def test_same_seed_same_mask():
    x = torch.ones(50, 7)
    masks = []
    for seed in (1, 1, 2):
        with seeded(seed):
            masks.append(relu_dropout(x, 0.5, training=True))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_the_highest_rate_lets_something_through():
    with seeded(0):
        dropped = relu_dropout(torch.ones(500, 500), 0.9999, training=True)
    assert torch.isfinite(dropped).all()
    assert (dropped > 0).any()


def test_input_is_left_alone():
    x = normal(6, 3)
    before = x.clone()
    relu_dropout(x, 0.5, training=True)
    assert torch.equal(x, before)


@pytest.mark.parametrize("sparse", [False, True])
def test_graph_conv_equals_the_formula(sparse):
    torch.manual_seed(0)
    matrix = dense_row(dense_adjacency(random_edges(9, 20), 9))
    x = normal(9, 4).relu()
    layer = GraphConv(4, 3).double()
    value = layer(Sparse.from_dense(x) if sparse else x, Sparse.from_dense(matrix))
    dense = matrix @ x @ layer.weight + layer.bias
    torch.testing.assert_close(value, dense)
    weight = normal(9, 3, seed=5)
    ours = torch.autograd.grad(value, [layer.weight, layer.bias], weight)
    theirs = torch.autograd.grad(dense, [layer.weight, layer.bias], weight)
    torch.testing.assert_close(ours, theirs)


def test_graph_conv_starts_uniform():
    torch.manual_seed(0)
    layer = GraphConv(200, 16)
    for tensor in (layer.weight, layer.bias):
        assert tensor.abs().max() <= 0.25
    assert layer.weight.abs().max() > 0.24
    assert layer.weight.mean().abs() < 0.01


def test_classifier_equals_the_formula():
    torch.manual_seed(0)
    matrix = dense_row(dense_adjacency(random_edges(9, 20), 9))
    x = normal(9, 4)
    net = GraphClassifier(4, 5, 3, dropout=0.5).double()
    value = net(x, Sparse.from_dense(matrix), dropout=False)
    hidden = (matrix @ x @ net.conv.weight + net.conv.bias).relu()
    torch.testing.assert_close(value, hidden @ net.linear.weight.t() + net.linear.bias)
    assert not torch.equal(value, net(x, Sparse.from_dense(matrix), dropout=True))


def test_classifier_of_what_is_already_propagated():
    torch.manual_seed(0)
    matrix = Sparse.from_dense(dense_row(dense_adjacency(random_edges(9, 20), 9)))
    x = normal(9, 4).requires_grad_()
    net = GraphClassifier(4, 5, 3, dropout=0.5).double()
    ours = net.of_propagated(matrix @ x, dropout=False)
    theirs = net(x, matrix, dropout=False)
    torch.testing.assert_close(ours, theirs)
    over, weight = [x, *net.parameters()], normal(9, 3, seed=5)
    torch.testing.assert_close(
        torch.autograd.grad(ours, over, weight), torch.autograd.grad(theirs, over, weight)
    )
    some = torch.tensor([7, 2])
    torch.testing.assert_close(net.of_propagated((matrix @ x)[some], dropout=False), theirs[some])
    values = []
    for seed in (3, 3, 4):
        with seeded(seed):
            values.append(net.of_propagated(matrix @ x, dropout=True))
    assert torch.equal(values[0], values[1])
    assert not torch.equal(values[0], values[2])
    assert not torch.equal(values[0], ours)
