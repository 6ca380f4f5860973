"""GraphSMOTE: candidate links by sets, link weights, its loss and gradients against the formula."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import (
    check_losses,
    dense_classify,
    dense_conv,
    dense_graph,
    dense_logits,
    dense_propagation,
    first_loss,
    labelled,
    nearest,
    task_with,
)
from torch import nn
from torch.nn.functional import cross_entropy

from evengraph.methods import GraphSMOTE, graphsmote
from evengraph.methods.graphsmote import candidate_links
from evengraph.nn.networks import EdgeDecoder
from evengraph.ops.sparse import Sparse
from small_graphs import dense_adjacency, edge_lists, graph_of, normal, small_task, task_of

SHARE = 0.3


@pytest.fixture
def decoders(monkeypatch):
    """Every decoder that is made."""
    made = []

    def make(width):
        made.append(EdgeDecoder(width))
        return made[-1]

    monkeypatch.setattr(graphsmote, "EdgeDecoder", make)
    return made


@pytest.fixture
def one_share(monkeypatch):
    """Every new node lies as far on its way."""
    monkeypatch.setattr(
        graphsmote, "random_shares", lambda copies, *_: torch.full(copies.labels.shape, SHARE)
    )


# Links.


@given(st.data())
def test_candidates_are_the_neighbours_of_both_ends(data):
    edge_index, num_nodes = data.draw(edge_lists())
    closed = dense_adjacency(edge_index, num_nodes, undirected=True) + torch.eye(num_nodes)
    node = st.integers(0, num_nodes - 1)
    ends = data.draw(st.lists(st.tuples(node, node), max_size=5))
    seeds, peers = torch.tensor(ends, dtype=torch.long).reshape(-1, 2).t()
    new, known = candidate_links(Sparse.from_dense(closed).matrix, seeds, peers)
    expected = {
        (place, int(other))
        for place, pair in enumerate(ends)
        for end in pair
        for other in closed[end].nonzero()
    }
    found = list(zip(new.tolist(), known.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == expected


# The loss.


def dense_loss(method, task, net, decoder, times=1):
    """Cross-entropy in the enlarged graph, all matrices dense and all pairs scored."""
    graph, (nodes, labels) = task.graph, labelled(task)
    propagation = dense_propagation(graph, method.normalisation)
    known = dense_conv(net.encoder, graph.x, propagation)
    seeds = nodes[labels == 2]
    peers = seeds[nearest(known[seeds].detach())]
    seeds, peers = seeds.repeat(times), peers.repeat(times)
    new = (1 - SHARE) * known[seeds] + SHARE * known[peers]

    closed = dense_graph(graph) + torch.eye(graph.num_nodes)
    candidates = closed[seeds] + closed[peers] > 0
    scores = ((new @ decoder.weight) @ (known @ decoder.weight).t()).sigmoid()
    if method.variant == "T":
        scores, frame = (scores >= 0.5).double(), closed
    else:
        scores, frame = scores if method.sound else scores.detach(), propagation
    links = torch.where(candidates, scores, 0.0)
    own = torch.eye(seeds.numel()) * method.sound
    fresh = torch.cat([links, own], 1)
    matrix = torch.cat([torch.cat([frame, links.t()], 1), fresh])
    heard = torch.cat([torch.cat([closed, links.t()], 1), fresh])  # what attention goes by
    sums = matrix.sum(1, keepdim=True)
    inverse = torch.where(sums > 0, 1 / sums.clamp(min=1e-9), 0.0)
    if method.normalisation == "row":
        matrix = inverse * matrix
    else:
        matrix = inverse.sqrt() * matrix * inverse.sqrt().t()

    logits = dense_classify(net.classifier, torch.cat([known, new]), matrix, heard)
    rows = torch.cat([nodes, torch.arange(seeds.numel()) + graph.num_nodes])
    return cross_entropy(logits[rows], torch.cat([labels, torch.full_like(seeds, 2)]))


QUICK = {"hidden": 8, "dropout": 0, "pretrain_epochs": 0, "reconstruction_weight": 0.0}


@pytest.mark.parametrize("how", ["row", "symmetric"])
@pytest.mark.parametrize("sound", [False, True])
@pytest.mark.parametrize("variant", ["T", "O"])
@pytest.mark.parametrize("size", [1, 3])
def test_losses_and_gradients_equal_the_formula(decoders, one_share, variant, sound, how, size):
    task = task_with(5, 5, size)
    method = GraphSMOTE(variant=variant, sound=sound, normalisation=how, max_epochs=4, **QUICK)
    start, _ = first_loss(method, task)
    module = nn.ModuleList([start.net_, decoders[0]])
    check_losses(method, task, module, lambda both: dense_loss(method, task, *both))


@pytest.mark.parametrize("backbone", ["sage", "gat"])
@pytest.mark.parametrize("sound", [False, True])
@pytest.mark.parametrize("variant", ["T", "O"])
def test_other_backbones_weigh_new_links_by_the_same_scores(
    decoders, one_share, variant, sound, backbone
):
    task = task_with(5, 5, 3)
    task.graph.x *= 10  # so that scores lie far apart
    method = GraphSMOTE(variant=variant, sound=sound, backbone=backbone, max_epochs=4, **QUICK)
    start, _ = first_loss(method, task)
    module = nn.ModuleList([start.net_, decoders[0]])
    check_losses(method, task, module, lambda both: dense_loss(method, task, *both))


@pytest.mark.parametrize("copies", [2, 0])
def test_more_copies(decoders, one_share, copies):
    task = task_with(6, 6, 2)
    method, loss = first_loss(GraphSMOTE(copies=copies, **QUICK), task)
    expected = dense_loss(method, task, method.net_, decoders[0].double(), times=2)
    assert loss == pytest.approx(expected.item(), rel=1e-5)


def moved(decoders, **fields):
    """Whether the classification loss alone changes the decoder."""
    seen = []
    method = GraphSMOTE(**QUICK | {"max_epochs": 3, "weight_decay": 0} | fields)
    task = task_with(6, 6, 2)
    method.fit(task, seed=0, on_epoch=lambda _: seen.append(decoders[-1].weight.clone()))
    return not torch.equal(seen[0], seen[-1])


def test_the_classification_loss_trains_the_decoder_in_one_case_only(decoders):
    assert moved(decoders, variant="O", sound=True)
    assert not moved(decoders, variant="O")
    assert not moved(decoders, variant="T")
    assert not moved(decoders, variant="T", sound=True)


# Reconstruction.


def complete_task():
    """All nodes are joined, so that no pairs are left to draw from."""
    pairs = [(i, j) for i in range(6) for j in range(i)]
    graph = graph_of(normal(6, 3, dtype=torch.float32), pairs, [0, 1, 0, 1, 0, 1])
    return task_of(graph, [0, 1, 2, 3], [4, 5])


@pytest.mark.parametrize("weight", [0.0, 1e-6, 0.5])
def test_reconstruction_is_added_to_the_loss(decoders, weight):
    task = complete_task()
    method = GraphSMOTE(hidden=8, reconstruction_weight=weight)
    method, loss = first_loss(method, task)
    matrix = dense_propagation(task.graph)
    hidden = dense_conv(method.net_.encoder, task.graph.x, matrix)
    turned = hidden @ decoders[0].weight.double()
    missed = (1 - (turned @ turned.t()).sigmoid()).square().sum().item()
    logits = dense_logits(method.net_, task.graph.x, matrix)[task.train]
    plain = cross_entropy(logits, task.graph.y[task.train]).item()
    assert method.history_[0].loss == pytest.approx([missed], rel=1e-5)  # pretraining
    assert loss == pytest.approx(plain + weight * missed, rel=1e-5)


def test_classification_starts_from_what_pretraining_learnt(decoders):
    seen = []
    method = GraphSMOTE(pretrain_epochs=3, max_epochs=3)

    def watch(history):
        seen.append(copy.deepcopy([method.net_.encoder.weight, decoders[0].weight]))

    method.fit(small_task(), seed=0, on_epoch=watch)
    assert len(seen) == 8
    assert all(torch.equal(*pair) for pair in zip(seen[3], seen[4], strict=True))
    assert not any(torch.equal(*pair) for pair in zip(seen[0], seen[3], strict=True))
