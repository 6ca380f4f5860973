"""Methods that are a loss on the shared network, against their formulas; what equals what."""

import dataclasses

import pytest
import torch
from oracles import check_chosen, dense_logits, dense_propagation, first_loss, labelled, task_with

from evengraph.datasets import toy
from evengraph.fast.replicas import batching
from evengraph.methods import (
    BAT,
    GCN,
    MLP,
    SMOTE,
    BalancedSoftmax,
    ClassBalanced,
    DoubleBalancing,
    EmbedSMOTE,
    Focal,
    GraphENS,
    GraphSHA,
    GraphSMOTE,
    IceBerg,
    ImGAGN,
    LogitAdjustment,
    Oversampling,
    PCSoftmax,
    ReNode,
    Reweight,
    UniGNN,
)
from evengraph.pipeline.model_info import load_model
from small_graphs import small_task


def probabilities(method, task):
    method = dataclasses.replace(method, max_epochs=20)
    return method.fit(task, seed=3).predict_proba(task.graph)


EXACT, CLOSE = {"rtol": 0, "atol": 0}, {"rtol": 1e-3, "atol": 1e-4}
UNEQUAL, EQUAL = (10, 10, 2), (6, 6, 6)
BY_SIZE = Reweight(balance=True)
UNTRAINED = {"pretrain_epochs": 0, "reconstruction_weight": 0.0, "dropout": 0.0}


@pytest.mark.parametrize(
    ("method", "same", "counts", "tolerance"),
    [
        (Reweight(scale=0), GCN(), UNEQUAL, EXACT),
        (LogitAdjustment(tau=0), GCN(), UNEQUAL, EXACT),
        (ClassBalanced(beta=0), GCN(), UNEQUAL, CLOSE),
        (Focal(gamma=0, balance=False), GCN(), UNEQUAL, CLOSE),
        (ReNode(least=1, most=1, loss="cross_entropy"), GCN(), UNEQUAL, CLOSE),
        (BalancedSoftmax(), LogitAdjustment(tau=1.0), UNEQUAL, EXACT),
        (ReNode(least=1, most=1, loss="balanced_softmax"), BalancedSoftmax(), UNEQUAL, CLOSE),
        (ReNode(least=1, most=1, loss="reweight"), BY_SIZE, UNEQUAL, CLOSE),
        (ClassBalanced(beta=1 - 1e-9), BY_SIZE, UNEQUAL, CLOSE),
        (Focal(gamma=0, balance=True), BY_SIZE, UNEQUAL, CLOSE),
        *((Reweight(**fields), GCN(), EQUAL, CLOSE) for fields in ({}, {"scale": 9})),
        (BY_SIZE, GCN(), EQUAL, CLOSE),
        (BalancedSoftmax(), GCN(), EQUAL, CLOSE),
        (PCSoftmax(), GCN(), EQUAL, CLOSE),
        (SMOTE(), GCN(), EQUAL, EXACT),
        *(
            (Oversampling(**fields), GCN(), EQUAL, CLOSE)
            for fields in ({}, {"copies": 0}, {"copies": 3}, {"sound": True})
        ),
        *(
            (SMOTE(**fields), Oversampling(**fields), (6, 1, 6, 1), EXACT)  # nobody to go towards
            for fields in ({}, {"copies": 2}, {"sound": True}, {"copies": 0})
        ),
        (GraphSHA(dropout=0.0), GCN(dropout=0.0), EQUAL, CLOSE),
        (GraphSMOTE(**UNTRAINED), GCN(dropout=0.0), EQUAL, CLOSE),
        (GraphSMOTE(variant="O", **UNTRAINED), GCN(dropout=0.0), EQUAL, CLOSE),
        (
            GraphSMOTE(normalisation="symmetric", **UNTRAINED),
            GCN(normalisation="symmetric", dropout=0.0),
            EQUAL,
            CLOSE,
        ),
    ],
)
def test_a_special_case_is_another_method(method, same, counts, tolerance):
    task = task_with(*counts)
    found, expected = probabilities(method, task), probabilities(same, task)
    torch.testing.assert_close(found, expected, **tolerance)
    if counts != UNEQUAL:  # with other sizes it is not
        other = task_with(6, 2, 6, 2)
        found, expected = probabilities(method, other), probabilities(same, other)
        assert not torch.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    "method",
    [
        *(Reweight(), BalancedSoftmax(), PCSoftmax(), BAT(), ImGAGN(), GraphSHA(warmup=3)),
        *(DoubleBalancing(), IceBerg()),
        *(EmbedSMOTE(layers=layers) for layers in (1, 2)),
        *(GraphSMOTE(variant=variant, pretrain_epochs=2) for variant in ("T", "O")),
        *(GraphENS(hidden=16, links=links) for links in ("none", "BAT0", "BAT1")),
        *(GraphENS(hidden=16, backbone=backbone) for backbone in ("sage", "gat")),
    ],
)
def test_the_best_epoch_is_chosen_by_the_answer_on_the_graph_itself(method):
    task = small_task()
    check_chosen(dataclasses.replace(method, max_epochs=30).fit(task, seed=0), task)


