"""The graph convolution and the classifier."""

import pytest
import torch

from evengraph.core.rng import seeded
from evengraph.nn.layers import GraphClassifier, GraphConv
from evengraph.ops.sparse import Sparse
from small_graphs import dense_adjacency, dense_row, normal, random_edges


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
    ours = net.classify_propagated(matrix @ x, dropout=False)
    theirs = net(x, matrix, dropout=False)
    torch.testing.assert_close(ours, theirs)
    over, weight = [x, *net.parameters()], normal(9, 3, seed=5)
    torch.testing.assert_close(
        torch.autograd.grad(ours, over, weight), torch.autograd.grad(theirs, over, weight)
    )
    some = torch.tensor([7, 2])
    torch.testing.assert_close(
        net.classify_propagated((matrix @ x)[some], dropout=False), theirs[some]
    )
    values = []
    for seed in (3, 3, 4):
        with seeded(seed):
            values.append(net.classify_propagated(matrix @ x, dropout=True))
    assert torch.equal(values[0], values[1])
    assert not torch.equal(values[0], values[2])
    assert not torch.equal(values[0], ours)
