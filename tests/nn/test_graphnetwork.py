"""The network of the comparison against its formula, with dense matrices."""

import pytest
import torch

from evengraph.core.rng import seeded
from evengraph.nn import GraphNetwork
from evengraph.ops import Attached, Sparse
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
    attached = Attached(PROPAGATION, ones, *links, 2, both_ways=False)
    value = net.classify(torch.cat([first, new]), attached)
    torch.testing.assert_close(value[:9], net(x, PROPAGATION))
    embeddings = first.relu()[[3, 4]]  # the only neighbours of the new ones
    expected = net.classifier.of_propagated(embeddings, dropout=False)
    torch.testing.assert_close(value[9:], expected)