@pytest.mark.parametrize("method", [GCN(), ReNode(), UniGNN(clusters_per_class=4)])
def test_edges_are_read_in_both_directions(method):
    task = small_task()
    source, target = task.graph.edge_index
    one_way = task.graph.clone()
    one_way.edge_index = task.graph.edge_index[:, source < target]
    found = probabilities(method, dataclasses.replace(task, graph=one_way))
    assert torch.equal(found, probabilities(method, task))


def without_edges(task):
    graph = task.graph.clone()
    graph.edge_index = graph.edge_index[:, :0]
    return dataclasses.replace(task, graph=graph)


def test_mlp_is_gcn_without_edges_and_answers_by_features_alone():
    task = small_task()
    alone = without_edges(task)
    assert torch.equal(probabilities(MLP(), task), probabilities(GCN(), alone))
    method = MLP(max_epochs=5).fit(task, seed=0)
    values = method.predict_proba(task.graph)
    assert torch.equal(method.predict_proba(alone.graph), values)
    other = toy(40, 90, 64, 3, seed=9)
    other.x[11] = task.graph.x[5]
    torch.testing.assert_close(method.predict_proba(other)[11], values[5])


# Losses by hand, of 9, 4 and 1 labelled nodes.

COUNTS = torch.tensor([9.0, 4.0, 1.0], dtype=torch.float64)


def mean(each, weights):
    return (weights * each).sum() / weights.sum()


def raised(logits, labels, factors):
    odds = logits.exp() * factors
    return -(odds[range(14), labels] / odds.sum(1)).log().mean()


def focal(logits, labels, weights):
    chances = logits.softmax(1)[range(14), labels]
    return mean(-((1 - chances) ** 2) * chances.log(), weights)


def plain(logits, labels, weights):
    return mean(-logits.log_softmax(1)[range(14), labels], weights)


@pytest.mark.parametrize(
    ("method", "formula"),
    [
        (GCN(), lambda z, y: plain(z, y, torch.ones(14))),
        (Reweight(scale=2.5), lambda z, y: plain(z, y, 1 + 2.5 * (y == 2))),
        (BY_SIZE, lambda z, y: plain(z, y, 1 / COUNTS[y])),
        (ClassBalanced(beta=0.5), lambda z, y: plain(z, y, 0.5 / (1 - 0.5 ** COUNTS[y]))),
        (BalancedSoftmax(), lambda z, y: raised(z, y, COUNTS)),
        (LogitAdjustment(tau=0.5), lambda z, y: raised(z, y, COUNTS.sqrt())),
        (Focal(gamma=2, balance=False), lambda z, y: focal(z, y, torch.ones(14))),
        (Focal(gamma=2, balance=True), lambda z, y: focal(z, y, 1 / COUNTS[y])),
    ],
)
def test_the_loss_by_hand(method, formula):
    task = task_with(9, 4, 1)
    method, loss = first_loss(method, task)
    nodes, labels = labelled(task)
    logits = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))[nodes]
    assert loss == pytest.approx(formula(logits, labels).item(), rel=1e-5)


@pytest.mark.parametrize(
    ("method", "counts", "expected"),
    [
        (Reweight(), [20, 20, 2], [1, 1, 2]),
        (Reweight(scale=3.0), [20, 1, 20, 1], [1, 4, 1, 4]),
        (Reweight(minority=2), [20, 20, 2], [1, 2, 2]),
        (Reweight(minority=1), [20, 1, 2], [1, 2, 1]),
        (Reweight(), [7, 7, 7], [1, 1, 1]),
        (BY_SIZE, [20, 10, 1], [0.05, 0.1, 1]),
        (ClassBalanced(beta=0.5), [3, 2, 1], [1 / 1.75, 1 / 1.5, 1]),
    ],
)
def test_weights_of_classes(method, counts, expected):
    weights = method._class_terms(torch.tensor(counts)).weights
    torch.testing.assert_close(weights, torch.tensor(expected, dtype=torch.float32))


def test_the_stronger_the_more_of_the_rare_class():
    task = small_task()
    for methods in (
        [LogitAdjustment(tau=tau) for tau in (0.0, 1.0, 3.0)],
        [Reweight(scale=scale) for scale in (0, 20)],
    ):
        found = [float(probabilities(method, task)[:, 2].mean()) for method in methods]
        assert found == sorted(found)
        assert found[-1] > found[0] + 0.05


def test_classes_are_balanced_by_default_on_a_new_graph():
    graph = small_task().graph
    assert Reweight.graph_defaults(graph) == {"patience": 100, "balance": True}


def test_pc_softmax_trains_as_gcn_and_divides_by_class_sizes(tmp_path):
    task = task_with(9, 4, 1)
    fields = {"max_epochs": 15, "patience": 100, "dropout": 0.0}
    gcn, ours = (kind(**fields).fit(task, seed=3) for kind in (GCN, PCSoftmax))
    assert ours.history_[0].loss == gcn.history_[0].loss
    ours.net_ = gcn.net_  # the best epochs may differ
    odds = gcn.predict_proba(task.graph) / torch.tensor([9, 4, 1])
    values = ours.predict_proba(task.graph)
    torch.testing.assert_close(values, odds / odds.sum(1, keepdim=True))
    ours.save(tmp_path / "model")  # with the class sizes
    assert torch.equal(load_model(tmp_path / "model").predict_proba(task.graph), values)


def test_focal_loss_is_trained_alone():
    assert batching(Focal()) is None
