"""Methods that are a loss on the shared network, against their formulas."""

import dataclasses

import pytest
import torch
from oracles import check_chosen, dense_logits, dense_propagation, first_loss, labelled, task_with

from evengraph.datasets import toy
from evengraph.fast.replicas import batching
from evengraph.methods import (
    GCN,
    MLP,
    BalancedSoftmax,
    ClassBalanced,
    Focal,
    LogitAdjustment,
    PCSoftmax,
    Reweight,
)
from evengraph.pipeline.model_info import load_model
from small_graphs import dense_adjacency, dense_row, dense_symmetric, small_task


@pytest.mark.parametrize(("how", "dense"), [("row", dense_row), ("symmetric", dense_symmetric)])
def test_probabilities_equal_the_formula(how, dense):
    task = small_task()
    graph = task.graph
    method = GCN(hidden=5, max_epochs=3, normalisation=how).fit(task, seed=0)
    matrix = dense(dense_adjacency(graph.edge_index, graph.num_nodes, undirected=True))
    net = method.net_.double()
    hidden = (matrix @ graph.x.double() @ net.encoder.weight + net.encoder.bias).relu()
    conv, linear = net.classifier.conv, net.classifier.linear
    hidden = (matrix @ hidden @ conv.weight + conv.bias).relu()
    expected = (hidden @ linear.weight.t() + linear.bias).softmax(1).detach()
    net.float()
    torch.testing.assert_close(method.predict_proba(graph).double(), expected, rtol=1e-4, atol=1e-6)


def test_the_loss_is_the_mean_over_training_nodes():
    task = small_task()
    method = GCN(dropout=0, max_epochs=0).fit(task, seed=0)
    values = method.predict_proba(task.graph)[task.train]
    expected = -values.gather(1, task.graph.y[task.train, None]).log().mean()
    assert method.history_[0].loss[0] == pytest.approx(expected.item(), rel=1e-5)


def test_edges_are_read_in_both_directions():
    task = small_task()
    source, target = task.graph.edge_index
    one_way = task.graph.clone()
    one_way.edge_index = task.graph.edge_index[:, source < target]
    first = GCN(max_epochs=3).fit(task, seed=0).predict_proba(task.graph)
    second = GCN(max_epochs=3).fit(dataclasses.replace(task, graph=one_way), seed=0)
    assert torch.equal(second.predict_proba(one_way), first)


def without_edges(task):
    graph = task.graph.clone()
    graph.edge_index = graph.edge_index[:, :0]
    return dataclasses.replace(task, graph=graph)


def test_it_is_gcn_where_there_are_no_edges():
    task = small_task()
    expected = GCN(max_epochs=15).fit(without_edges(task), seed=3)
    found = MLP(max_epochs=15).fit(task, seed=3)
    values = expected.predict_proba(without_edges(task).graph)
    assert torch.equal(found.predict_proba(task.graph), values)


def test_edges_change_nothing():
    task = small_task()
    method = MLP(max_epochs=5).fit(task, seed=0)
    values = method.predict_proba(task.graph)
    assert torch.equal(method.predict_proba(without_edges(task).graph), values)
    again = MLP(max_epochs=5).fit(without_edges(task), seed=0)
    assert torch.equal(again.predict_proba(task.graph), values)


def test_a_node_is_answered_by_its_features_alone():
    task = small_task()
    method = MLP(max_epochs=5).fit(task, seed=0)
    other = toy(40, 90, 64, 3, seed=9)
    other.x[11] = task.graph.x[5]
    mine = method.predict_proba(task.graph)[5]
    torch.testing.assert_close(method.predict_proba(other)[11], mine)


def probabilities(method, task):
    return method.fit(task, seed=3).predict_proba(task.graph)


@pytest.mark.parametrize(
    ("fields", "counts", "expected"),
    [
        ({}, [20, 20, 2], [1, 1, 2]),
        ({"scale": 3.0}, [20, 1, 20, 1], [1, 4, 1, 4]),
        ({"minority": 2}, [20, 20, 2], [1, 2, 2]),
        ({"minority": 1}, [20, 1, 2], [1, 2, 1]),
        ({}, [7, 7, 7], [1, 1, 1]),
        ({"balance": True}, [20, 10, 1], [0.05, 0.1, 1]),
    ],
)
def test_weights(fields, counts, expected):
    weights = Reweight(**fields)._class_terms(torch.tensor(counts)).weights
    torch.testing.assert_close(weights, torch.tensor(expected, dtype=torch.float32))


