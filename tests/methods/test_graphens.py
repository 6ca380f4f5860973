"""GraphENS: who is mixed with whom, features, neighbours and saliency against the formulas."""

import copy
import math

import pytest
import torch
from oracles import (
    dense_conv,
    dense_graph,
    dense_linear,
    dense_propagation,
    labelled,
    task_with,
)
from torch.nn.functional import cross_entropy

from evengraph.core.rng import seeded
from evengraph.methods import GraphENS, graphens
from evengraph.nn.networks import CONVS
from evengraph.ops import synthesis as virtual
from evengraph.ops.sparse import from_scipy, undirected_adjacency
from evengraph.ops.synthesis import Pairs, VirtualNodes, draw_pairs
from evengraph.training import train
from small_graphs import check_law, dense_row, graph_of, normal, small_task

# Features.


def mixed(divergence, saliency, masked=0.2, count=3, width=50):
    """Of a source of ones and a target of zeros, half and half."""
    x = torch.stack([torch.ones(width), torch.zeros(width)])
    ones = torch.ones(count)
    pairs = Pairs(torch.zeros(count).long(), ones.long(), torch.zeros(count).long(), 0.5 * ones)
    if divergence is not None:
        divergence = torch.full((count,), divergence)
    with seeded(0):
        return GraphENS(masked=masked)._mix(x, pairs, divergence, saliency)


EVEN = torch.full((2, 50), 1 / 50)


@pytest.mark.parametrize(
    ("divergence", "saliency", "masked", "taken"),
    # of 50 features: ten drawn, by how far the two differ half of them to all
    [
        *((0.0, EVEN, 0.2, 5), (3.0, EVEN, 0.2, 7), (60.0, EVEN, 0.2, 10), (0.0, EVEN, 0.02, 1)),
        *((60.0, EVEN, 0.019, 0), (60.0, EVEN, 0.0, 0)),  # too small a share masks nothing
        (None, None, 0.2, 0),  # neither does warm-up
    ],
)
def test_sensitive_features_are_the_sources(divergence, saliency, masked, taken):
    new = mixed(divergence, saliency, masked)
    assert set(new.unique().tolist()) == ({0.5, 1} if taken else {0.5})
    assert ((new == 1).sum(1) == taken).all()


def test_the_targets_saliency_decides_which():
    saliency = torch.full((2, 50), 1e-10)
    saliency[0, 40:] = 0.1  # of the source: must not matter
    saliency[1, :10] = 0.1
    new = mixed(60.0, saliency)
    assert (new[:, :10] == 1).all()
    assert (new[:, 10:] == 0.5).all()


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_divergence_of_the_neighbourhoods(temperature):
    task = task_with(6, 4, 2)
    nodes, labels = labelled(task)
    method = GraphENS(temperature=temperature)
    last = graphens._Last(nodes)
    pairs = draw_pairs(labels, task.class_counts)
    propagation = method._inputs(task.graph)[1].rows(nodes)
    logits = normal(150, 3, dtype=torch.float32) * 5
    for epoch in range(2):
        assert method._divergence(last, propagation, pairs) is None, epoch
        last.keep(logits, torch.zeros(2, 2, requires_grad=True), torch.zeros(2, 2))
    found = method._divergence(last, propagation, pairs)
    around = dense_propagation(task.graph) @ logits.double() / temperature
    law = around.softmax(1)[nodes]
    source, target = law[pairs.sources], law[pairs.targets]
    expected = (source * (source / target).log()).sum(1)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)
    assert (found >= 0).all()


# Neighbours.

# 0 - 1, 2, 3; 4 - 5, 6; 7 is isolated
STAR = graph_of(torch.zeros(8, 1), [(0, 1), (0, 2), (0, 3), (4, 5), (4, 6)], [0] * 8)
LABELLED = torch.tensor([0, 4, 7])


def neighbours(source, target, divergence, count=300):
    matrix = undirected_adjacency(STAR.edge_index, 8)
    adjacency = from_scipy(matrix, torch.device("cpu"), torch.float32)
    places = (torch.full((count,), place) for place in (source, target))
    pairs = Pairs(*places, torch.zeros(count).long(), torch.full((count,), 0.5))
    if divergence is not None:
        divergence = torch.full((count,), divergence)
    with seeded(0):
        new, known = GraphENS()._neighbours(adjacency, LABELLED, pairs, divergence)
    found = [set() for _ in range(count)]
    for place, node in zip(new.tolist(), known.tolist(), strict=True):
        assert node not in found[place]
        found[place].add(node)
    return found


