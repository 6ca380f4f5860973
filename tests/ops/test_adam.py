"""Adam for replicas against torch's own, a replica at a time."""

import pytest
import torch
from torch import nn

pytest.importorskip("triton")

from evengraph.ops.adam import BLOCK, keep_and_step
from evengraph.training.batch.replicas import DECAY, SMALL, _keep_and_step
from kernel_inputs import DEVICE, is_untouched, on_device, surrounded

RATE, WEIGHT_DECAY = 0.03, 0.2
SHAPES = [(3, 4), (3, 5, 7), (2, BLOCK), (2, BLOCK + 6), (1, 1)]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


class Weights:
    """Weights of replicas with what Adam keeps of them; each replica has its own count."""

    def __init__(self, shape, seed=0):
        self.value, self.kept = on_device(*shape, seed=seed), on_device(*shape, seed=seed + 1)
        self.mean, self.square = torch.zeros_like(self.value), torch.zeros_like(self.value)
        self.counts = torch.zeros(shape[0], dtype=torch.float64, device=DEVICE)

    @property
    def tensors(self):
        return self.value, self.mean, self.square, self.kept

    def step(self, how, gradient, best):
        self.counts += 1
        how(
            self.value,
            gradient,
            self.mean,
            self.square,
            self.kept,
            best,
            (RATE / (1 - DECAY[0] ** self.counts)).float(),
            (1 - DECAY[1] ** self.counts).sqrt().float(),
            weight_decay=WEIGHT_DECAY,
            decay=DECAY,
            small=SMALL,
        )

    def restart(self, replica, seed):
        self.value[replica] = on_device(*self.value.shape[1:], seed=seed)
        self.mean[replica] = self.square[replica] = self.counts[replica] = 0


def torch_adam(weight):
    weight = nn.Parameter(weight.clone())
    return weight, torch.optim.Adam([weight], lr=RATE, weight_decay=WEIGHT_DECAY)


@shapes
def test_equals_torch_for_each_replica(shape):
    weights, best = Weights(shape), torch.zeros(shape[0], dtype=torch.bool, device=DEVICE)
    alone = [torch_adam(weight) for weight in weights.value]
    for step in range(6):
        if step == 2:  # a new run in the last slot
            weights.restart(-1, seed=50)
            alone[-1] = torch_adam(weights.value[-1])
        gradient = on_device(*shape, seed=10 + step)
        weights.step(keep_and_step, gradient, best)
        for (weight, optimiser), one in zip(alone, gradient, strict=True):
            weight.grad = one.clone()
            optimiser.step()
    expected = torch.stack([weight.detach() for weight, _ in alone])
    torch.testing.assert_close(weights.value, expected, rtol=1e-4, atol=1e-5)


@shapes
def test_equals_the_form_in_torchs_operations(shape):
    ours, theirs = Weights(shape), Weights(shape)
    for step in range(4):
        gradient = on_device(*shape, seed=10 + step)
        best = (torch.arange(shape[0], device=DEVICE) + step) % 3 == 0
        ours.step(keep_and_step, gradient, best)
        theirs.step(_keep_and_step, gradient, best)
        for one, other in zip(ours.tensors, theirs.tensors, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@shapes
def test_weights_of_before_the_step_are_kept_where_they_are_best(shape):
    weights = Weights(shape)
    before, kept = weights.value.clone(), weights.kept.clone()
    best = torch.arange(shape[0], device=DEVICE) % 2 == 1
    weights.step(keep_and_step, on_device(*shape, seed=9), best)
    for replica, better in enumerate(best.tolist()):
        expected = before if better else kept
        assert torch.equal(weights.kept[replica], expected[replica])
    assert not torch.equal(weights.value, before)


def test_a_gradient_that_is_not_contiguous():
    ours, theirs = Weights((2, 5, 7)), Weights((2, 5, 7))
    gradient = on_device(2, 7, 5).transpose(1, 2)
    best = torch.ones(2, dtype=torch.bool, device=DEVICE)
    ours.step(keep_and_step, gradient, best)
    theirs.step(_keep_and_step, gradient, best)
    torch.testing.assert_close(ours.value, theirs.value)


def test_what_is_no_number_stays_in_its_replica():
    weights = Weights((3, 5))
    gradient = on_device(3, 5, seed=9)
    gradient[1] = torch.nan
    weights.step(keep_and_step, gradient, torch.ones(3, dtype=torch.bool, device=DEVICE))
    for tensor in (weights.value, weights.mean, weights.square):
        assert tensor[1].isnan().all()
        assert tensor[[0, 2]].isfinite().all()
    assert weights.kept.isfinite().all()


def test_nothing_else_is_written_and_the_gradient_is_left_alone():
    weights, wholes = Weights((2, 3)), []
    for name in ("value", "kept", "mean", "square"):
        flat, whole = surrounded(getattr(weights, name).flatten())
        setattr(weights, name, flat.view(2, 3))
        wholes.append(whole)
    gradient = on_device(2, 3, seed=9)
    before = gradient.clone()
    weights.step(keep_and_step, gradient, torch.ones(2, dtype=torch.bool, device=DEVICE))
    assert all(is_untouched(whole) for whole in wholes)
    assert weights.value.isfinite().all()
    assert torch.equal(gradient, before)
