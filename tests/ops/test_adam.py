"""Adam for replicas against torch's own, one replica at a time."""

import pytest
import torch
from torch import nn

from evengraph.fast.adam import adam_step, bias_corrections, keep_where
from kernel_inputs import DEVICE, on_device

RATE, WEIGHT_DECAY = 0.03, 0.2


def torch_adam(weight):
    weight = nn.Parameter(weight.clone())
    return weight, torch.optim.Adam([weight], lr=RATE, weight_decay=WEIGHT_DECAY)


@pytest.mark.parametrize("shape", [(3, 4), (3, 5, 7), (1, 1)], ids=str)
def test_equals_torch_for_each_replica(shape):
    weight = on_device(*shape)
    best, mean, square = (torch.zeros_like(weight) for _ in range(3))
    counts = torch.zeros(shape[0], dtype=torch.long, device=DEVICE)
    is_best = torch.zeros(shape[0], dtype=torch.bool, device=DEVICE)
    alone = [torch_adam(row) for row in weight]
    for step in range(6):
        if step == 2:  # a new run in the last slot
            weight[-1] = on_device(*shape[1:], seed=50)
            mean[-1] = square[-1] = counts[-1] = 0
            alone[-1] = torch_adam(weight[-1])
        gradient = on_device(*shape, seed=10 + step)
        counts += 1
        rates = bias_corrections(counts, RATE)
        adam_step(weight, gradient, mean, square, best, is_best, *rates, weight_decay=WEIGHT_DECAY)
        for (row, optimiser), row_gradient in zip(alone, gradient, strict=True):
            row.grad = row_gradient.clone()
            optimiser.step()
    expected = torch.stack([row.detach() for row, _ in alone])
    torch.testing.assert_close(weight, expected, rtol=1e-4, atol=1e-5)
    assert (best == 0).all()


def test_keep_where_copies_the_replicas_of_the_mask_alone():
    source, target = on_device(3, 2, 2), on_device(3, 2, 2, seed=1)
    before = target.clone()
    keep_where(torch.tensor([True, False, True], device=DEVICE), source, target)
    assert torch.equal(target[[0, 2]], source[[0, 2]])
    assert torch.equal(target[1], before[1])