def test_neighbours_are_of_both_and_in_warm_up_the_sources():
    for source, target, expected in ((0, 1, {1, 2, 3}), (1, 0, {5, 6}), (2, 0, set())):
        assert neighbours(source, target, None, 3) == [expected] * 3
    assert set().union(*neighbours(0, 1, 100.0)) == {1, 2, 3}
    found = neighbours(0, 1, 0.0)
    assert set().union(*found) == {1, 2, 3, 5, 6}
    assert {len(nodes) for nodes in found} == {0, 1, 2, 3}  # as some node of the graph has


@pytest.mark.parametrize("divergence", [0.0, 1.0])
def test_the_more_they_differ_the_more_neighbours_are_the_sources(divergence):
    alone = [nodes for nodes in neighbours(0, 1, divergence, 1000) if len(nodes) == 1]
    of_source = sum(bool(nodes & {1, 2, 3}) for nodes in alone)
    share = 1 / (1 + math.exp(-divergence))
    check_law([of_source, len(alone) - of_source], [share, 1 - share])


def test_a_new_node_has_at_most_the_degree_of_its_source():
    # degrees 3, 2, five of 1 and one of 0
    sizes = torch.tensor([len(nodes) for nodes in neighbours(1, 0, 0.0, 2000)])
    check_law(torch.bincount(sizes).tolist(), [1 / 8, 5 / 8, 2 / 8])
    assert neighbours(2, 0, 0.0, 20) == [set()] * 20


# Training.


@pytest.fixture
def watched(monkeypatch):
    """The pairs of every epoch, and what the last one leaves behind."""
    drawn, left, real = [], [], graphens._Last

    def draw(*args):
        drawn.append(draw_pairs(*args))
        return drawn[-1]

    def make(nodes):
        left.append(real(nodes))
        return left[-1]

    monkeypatch.setattr(graphens, "draw_pairs", draw)
    monkeypatch.setattr(graphens, "_Last", make)
    return drawn, left


def dense_forward(net, x, matrix):
    hidden = x
    for conv in (net.first, *net.others):
        hidden = dense_conv(conv, hidden, matrix)
    return dense_linear(net.linear, hidden)


def dense_loss(net, task, x, pairs):
    """The loss of a warm-up epoch: features mixed by share, the source's neighbours copied."""
    nodes, labels = labelled(task)
    size, count = task.graph.num_nodes, pairs.labels.numel()
    sources, targets = nodes[pairs.sources], nodes[pairs.targets]
    share, fixed = pairs.shares.double().unsqueeze(1), x.detach()
    new = share * fixed[sources] + (1 - share) * fixed[targets]
    rows = torch.cat([dense_graph(task.graph)[sources], torch.eye(count)], dim=1)
    plain = torch.cat([dense_propagation(task.graph), torch.zeros(size, count)], dim=1)
    matrix = torch.cat([plain, rows / rows.sum(1, keepdim=True)])
    logits = dense_forward(net, torch.cat([x, new]), matrix)
    every = torch.cat([nodes, torch.arange(count) + size])
    return cross_entropy(logits[every], torch.cat([labels, pairs.labels]))


QUICK = {"hidden": 8, "dropout": 0}


over_backbones = pytest.mark.parametrize("backbone", CONVS)


def test_gcn_starts_from_glorot_weights():
    net = GraphENS(max_epochs=0, hidden=32).fit(small_task(), seed=0).net_
    for conv, inputs in ((net.first, 64), (net.others[0], 32)):
        bound = math.sqrt(6 / (inputs + 32))
        assert 0.98 * bound < conv.weight.abs().max() <= bound
        assert (conv.bias == 0).all()


