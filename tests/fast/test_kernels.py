"""The kernels of replicas against torch's operations: Adam, sums of clusters, dropout."""

import itertools
from functools import partial

import pytest
import torch

from evengraph.core.rng import generator
from evengraph.fast import adam
from evengraph.fast.dropout import Noise, relu_dropout
from evengraph.fast.triton_kernels import (
    BLOCK,
    fused_adam_step,
    gather_cluster_sums,
    replica_dropout,
    replica_dropout_backward,
)
from kernel_inputs import DEVICE, assert_same, is_untouched, on_device, poisoned, surrounded
from small_graphs import normal

pytest.importorskip("triton")


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
        turned = on_device(*shape[::-1], seed=10 + step)
        gradient = turned.permute(*range(len(shape))[::-1])  # not contiguous
        best = (torch.arange(shape[0], device=DEVICE) + step) % 3 == 0
        ours.step(gradient, best)
        theirs.step(gradient, best, torch_step)
        for one, other in zip(ours.tensors, theirs.tensors, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


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


NODES, CLUSTERS = 37, 5  # more than two blocks of rows


def inputs(width, dtype=torch.float32):
    sums = on_device(CLUSTERS, width, seed=1, dtype=dtype)
    assignment = torch.randint(CLUSTERS, (NODES,), generator=generator(0)).to(DEVICE)
    share = 0.1 + torch.arange(CLUSTERS, dtype=dtype, device=DEVICE).unsqueeze(1)
    return sums, assignment, share


def by_rows(x, sums, assignment, share):
    x, sums, share = (part.cpu() for part in (x, sums, share))
    rows = zip(x, assignment.tolist(), strict=True)
    return torch.stack([(sums[own] + row) * share[own] for row, own in rows])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 5, 64, 130])
def test_equals_row_by_row(width, dtype):
    x, parts = on_device(NODES, width, dtype=dtype), inputs(width, dtype)
    output, expected = torch.full_like(x, torch.nan), by_rows(x, *parts)
    assert gather_cluster_sums(x, *parts, output) is output
    assert_same(output, expected)
    assert_same(gather_cluster_sums(x, *parts, x), expected)  # in place


@pytest.mark.parametrize("width", [5, 130])
@pytest.mark.parametrize("num_chosen", [0, 1, 20, NODES])
def test_fewer_rows_in_their_places(num_chosen, width):
    parts = inputs(width)
    chosen = torch.randperm(NODES, generator=generator(2))[:num_chosen]
    x = normal(num_chosen, width).float()
    positions = torch.full((NODES,), -1, dtype=torch.int32)
    positions[chosen] = torch.arange(num_chosen, dtype=torch.int32)
    every = torch.zeros(NODES, width)
    every[chosen] = x
    output, whole = poisoned(NODES, width)
    gather_cluster_sums(surrounded(x.to(DEVICE))[0], *parts, output, positions.to(DEVICE))
    assert_same(output, by_rows(every, *parts))
    assert is_untouched(whole)


def dropped(x, rate=0.5, seeds=None, calls=None):
    """With other seeds for each replica, in their first call, unless told."""
    seeds = range(len(x)) if seeds is None else seeds
    calls = [0] * len(x) if calls is None else calls
    both = (torch.tensor(list(numbers), device=DEVICE) for numbers in (seeds, calls))
    return replica_dropout(x, rate, *both)


def ones(*shape):
    return torch.ones(shape, device=DEVICE)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.usefixtures("poisoned_memory")
def test_the_rate_is_met_and_what_is_left_is_scaled(rate):
    found = dropped(ones(3, 4 * BLOCK), rate)
    tolerance = 4 * (rate * (1 - rate) / (4 * BLOCK)) ** 0.5
    for one in found:
        assert (one == 0).float().mean().item() == pytest.approx(rate, abs=tolerance)
    torch.testing.assert_close(found[found != 0].unique().cpu(), torch.tensor([1 / (1 - rate)]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(2, 7), (3, 40, 30), (1, BLOCK)])
@pytest.mark.usefixtures("poisoned_memory")
def test_positive_values_are_scaled_and_others_zero(shape, dtype):
    x = on_device(*shape, dtype=dtype)
    x[:, 0] = 0.0
    before = x.clone()
    found = dropped(x, 0.25)
    kept = found != 0
    assert found.dtype == dtype
    torch.testing.assert_close(found[kept], x[kept] / 0.75, rtol=1e-6, atol=0)
    assert not kept[x <= 0].any()
    assert kept[x > 0].any()
    assert torch.equal(x, before)
    everything = dropped(ones(*shape).to(dtype), 0.25) != 0
    assert torch.equal(kept, everything & (x > 0))  # what is drawn does not depend on the values
    assert torch.equal(dropped(x, 0.0), x.relu())


