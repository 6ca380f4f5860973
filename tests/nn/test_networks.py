"""Both networks against their formulas, with dense matrices; which weights decay."""

import pytest
import torch
from torch_geometric.nn import GATConv

from evengraph.core.rng import seeded
from evengraph.nn.networks import (
    CONVS,
    LAST_CONVS,
    PYG_CONVS,
    EdgeDecoder,
    GraphClassifier,
    GraphConv,
    GraphNetwork,
    PlainNetwork,
    Reconstruction,
)
from evengraph.ops.sparse import Sparse, undirected_adjacency
from evengraph.ops.synthesis import AttachedGraph
from evengraph.training.loop import weight_decays
from small_graphs import dense_adjacency, dense_row, edges, normal, random_edges

ADJACENCY = dense_adjacency(random_edges(9, 20), 9, undirected=True)
MATRIX = dense_row(ADJACENCY)
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


def test_graph_conv_starts_uniform():
    torch.manual_seed(0)
    layer = GraphConv(200, 16)
    for tensor in (layer.weight, layer.bias):
        assert tensor.abs().max() <= 0.25
    assert layer.weight.abs().max() > 0.24
    assert layer.weight.mean().abs() < 0.01


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


def made(kind, inputs=4, outputs=16):
    torch.manual_seed(0)
    return CONVS[kind](inputs, outputs).double()


def test_sage_is_the_formula():
    conv, x = made("sage", outputs=5), normal(9, 4)
    others, own = conv.weight[:, :5], conv.weight[:, 5:]
    torch.testing.assert_close(conv(x, PROPAGATION), MATRIX @ x @ others + x @ own + conv.bias)


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


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", CONVS)
def test_a_convolution_projects_row_by_row_and_then_spreads(kind, sparse):
    conv, x = made(kind), normal(9, 4).relu()
    projected = conv.project(Sparse.from_dense(x) if sparse else x)
    torch.testing.assert_close(projected, torch.stack([row @ conv.weight for row in x]))
    torch.testing.assert_close(conv.propagate(projected, PROPAGATION), conv(x, PROPAGATION))


@pytest.mark.parametrize("kind", CONVS)
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


CPU = torch.device("cpu")
NUM_NODES = 14
EDGES = random_edges(NUM_NODES, 16, seed=3)


def decoder(width=3):
    torch.manual_seed(0)
    return EdgeDecoder(width).double()


def closed_adjacency():
    return dense_adjacency(EDGES, NUM_NODES, undirected=True) + torch.eye(NUM_NODES)


def reconstruction(**limits):
    return Reconstruction(undirected_adjacency(EDGES, NUM_NODES), CPU, **limits)


def exact(scorer, embeddings):
    """The weighted squared errors of all pairs, every node joined to itself."""
    closed = closed_adjacency()
    turned = embeddings @ scorer.weight
    scores = (turned @ turned.t()).sigmoid()
    size = closed.sum()
    weight = torch.where(closed > 0, 1.0, size / (closed.numel() - size))
    return (weight * (scores - closed).square()).sum()


def test_scores_among_nodes_are_those_of_their_rows():
    scorer, embeddings = decoder(), normal(6, 3).requires_grad_()
    sources, targets = torch.tensor([0, 5, 2, 2]), torch.tensor([0, 1, 4, 4])
    ours = scorer.among(embeddings, sources, targets)
    theirs = scorer(embeddings[sources], embeddings[targets])
    turned = embeddings @ scorer.weight
    for scores in (ours, theirs):
        torch.testing.assert_close(scores, (turned @ turned.t()).sigmoid()[sources, targets])
    over, upstream = [embeddings, scorer.weight], normal(4, seed=2)
    torch.testing.assert_close(
        torch.autograd.grad(ours, over, upstream), torch.autograd.grad(theirs, over, upstream)
    )
    nobody = torch.zeros(0, dtype=torch.long)
    assert scorer.among(embeddings, nobody, nobody).shape == (0,)


@pytest.mark.parametrize("limit", [2**17, 20])
def test_random_pairs_are_edges_and_others(limit):
    loss = reconstruction(limit=limit)
    closed = closed_adjacency().flatten()
    seen = torch.zeros(2, NUM_NODES**2, dtype=torch.bool)
    expected = min(limit, int(closed.sum()))
    with seeded(0):
        for _ in range(100):
            drawn, others, is_other = loss._draw()
            assert drawn.shape == others.shape == (expected,)
            assert (closed[drawn] == 1).all()
            assert torch.equal(is_other, closed[others] == 0)
            seen[0, drawn] = True
            seen[1, others] = True
    assert torch.equal(seen[0], closed == 1)
    assert seen[1].all()


@pytest.mark.parametrize("limit", [2**17, 20])
def test_right_on_average(limit):
    scorer = decoder()
    embeddings = 1.5 * normal(NUM_NODES, 3, seed=4)
    loss = reconstruction(limit=limit)
    assert (loss.edges.numel() > limit) == (limit == 20)
    with seeded(0), torch.no_grad():
        values = torch.stack([loss(scorer, embeddings) for _ in range(3000)])
        wanted = exact(scorer, embeddings)
    assert values.std() > 0
    assert abs(values.mean() - wanted) < 4 * values.std() / 3000**0.5
    assert 4 * values.std() / 3000**0.5 < 0.02 * wanted


@pytest.mark.parametrize("num_nodes", [1, 2, 5])
def test_a_complete_graph_has_only_edges_to_miss(num_nodes):
    pairs = [(i, j) for i in range(num_nodes) for j in range(num_nodes)]
    loss = Reconstruction(undirected_adjacency(edges(pairs), num_nodes), CPU)
    scorer, embeddings = decoder(), normal(num_nodes, 3).requires_grad_()
    value = loss(scorer, embeddings)
    turned = embeddings @ scorer.weight
    torch.testing.assert_close(value, (1 - (turned @ turned.t()).sigmoid()).square().sum())
    (gradient,) = torch.autograd.grad(value, embeddings)
    assert torch.isfinite(gradient).all()