def test_no_scale_equals_gcn():
    task = small_task()
    expected = probabilities(GCN(max_epochs=20), task)
    assert torch.equal(probabilities(Reweight(scale=0, max_epochs=20), task), expected)
    assert not torch.allclose(probabilities(Reweight(max_epochs=20), task), expected, atol=1e-4)


@pytest.mark.parametrize("fields", [{}, {"scale": 9}, {"balance": True}])
def test_equal_classes_make_it_a_gcn(fields):
    task = task_with(6, 6, 6)
    method = Reweight(max_epochs=10, **fields)
    expected = probabilities(GCN(max_epochs=10), task)
    torch.testing.assert_close(probabilities(method, task), expected, rtol=1e-3, atol=1e-4)


def surprises(method, task):
    """Cross-entropy of each labelled node."""
    nodes, labels = labelled(task)
    logits = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))
    return -logits.log_softmax(1)[nodes, labels]


def test_the_loss_is_the_weighted_mean():
    task = small_task()
    method, loss = first_loss(Reweight(scale=2.5), task)
    each, labels = surprises(method, task), labelled(task)[1]
    expected = (each[labels < 2].sum() + 3.5 * each[labels == 2].sum()) / (20 + 3.5 * 2)
    assert loss == pytest.approx(expected.item(), rel=1e-5)


def test_balanced_every_class_has_equal_say():
    task = task_with(9, 4, 1)
    method, loss = first_loss(Reweight(balance=True), task)
    each, labels = surprises(method, task), labelled(task)[1]
    means = [each[labels == label].mean() for label in range(3)]
    assert loss == pytest.approx(sum(means).item() / 3, rel=1e-5)


def test_a_rare_class_is_predicted_more_often():
    task = small_task()
    plain, loud = (
        probabilities(Reweight(scale=scale, max_epochs=30), task)[:, 2].mean() for scale in (0, 20)
    )
    assert loud > plain + 0.05


def test_the_best_is_chosen_on_the_graph():
    task = small_task()
    check_chosen(Reweight(max_epochs=20).fit(task, seed=0), task)


def test_too_many_rare_classes_are_refused():
    with pytest.raises(ValueError, match="minority must be below the 3 classes, got 3"):
        Reweight(minority=3).fit(small_task(), seed=0)


def test_classes_are_balanced_by_default_on_a_new_graph():
    graph = small_task().graph
    assert Reweight.graph_defaults(graph) == {"patience": 100, "balance": True}
    assert "balance=true" in Reweight(balance=True)._describe_defaults(graph)
    assert Reweight()._describe_defaults(graph) == ""


def test_the_loss_is_that_of_raised_logits():
    task = task_with(9, 4, 1)
    method, loss = first_loss(BalancedSoftmax(), task)
    nodes, labels = labelled(task)
    logits = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))[nodes]
    odds = logits.exp() * torch.tensor([9, 4, 1])
    chances = odds[range(14), labels] / odds.sum(1)
    assert loss == pytest.approx(-chances.log().mean().item(), rel=1e-5)


def test_equal_classes_make_it_a_gcn_balancedsoftmax():
    task = task_with(6, 6, 6)
    expected = probabilities(GCN(max_epochs=10), task)
    found = probabilities(BalancedSoftmax(max_epochs=10), task)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_it_is_logit_adjustment_of_strength_one():
    task = small_task()
    expected = probabilities(LogitAdjustment(tau=1.0, max_epochs=20), task)
    assert torch.equal(probabilities(BalancedSoftmax(max_epochs=20), task), expected)


def test_a_rare_class_is_predicted_more_often_balancedsoftmax():
    task = small_task()
    plain = probabilities(GCN(max_epochs=40), task).mean(0)[2]
    assert probabilities(BalancedSoftmax(max_epochs=40), task).mean(0)[2] > plain
    check_chosen(BalancedSoftmax(max_epochs=20).fit(task, seed=0), task)