def test_a_stream_depends_neither_on_company_nor_on_its_place():
    x, seeds, calls = on_device(4, 50, 30).abs(), [7, 8, 9, 7], [2, 0, 5, 2]
    together = dropped(x, 0.3, seeds, calls)
    order = [2, 3, 1, 0]
    moved = dropped(x[order], 0.3, [seeds[i] for i in order], [calls[i] for i in order])
    assert torch.equal(moved, together[order])
    for replica in range(4):
        alone = dropped(x[replica : replica + 1], 0.3, [seeds[replica]], [calls[replica]])
        assert torch.equal(alone[0], together[replica])
    assert torch.equal(together[0] == 0, together[3] == 0)


def test_other_seeds_and_calls_draw_other_numbers():
    streams = list(itertools.product([0, 1, 2, 2**31 - 1], [0, 1, 2, 999]))
    seeds, calls = zip(*streams, strict=True)
    kept = (dropped(ones(len(streams), BLOCK), 0.5, seeds, calls) != 0).float().cpu()
    signs = 2 * kept - 1
    alike = (signs @ signs.t() / BLOCK).fill_diagonal_(0)  # of streams that have nothing in common
    assert alike.abs().max() < 5 / BLOCK**0.5
    assert torch.equal(dropped(ones(1, 50), 0.5, [3], [4]), dropped(ones(1, 50), 0.5, [3], [4]))


@pytest.mark.usefixtures("poisoned_memory")
def test_what_is_no_number_stays_none():
    x = torch.full((2, 500), torch.nan, device=DEVICE)
    x[1] = torch.inf
    found = dropped(x, 0.4)
    assert torch.equal(found.isnan(), (dropped(ones(2, 500), 0.4) != 0) & x.isnan())
    assert torch.equal(found.isinf(), (dropped(ones(2, 500), 0.4) != 0) & x.isinf())


@pytest.mark.usefixtures("poisoned_memory")
def test_gradients_pass_just_where_a_value_went_through():
    for shape in ((1, 1, 5), (3, 40, 30), (2, 1, BLOCK)):
        output, turned = dropped(on_device(*shape), 0.2), on_device(*shape[::-1]).permute(2, 1, 0)
        for gradient in (on_device(*shape, seed=1), turned, torch.ones(()).expand(shape)):
            found = replica_dropout_backward(gradient.to(DEVICE), output, 1.25)
            torch.testing.assert_close(found, 1.25 * gradient.to(DEVICE) * (output > 0))
    assert 0 < (found == 0).sum() < found.numel()
    # a value that is no number went through; a gradient that is none does not where none passed
    output = torch.tensor([[torch.nan, 0.0, 2.0]], device=DEVICE)
    gradient = torch.tensor([[3.0, torch.nan, torch.nan]], device=DEVICE)
    found = replica_dropout_backward(gradient, output, 2.0)
    expected = torch.tensor([[6.0, 0.0, torch.nan]], device=DEVICE)
    torch.testing.assert_close(found, expected, equal_nan=True)


def test_as_a_layer_it_takes_the_next_numbers_each_time():
    seeds = torch.tensor([5, 6], device=DEVICE)
    noise, x = Noise(seeds), on_device(2, 30, 10).requires_grad_()
    values = []
    for call in range(2):
        value = relu_dropout(x, 0.3, training=True, noise=noise)
        assert torch.equal(value, dropped(x.detach(), 0.3, [5, 6], [call, call]))
        (gradient,) = torch.autograd.grad(value.sum(), x)
        torch.testing.assert_close(gradient, (value != 0) / 0.7)
        values.append(value)
    assert not torch.equal(*values)
    assert noise.calls.tolist() == [2, 2]
    relu_dropout(x, 0.3, training=False, noise=noise)
    assert noise.calls.tolist() == [2, 2]


def test_a_node_draws_the_same_among_few_as_among_all():
    x = torch.rand(2, 30, 5, device=DEVICE) + 0.1
    seeds, calls = torch.tensor([3, 4], device=DEVICE), torch.tensor([0, 2], device=DEVICE)
    every = replica_dropout(x, 0.5, seeds, calls)
    nodes = torch.tensor([[7, 0, 29], [1, 2, -1]], device=DEVICE)
    index = nodes.clamp(min=0).unsqueeze(2).expand(-1, -1, 5)
    some = replica_dropout(x.gather(1, index), 0.5, seeds, calls, nodes)
    torch.testing.assert_close(some[0], every[0][nodes[0]])
    torch.testing.assert_close(some[1, :2], every[1, 1:3])
