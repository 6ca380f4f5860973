"""Re-weight: its weights, its loss, and the plain GCN as a special case."""

import pytest
import torch
from oracles import check_chosen, dense_logits, dense_propagation, first_loss, labelled, task_with

from evengraph.methods import GCN, Reweight
from small_graphs import small_task


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
