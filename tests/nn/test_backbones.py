"""Backbones against their formulas, and against PyTorch Geometric's layers."""

import pytest
import torch
from torch_geometric.nn import GATConv

from evengraph.nn.backbones import BACKBONES, CONVS, AttentionConv, SageConv
from evengraph.nn.layers import GraphConv
from evengraph.nn.networks import GraphNetwork
from evengraph.ops.sparse import Sparse
from evengraph.ops.synthesis import AttachedGraph
from small_graphs import dense_adjacency, dense_row, normal, random_edges

ADJACENCY = dense_adjacency(random_edges(9, 20), 9, undirected=True)
MATRIX = dense_row(ADJACENCY)
PROPAGATION = Sparse.from_dense(MATRIX)


def made(kind, inputs=4, outputs=16):
    torch.manual_seed(0)
    return CONVS[kind](inputs, outputs).double()


def test_the_table_names_all():
    assert tuple(CONVS) == BACKBONES
    assert CONVS["gcn"] is GraphConv


def test_sage_is_the_formula():
    conv, x = made("sage", outputs=5), normal(9, 4)
    others, own = conv.weight[:, :5], conv.weight[:, 5:]
    torch.testing.assert_close(conv(x, PROPAGATION), MATRIX @ x @ others + x @ own + conv.bias)


def test_sage_without_weights_of_its_own_is_gcn():
    sage, gcn, x = made("sage", outputs=5), made("gcn", outputs=5), normal(9, 4)
    with torch.no_grad():
        sage.weight[:, 5:] = 0
        gcn.weight.copy_(sage.weight[:, :5])
        gcn.bias.copy_(sage.bias)
    torch.testing.assert_close(sage(x, PROPAGATION), gcn(x, PROPAGATION))


@pytest.mark.parametrize(("outputs", "heads"), [(16, 8), (12, 4), (5, 1)])
def test_attention_equals_that_of_pytorch_geometric(outputs, heads):
    conv, x = made("gat", outputs=outputs), normal(9, 4)
    assert conv.heads == heads
    theirs = GATConv(4, outputs // heads, heads=heads).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(conv.weight.t())
        theirs.att_dst.copy_(conv.attention[:1])
        theirs.att_src.copy_(conv.attention[1:])
        conv.bias.normal_()
        theirs.bias.copy_(conv.bias)
    edge_index = ADJACENCY.nonzero().t().flip(0)
    torch.testing.assert_close(conv(x, PROPAGATION), theirs(x, edge_index))


def test_attention_to_all_alike_is_a_mean():
    conv, x = made("gat"), normal(9, 4)
    with torch.no_grad():
        conv.attention.zero_()
    torch.testing.assert_close(conv(x, PROPAGATION), MATRIX @ x @ conv.weight)


@pytest.mark.parametrize("kind", BACKBONES)
def test_sparse_features_give_the_same(kind):
    conv, x = made(kind), normal(9, 4).relu()
    torch.testing.assert_close(conv(Sparse.from_dense(x), PROPAGATION), conv(x, PROPAGATION))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", BACKBONES)
def test_a_convolution_projects_row_by_row_and_then_spreads(kind, sparse):
    conv, x = made(kind), normal(9, 4).relu()
    projected = conv.project(Sparse.from_dense(x) if sparse else x)
    torch.testing.assert_close(projected, torch.stack([row @ conv.weight for row in x]))
    torch.testing.assert_close(conv.propagate(projected, PROPAGATION), conv(x, PROPAGATION))


@pytest.mark.parametrize("kind", BACKBONES)
def test_a_gradient_goes_through_the_projection_alone(kind):
    conv, x, weight = made(kind), normal(9, 4).requires_grad_(), normal(9, 16, seed=5)
    projected = conv.project(x)
    (through,) = torch.autograd.grad(conv.propagate(projected, PROPAGATION), projected, weight)
    (whole,) = torch.autograd.grad(conv(x, PROPAGATION), x, weight)
    torch.testing.assert_close(through @ conv.weight.t(), whole)


@pytest.mark.parametrize("kind", BACKBONES)
def test_new_nodes_that_nobody_hears_change_nothing(kind):
    conv, x = made(kind), normal(11, 4)
    nodes, new = torch.tensor([0, 3]), torch.tensor([0, 1])
    ones = torch.ones(2, dtype=torch.float64)
    around = torch.ones(9, dtype=torch.float64)
    attached = AttachedGraph(PROPAGATION, around, nodes, new, ones, 2, both_ways=False, loop=1.0)
    value = conv(x, attached)
    torch.testing.assert_close(value[:9], conv(x[:9], PROPAGATION))
    alone = AttachedGraph(PROPAGATION, around, nodes[:0], new[:0], ones[:0], 2, loop=1.0)
    assert not torch.allclose(value[9:], conv(x, alone)[9:])


@pytest.mark.parametrize("kind", BACKBONES)
def test_networks_of_every_kind(kind):
    torch.manual_seed(0)
    net = GraphNetwork(4, 16, 3, 0.5, kind).double()
    conv = CONVS[kind]
    assert type(net.encoder) is conv
    assert type(net.classifier.conv) is conv
    x = normal(9, 4)
    hidden = net.encoder(x, PROPAGATION).relu()
    hidden = net.classifier.conv(hidden, PROPAGATION).relu()
    torch.testing.assert_close(net(x, PROPAGATION), net.classifier.linear(hidden))


def test_kinds_are_what_they_say():
    assert isinstance(made("sage"), SageConv)
    assert isinstance(made("gat"), AttentionConv)
