"""ReLU and dropout with a stream for each replica."""

import itertools

import pytest
import torch

pytest.importorskip("triton")

from evengraph.fast.dropout import Noise, relu_dropout
from evengraph.fast.triton_kernels import BLOCK, replica_dropout, replica_dropout_backward
from kernel_inputs import DEVICE, on_device


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


def test_nothing_is_dropped_at_rate_zero():
    x = on_device(2, 30)
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


def test_a_stream_does_not_repeat():
    kept = (dropped(ones(1, 4 * BLOCK), 0.5, [3]) != 0).view(4, BLOCK).float().cpu()
    signs = 2 * kept - 1
    alike = (signs @ signs.t() / BLOCK).fill_diagonal_(0)
    assert alike.abs().max() < 5 / BLOCK**0.5


@pytest.mark.usefixtures("poisoned_memory")
def test_what_is_no_number_stays_none():
    x = torch.full((2, 500), torch.nan, device=DEVICE)
    x[1] = torch.inf
    found = dropped(x, 0.4)
    assert torch.equal(found.isnan(), (dropped(ones(2, 500), 0.4) != 0) & x.isnan())
    assert torch.equal(found.isinf(), (dropped(ones(2, 500), 0.4) != 0) & x.isinf())


def test_values_that_are_not_contiguous():
    x = on_device(2, 9, 20).transpose(1, 2)
    assert torch.equal(dropped(x), dropped(x.contiguous()))


@pytest.mark.parametrize("shape", [(1, 5), (3, 40, 30), (2, BLOCK)])
@pytest.mark.usefixtures("poisoned_memory")
def test_gradient_passes_just_where_a_value_went_through(shape):
    output, gradient = dropped(on_device(*shape), 0.2), on_device(*shape, seed=1)
    found = replica_dropout_backward(gradient, output, 1.25)
    torch.testing.assert_close(found, 1.25 * gradient * (output > 0))
    assert (found == 0).any()
    assert (found != 0).any()


@pytest.mark.usefixtures("poisoned_memory")
def test_gradients_of_any_layout_and_beside_nan():
    output = dropped(on_device(2, 9, 20), 0.2)
    one = on_device(2, 20, 9).transpose(1, 2)
    for gradient in (one, torch.ones((), device=DEVICE).expand(2, 9, 20)):
        found = replica_dropout_backward(gradient, output, 1.25)
        torch.testing.assert_close(found, 1.25 * gradient * (output > 0))
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
