"""The kernel of Adam for replicas against torch's operations."""

from functools import partial

import pytest
import torch

pytest.importorskip("triton")

from evengraph.fast import adam
from evengraph.fast.triton_kernels import BLOCK, fused_adam_step
from kernel_inputs import DEVICE, is_untouched, on_device, surrounded

RATE, WEIGHT_DECAY = 0.03, 0.2
SHAPES = [(3, 4), (3, 5, 7), (2, BLOCK), (2, BLOCK + 6), (1, 1)]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


fused = partial(fused_adam_step, betas=adam.BETAS, epsilon=adam.EPSILON)


class Weights:
    """Weights of replicas with their Adam state; each replica has its own step count."""

    def __init__(self, shape, seed=0):
        self.value, self.best = on_device(*shape, seed=seed), on_device(*shape, seed=seed + 1)
        self.mean, self.square = torch.zeros_like(self.value), torch.zeros_like(self.value)
        self.counts = torch.zeros(shape[0], dtype=torch.long, device=DEVICE)

    @property
    def tensors(self):
        return self.value, self.mean, self.square, self.best

    def step(self, gradient, is_best, step=fused):
        self.counts += 1
        rates = adam.bias_corrections(self.counts, RATE)
        tensors = self.value, gradient, self.mean, self.square, self.best
        step(*tensors, is_best, *rates, weight_decay=WEIGHT_DECAY)


@pytest.fixture
def torch_step(monkeypatch):
    """The step in torch's operations, on every device."""
    monkeypatch.setattr(adam, "has_kernels", lambda device: False)
    return adam.adam_step


@shapes
def test_equals_the_form_in_torchs_operations(shape, torch_step):
    ours, theirs = Weights(shape), Weights(shape)
    for step in range(4):
        gradient = on_device(*shape, seed=10 + step)
        best = (torch.arange(shape[0], device=DEVICE) + step) % 3 == 0
        ours.step(gradient, best)
        theirs.step(gradient, best, torch_step)
        for one, other in zip(ours.tensors, theirs.tensors, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@shapes
def test_weights_of_before_the_step_are_kept_where_they_are_best(shape):
    weights = Weights(shape)
    before, saved = weights.value.clone(), weights.best.clone()
    best = torch.arange(shape[0], device=DEVICE) % 2 == 1
    weights.step(on_device(*shape, seed=9), best)
    for replica, better in enumerate(best.tolist()):
        expected = before if better else saved
        assert torch.equal(weights.best[replica], expected[replica])
    assert not torch.equal(weights.value, before)


def test_a_gradient_that_is_not_contiguous(torch_step):
    ours, theirs = Weights((2, 5, 7)), Weights((2, 5, 7))
    gradient = on_device(2, 7, 5).transpose(1, 2)
    best = torch.ones(2, dtype=torch.bool, device=DEVICE)
    ours.step(gradient, best)
    theirs.step(gradient, best, torch_step)
    torch.testing.assert_close(ours.value, theirs.value)


def test_what_is_no_number_stays_in_its_replica():
    weights = Weights((3, 5))
    gradient = on_device(3, 5, seed=9)
    gradient[1] = torch.nan
    weights.step(gradient, torch.ones(3, dtype=torch.bool, device=DEVICE))
    for tensor in (weights.value, weights.mean, weights.square):
        assert tensor[1].isnan().all()
        assert tensor[[0, 2]].isfinite().all()
    assert weights.best.isfinite().all()


def test_nothing_else_is_written_and_the_gradient_is_left_alone():
    weights, wholes = Weights((2, 3)), []
    for name in ("value", "best", "mean", "square"):
        flat, whole = surrounded(getattr(weights, name).flatten())
        setattr(weights, name, flat.view(2, 3))
        wholes.append(whole)
    gradient = on_device(2, 3, seed=9)
    before = gradient.clone()
    weights.step(gradient, torch.ones(2, dtype=torch.bool, device=DEVICE))
    assert all(is_untouched(whole) for whole in wholes)
    assert weights.value.isfinite().all()
    assert torch.equal(gradient, before)