@over_backbones
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_first_loss_equals_the_formula_and_known_nodes_do_not_hear_new_ones(
    watched, layers, backbone
):
    task = task_with(6, 3, 1)
    method = GraphENS(layers=layers, max_epochs=0, backbone=backbone, **QUICK).fit(task, seed=0)
    convs = [method.net_.first, *method.net_.others]
    assert [isinstance(conv, CONVS[backbone]) for conv in convs] == [True] * layers
    (pairs,), (last,) = watched
    assert pairs.labels.numel() == 8
    expected = dense_loss(method.net_, task, task.graph.x.double(), pairs)
    assert method.history_[0].loss[0] == pytest.approx(expected.item(), rel=1e-5)
    plain = dense_forward(method.net_, task.graph.x, dense_propagation(task.graph))
    torch.testing.assert_close(last.logits.double(), plain, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("counts", [(6, 3, 1), (6, 6, 6)])
def test_warm_up_lasts_until_its_epoch_and_equal_classes_get_no_new_nodes(watched, counts):
    task = task_with(*counts)
    start = GraphENS(max_epochs=0, **QUICK).fit(task, seed=0).net_
    watched[0].clear()
    method = GraphENS(max_epochs=5, warmup=3, **QUICK).fit(task, seed=0)
    pairs, x, net = iter(watched[0]), task.graph.x.double(), copy.deepcopy(start).double()
    history = train(
        net,
        lambda: (dense_loss(net, task, x, next(pairs)), torch.zeros(())),
        learning_rate=method.learning_rate,
        weight_decay=method.weight_decay,
        max_epochs=5,
        patience=9,
    )
    found, expected = method.history_[0].loss, history.loss
    assert found[:4] == pytest.approx(expected[:4], rel=1e-4)
    assert (found[4] == pytest.approx(expected[4], rel=1e-4)) == (counts == (6, 6, 6))


@over_backbones
@pytest.mark.parametrize("layers", [1, 2])
def test_saliency_is_the_gradient_of_the_loss(watched, layers, backbone):
    task = task_with(6, 3, 1)
    settings = {"layers": layers, "backbone": backbone, **QUICK}
    start = GraphENS(max_epochs=0, **settings).fit(task, seed=0).net_
    drawn, left = watched
    drawn.clear()
    GraphENS(max_epochs=1, **settings).fit(task, seed=0)
    x = task.graph.x.double().requires_grad_()
    loss = dense_loss(start, task, x, drawn[0])
    (gradient,) = torch.autograd.grad(loss, x)
    sensitive = gradient[labelled(task)[0]].abs() + 1e-10
    expected = sensitive / sensitive.sum(1, keepdim=True)
    torch.testing.assert_close(left[-1].saliency.double(), expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("layers", [1, 2])
def test_new_nodes_on_a_graph_with_virtual_ones(watched, monkeypatch, layers):
    task, linked, scored, real = task_with(6, 3, 1), [], [], VirtualNodes.link

    def link(graph, logits):
        linked.append((graph, logits, real(graph, logits)))
        return linked[-1][2]

    def score(logits, task):
        scored.append(logits)
        return torch.zeros(())

    certain = torch.zeros(150, 3)
    certain[::7, 0] = certain[::5, 2] = 1
    monkeypatch.setattr(virtual, "link_probabilities", lambda *_: certain)
    monkeypatch.setattr(VirtualNodes, "link", link)
    monkeypatch.setattr(graphens, "validation_score", score)
    method = GraphENS(layers=layers, max_epochs=0, links="BAT0", **QUICK).fit(task, seed=0)
    graph, logits, (_, means) = linked[0]
    pairs, (nodes, labels), x = watched[0][0], labelled(task), task.graph.x.double()
    assert graph.variant == "BAT0"
    plain = dense_forward(method.net_, x, dense_propagation(task.graph))
    torch.testing.assert_close(logits.double(), plain, rtol=1e-4, atol=1e-6)
    count = pairs.labels.numel()
    sources, targets, share = nodes[pairs.sources], nodes[pairs.targets], pairs.shares.double()
    new = share.unsqueeze(1) * x[sources] + (1 - share).unsqueeze(1) * x[targets]
    larger = torch.zeros(153 + count, 153 + count, dtype=torch.float64)
    larger[:150, :150] = dense_graph(task.graph)
    larger[:150, 150:153], larger[150:153, :150] = certain, certain.t()
    larger[153:, :150] = dense_graph(task.graph)[sources]
    values = dense_forward(method.net_, torch.cat([x, means.double(), new]), dense_row(larger))
    rows = torch.cat([nodes, torch.arange(150, 153 + count)])
    all_labels = torch.cat([labels, torch.arange(3), pairs.labels])
    expected = cross_entropy(values[rows], all_labels)
    assert method.history_[0].loss[0] == pytest.approx(expected.item(), rel=1e-5)
    torch.testing.assert_close(watched[1][0].logits.double(), values[:150], rtol=1e-4, atol=1e-5)
    assert scored[0] is logits  # chosen as it will answer: without virtual nodes
