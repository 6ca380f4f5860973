"""ReLU and dropout as one operation, with cheap random bytes on the CPU and streams per run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

Share = tuple[Tensor, int]
"""Which rows of a batch there are, int64, (n,), and how many the batch has."""


class Noise:
    """A random stream for each run of a batch, by its seed, (R,), whatever the others are."""

    def __init__(self, seeds: Tensor) -> None:
        self.seeds, self.calls = seeds, torch.zeros_like(seeds[:1])

    def bytes(self, shape: Sequence[int]) -> Tensor:
        """The next random bytes of every stream, (R, ...)."""
        count = math.prod(shape[1:])
        self.calls += 1
        counter = (self.calls << 34) + torch.arange(-(-count // 8), device=self.seeds.device)
        words = _mixed(counter + _mixed(self.seeds).unsqueeze(1))
        return words.view(torch.uint8)[:, :count].reshape(*shape)


def _mixed(keys: Tensor) -> Tensor:
    """A hash of 64 bits for each integer (splitmix64), the same on every device."""
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        keys = (keys ^ _shifted(keys, shift)) * factor
    return keys ^ _shifted(keys, 31)


def _shifted(keys: Tensor, bits: int) -> Tensor:
    """Shifted to the right as unsigned numbers."""
    shifted: Tensor = (keys >> bits) & (2 ** (64 - bits) - 1)
    return shifted


def relu_dropout(
    x: Tensor,
    rate: float,
    *,
    training: bool,
    noise: Noise | None = None,
    share: Share | None = None,
) -> Tensor:
    """Apply ReLU, and dropout while training; x is (..., N, d), with noise (R, N, d).

    On the CPU torch draws one Bernoulli number at a time, which costs more than the surrounding
    matrix products. Random 64-bit words cut into bytes are ten times as fast; the rate is then
    met to 1/256, and the surviving values are scaled to match.

    Args:
        noise: The streams to draw from.
        share: Which rows of a batch x holds, if not all: numbers are drawn for the whole batch, so
            that each row gets the same ones wherever it is.
    """
    if not training or rate == 0:
        return x.relu()
    if noise is None and x.device.type != "cpu":
        return _device_dropout(x.relu(), rate, share)
    parts = min(round(256 * rate), 255)
    dropped: Tensor = _ReluDropout.apply(x, parts, noise, share)  # type: ignore[no-untyped-call]
    return dropped


def _device_dropout(x: Tensor, rate: float, share: Share | None) -> Tensor:
    if share is None:
        return nn.functional.dropout(x, rate)
    return x * nn.functional.dropout(x.new_ones(_batch_shape(x, share)), rate)[..., share[0], :]


def _batch_shape(x: Tensor, share: Share) -> tuple[int, ...]:
    return *x.shape[:-2], share[1], x.shape[-1]


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, dropped: int, noise: Noise | None, share: Share | None
    ) -> Tensor:
        """Zero negative values and a share of dropped / 256 of the others."""
        if noise is not None:
            drawn = noise.bytes(x.shape)
        elif share is None:
            drawn = _random_bytes(x.shape)
        else:
            drawn = _random_bytes(_batch_shape(x, share))[..., share[0], :]
        ctx.scale = 256 / (256 - dropped)
        output = _where_above(x, drawn.to(x.dtype), dropped - 0.5).relu_().mul_(ctx.scale)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (output,) = ctx.saved_tensors  # positive exactly where the value passed
        return _where_above(gradients[0], output, 0.0).mul_(ctx.scale), None, None, None


def _random_bytes(shape: Sequence[int]) -> Tensor:
    count = math.prod(shape)
    words = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    return words.view(torch.uint8)[:count].view(*shape)


def _where_above(x: Tensor, reference: Tensor, limit: float) -> Tensor:
    """x where the reference exceeds the limit, zero elsewhere."""
    # ReLU's backward is all that torch vectorises on the CPU: others take ten times as long
    result: Tensor = torch.ops.aten.threshold_backward(x, reference, limit)
    return result
