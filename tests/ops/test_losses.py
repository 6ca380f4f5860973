"""Class weights (Eq. 9)."""

import torch

from evengraph.ops import inverse_class_weights


def test_one_over_the_class_size():
    weights = inverse_class_weights(torch.tensor([20, 4, 1]))
    torch.testing.assert_close(weights, torch.tensor([0.05, 0.25, 1.0]))


def test_an_empty_class_weighs_nothing():
    assert inverse_class_weights(torch.tensor([2, 0])).tolist() == [0.5, 0]


def test_each_class_weighs_the_same_in_all():
    counts = torch.tensor([341, 158, 73, 34, 15, 7, 3])
    weights = inverse_class_weights(counts, torch.float64)
    torch.testing.assert_close(weights * counts, torch.ones(7, dtype=torch.float64))
