"""The plain network against its formula, and which of its weights decay."""

import pytest
import torch

from evengraph.core.rng import seeded
from evengraph.nn import LAST_CONVS, PYG_CONVS, GraphConv, PlainNetwork
from evengraph.ops import Sparse
from evengraph.training.loop import decays
from small_graphs import dense_adjacency, dense_row, normal, random_edges

MATRIX = dense_row(dense_adjacency(random_edges(9, 20), 9))
PROPAGATION = Sparse.from_dense(MATRIX)


def network(layer=GraphConv, dropout=0.5):
    torch.manual_seed(0)
    return PlainNetwork(layer, layer, 4, 5, 3, dropout).double()


def test_forward_equals_the_formula():
    net, x = network(), normal(9, 4)
    hidden = (MATRIX @ x @ net.encoder.weight + net.encoder.bias).relu()
    expected = MATRIX @ hidden @ net.last.weight + net.last.bias
    torch.testing.assert_close(net(x, PROPAGATION), expected)
    assert torch.equal(net.classify(net.encoder(x, PROPAGATION), PROPAGATION), net(x, PROPAGATION))


def test_dropout_acts_between_the_layers():
    net, first = network(), normal(9, 5)
    with seeded(1):
        dropped = net.classify(first, PROPAGATION, dropout=True)
    with seeded(1):
        doubled = net.classify(2 * first, PROPAGATION, dropout=True)
    assert not torch.allclose(dropped, net.classify(first, PROPAGATION))
    torch.testing.assert_close(doubled - net.last.bias, 2 * (dropped - net.last.bias))


@pytest.mark.parametrize("backbone", PYG_CONVS)
def test_the_last_layer_does_not_decay(backbone):
    net = network(PYG_CONVS[backbone])
    found = dict(zip((name for name, _ in net.named_parameters()), decays(net, 0.1), strict=True))
    assert {name.split(".")[0]: decay for name, decay in found.items()} == {
        "encoder": 0.1,
        "last": 0.0,
    }


@pytest.mark.parametrize(("backbone", "bound"), [("gcn", (6 / 68) ** 0.5), ("sage", 1 / 8)])
def test_layers_start_as_pygs(backbone, bound):
    layer = LAST_CONVS[backbone](64, 4)
    largest = layer.weight.abs().max().item()
    assert 0.9 * bound < largest <= bound


def test_logits_share_one_head():
    assert LAST_CONVS["gat"](16, 8).heads == 1
    assert PYG_CONVS["gat"](16, 8).heads == 8


def test_a_convolution_starts_as_pygs():
    conv = PYG_CONVS["gcn"](1000, 60)
    bound = (6 / 1060) ** 0.5
    assert (conv.bias == 0).all()
    assert conv.weight.abs().max() <= bound
    assert conv.weight.abs().max() > 0.99 * bound