def test_no_adjustment_is_gcn():
    task = small_task()
    expected = GCN(max_epochs=20).fit(task, seed=3).predict_proba(task.graph)
    found = LogitAdjustment(tau=0, max_epochs=20).fit(task, seed=3).predict_proba(task.graph)
    assert torch.equal(found, expected)


def test_the_loss_by_hand():
    task = task_with(9, 4, 1)
    method, loss = first_loss(LogitAdjustment(tau=0.5), task)
    nodes, labels = labelled(task)
    logits = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))[nodes]
    odds = logits.exp() * torch.tensor([3.0, 2.0, 1.0])  # roots of the class sizes
    chances = odds[range(14), labels] / odds.sum(1)
    assert loss == pytest.approx(-chances.log().mean().item(), rel=1e-5)


def test_the_stronger_the_more_of_the_rare_class():
    task = small_task()
    found = [
        LogitAdjustment(tau=tau, max_epochs=40).fit(task, seed=3).predict_proba(task.graph).mean(0)
        for tau in (0.0, 1.0, 3.0)
    ]
    assert found[0][2] < found[1][2] < found[2][2]


def test_it_trains_as_gcn_and_divides_by_class_sizes():
    task = task_with(9, 4, 1)
    fields = {"max_epochs": 15, "patience": 100, "dropout": 0.0}
    plain, ours = (kind(**fields).fit(task, seed=3) for kind in (GCN, PCSoftmax))
    assert ours.history_[0].loss == plain.history_[0].loss
    ours.net_ = plain.net_  # the best epochs may differ
    odds = plain.predict_proba(task.graph) / torch.tensor([9, 4, 1])
    expected = odds / odds.sum(1, keepdim=True)
    torch.testing.assert_close(ours.predict_proba(task.graph), expected)


def test_equal_classes_make_it_a_gcn_pcsoftmax():
    task = task_with(6, 6, 6)
    plain, ours = (kind(max_epochs=15).fit(task, seed=3) for kind in (GCN, PCSoftmax))
    torch.testing.assert_close(ours.predict_proba(task.graph), plain.predict_proba(task.graph))


def test_the_best_epoch_is_that_of_the_compensated_answer():
    task = task_with(9, 4, 1)
    check_chosen(PCSoftmax(max_epochs=30).fit(task, seed=3), task)


def test_class_sizes_are_kept_with_a_model(tmp_path):
    task = task_with(9, 4, 1)
    method = PCSoftmax(max_epochs=5).fit(task, seed=0)
    method.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert torch.equal(loaded.predict_proba(task.graph), method.predict_proba(task.graph))


@pytest.mark.parametrize("balance", [False, True])
def test_the_loss_by_hand_focal(balance):
    task = task_with(9, 4, 1)
    method, loss = first_loss(Focal(gamma=2, balance=balance), task)
    nodes, labels = labelled(task)
    logits = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))[nodes]
    chances = logits.softmax(1)[range(14), labels]
    each = -((1 - chances) ** 2) * chances.log()
    weights = 1 / torch.tensor([9, 4, 1])[labels] if balance else torch.ones(14)
    assert loss == pytest.approx(((weights * each).sum() / weights.sum()).item(), rel=1e-5)


@pytest.mark.parametrize(("balance", "same"), [(False, GCN()), (True, Reweight(balance=True))])
def test_without_focus_it_is_a_weighted_mean(balance, same):
    task = small_task()
    same.max_epochs = 10
    expected = probabilities(same, task)
    found = probabilities(Focal(gamma=0, balance=balance, max_epochs=10), task)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_it_is_trained_alone():
    assert batching(Focal()) is None


def test_weights_by_hand():
    weights = ClassBalanced(beta=0.5)._class_terms(torch.tensor([3, 2, 1])).weights
    assert weights.tolist() == pytest.approx([1 / 1.75, 1 / 1.5, 1])


def test_beta_zero_is_gcn():
    task = small_task()
    expected = probabilities(GCN(max_epochs=15), task)
    torch.testing.assert_close(
        probabilities(ClassBalanced(beta=0, max_epochs=15), task),
        expected,
        rtol=1e-3,
        atol=1e-4,
    )


def test_beta_near_one_is_inverse_class_size():
    task = small_task()
    expected = probabilities(Reweight(balance=True, max_epochs=15), task)
    found = probabilities(ClassBalanced(beta=1 - 1e-9, max_epochs=15), task)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
