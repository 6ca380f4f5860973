"""Class-balanced loss: between GCN and inverse class sizes."""

import pytest
import torch

from evengraph.methods import GCN, ClassBalanced, Reweight
from small_graphs import small_task


def probabilities(method, task):
    return method.fit(task, seed=3).predict_proba(task.graph)


def test_weights_by_hand():
    weights = ClassBalanced(beta=0.5)._class_terms(torch.tensor([3, 2, 1])).weights
    assert weights.tolist() == pytest.approx([1 / 1.75, 1 / 1.5, 1])


def test_beta_zero_is_gcn():
    task = small_task()
    expected = probabilities(GCN(max_epochs=15), task)
    torch.testing.assert_close(
        probabilities(ClassBalanced(beta=0, max_epochs=15), task), expected, rtol=1e-3, atol=1e-4
    )


def test_beta_near_one_is_inverse_class_size():
    task = small_task()
    expected = probabilities(Reweight(balance=True, max_epochs=15), task)
    found = probabilities(ClassBalanced(beta=1 - 1e-9, max_epochs=15), task)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
