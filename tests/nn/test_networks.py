"""Both networks against their formulas, with dense matrices; which weights decay."""

import pytest
import torch

from evengraph.core.rng import seeded
from evengraph.nn.backbones import LAST_CONVS, PYG_CONVS
from evengraph.nn.layers import GraphConv
from evengraph.nn.networks import GraphNetwork, PlainNetwork
from evengraph.ops.sparse import Sparse
from evengraph.ops.synthesis import AttachedGraph
from evengraph.training.loop import weight_decays
from small_graphs import dense_adjacency, dense_row, normal, random_edges

MATRIX = dense_row(dense_adjacency(random_edges(9, 20), 9))
PROPAGATION = Sparse.from_dense(MATRIX)


def network(dropout=0.5):
    torch.manual_seed(0)
    return GraphNetwork(4, 5, 3, dropout).double()


def formula(net, x):
    encoder, conv, linear = net.encoder, net.classifier.conv, net.classifier.linear
    hidden = (MATRIX @ x @ encoder.weight + encoder.bias).relu()
    hidden = (MATRIX @ hidden @ conv.weight + conv.bias).relu()
    return hidden @ linear.weight.t() + linear.bias


def gradients(net, value):
    return torch.autograd.grad(value, list(net.parameters()), normal(*value.shape, seed=5))


@pytest.mark.parametrize("sparse", [False, True])
def test_forward_equals_the_formula(sparse):
    net, x = network(), normal(9, 4)
    value = net(Sparse.from_dense(x) if sparse else x, PROPAGATION)
    dense = formula(net, x)
    torch.testing.assert_close(value, dense)
    torch.testing.assert_close(gradients(net, value), gradients(net, dense))


def test_classify_without_dropout_equals_forward():
    net, x = network(), normal(9, 4)
    first = net.encoder(x, PROPAGATION)
    assert torch.equal(net.classify(first, PROPAGATION, dropout=False), net(x, PROPAGATION))
    assert torch.equal(net.classify(first, PROPAGATION), net(x, PROPAGATION))


def test_embed_is_relu_and_dropout():
    net, x = network(), normal(9, 4)
    first = net.encoder(x, PROPAGATION)
    assert torch.equal(net.embed(first), first.relu())
    with seeded(1):
        dropped = net.embed(first, dropout=True)
    kept = dropped > 0
    assert not torch.equal(kept, first > 0)
    torch.testing.assert_close(dropped, torch.where(kept, 2 * first, 0.0))


def test_dropout_acts_twice():
    net, x = network(), normal(9, 4)
    first = net.encoder(x, PROPAGATION)
    with seeded(1):
        value = net.classify(first, PROPAGATION, dropout=True)
    with seeded(1):
        embeddings = net.embed(first, dropout=True)
        expected = net.classifier(embeddings, PROPAGATION, dropout=True)
    assert torch.equal(value, expected)
    assert not torch.equal(value, net.classifier(embeddings, PROPAGATION, dropout=False))
    plain = network(dropout=0.0)
    first = plain.encoder(x, PROPAGATION)
    assert torch.equal(plain.classify(first, PROPAGATION, dropout=True), plain(x, PROPAGATION))


def test_new_nodes_that_are_not_heard_change_no_known_one():
    net, x = network(), normal(9, 4)
    first = net.encoder(x, PROPAGATION)
    new = normal(2, 5, seed=9)
    ones = torch.ones(9, dtype=torch.float64)
    links = torch.tensor([3, 4]), torch.tensor([0, 1]), ones[:2]
    attached = AttachedGraph(PROPAGATION, ones, *links, 2, both_ways=False)
    value = net.classify(torch.cat([first, new]), attached)
    torch.testing.assert_close(value[:9], net(x, PROPAGATION))
    embeddings = first.relu()[[3, 4]]  # the only neighbours of the new ones
    expected = net.classifier.classify_propagated(embeddings, dropout=False)
    torch.testing.assert_close(value[9:], expected)


def plain_network(layer=GraphConv, dropout=0.5):
    torch.manual_seed(0)
    return PlainNetwork(layer, layer, 4, 5, 3, dropout).double()


def test_plain_forward_equals_the_formula():
    net, x = plain_network(), normal(9, 4)
    hidden = (MATRIX @ x @ net.encoder.weight + net.encoder.bias).relu()
    expected = MATRIX @ hidden @ net.last.weight + net.last.bias
    torch.testing.assert_close(net(x, PROPAGATION), expected)
    assert torch.equal(net.classify(net.encoder(x, PROPAGATION), PROPAGATION), net(x, PROPAGATION))


def test_dropout_acts_between_the_layers():
    net, first = plain_network(), normal(9, 5)
    with seeded(1):
        dropped = net.classify(first, PROPAGATION, dropout=True)
    with seeded(1):
        doubled = net.classify(2 * first, PROPAGATION, dropout=True)
    assert not torch.allclose(dropped, net.classify(first, PROPAGATION))
    torch.testing.assert_close(doubled - net.last.bias, 2 * (dropped - net.last.bias))


@pytest.mark.parametrize("backbone", PYG_CONVS)
def test_the_last_layer_does_not_decay(backbone):
    net = plain_network(PYG_CONVS[backbone])
    found = dict(
        zip((name for name, _ in net.named_parameters()), weight_decays(net, 0.1), strict=True)
    )
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
