"""Contributions in any network, by hand."""

import torch

from evengraph.nn.attribution import gradient_times_input


def test_gradient_times_input_by_hand():
    weight = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    x = torch.tensor([[-1.5, 2.0], [1.5, -2.0]])  # its mean is zero
    mix = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    direction = torch.tensor([1.0, -1.0])
    parts = gradient_times_input(lambda x: (mix @ x @ weight + 7)[0] @ direction, x, 0)
    assert parts.total.tolist() == [-3 - 6, 3 + 6]
    assert float(parts.value) == 0
    assert parts.columns["own"].tolist() == [-3, -6]
    assert parts.columns["others"].tolist() == [3, 6]
    moved = gradient_times_input(lambda x: (mix @ x @ weight)[0] @ direction, x + 9, 0)
    assert moved.total.tolist() == parts.total.tolist()
    assert parts.along_paths is None
