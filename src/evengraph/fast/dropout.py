"""ReLU and dropout as one operation, with cheap random bytes on the CPU and streams per replica."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

Share = tuple[Tensor, int]
"""Which rows of a batch there are, int64, (n,), and how many the batch has."""


class Noise:
    """One random stream per replica on a GPU, (R,); each call takes the next numbers of each."""

    def __init__(self, seeds: Tensor) -> None:
        self.seeds, self.calls = seeds, torch.zeros_like(seeds)


def relu_dropout(
    x: Tensor,
    rate: float,
    *,
    training: bool,
    noise: Noise | None = None,
    nodes: Tensor | None = None,
    share: Share | None = None,
) -> Tensor:
    """Apply ReLU, and dropout while training; x is (R, N, d) with noise, (R, M, d) with nodes.

    On the CPU torch draws one Bernoulli number at a time, which costs more than the surrounding
    matrix products. Random 64-bit words cut into bytes are ten times as fast; the rate is then
    met to 1/256, and the surviving values are scaled to match.

    Args:
        noise: Streams to draw from, on a GPU.
        nodes: The node of each row, if x holds a subset of the nodes; only with noise.
        share: Which rows of a batch x holds, if not all: numbers are drawn for the whole batch, so
            that each row gets the same ones wherever it is.
    """
    if not training or rate == 0:
        return x.relu()
    dropped: Tensor
    if noise is not None:
        dropped = _NoisyDropout.apply(x, rate, noise, nodes)  # type: ignore[no-untyped-call]
    elif x.device.type != "cpu":
        dropped = _device_dropout(x.relu(), rate, share)
    else:
        parts = min(round(256 * rate), 255)
        dropped = _ReluDropout.apply(x, parts, share)  # type: ignore[no-untyped-call]
    return dropped


def _device_dropout(x: Tensor, rate: float, share: Share | None) -> Tensor:
    if share is None:
        return nn.functional.dropout(x, rate)
    return x * nn.functional.dropout(x.new_ones(_batch_shape(x, share)), rate)[..., share[0], :]


def _batch_shape(x: Tensor, share: Share) -> tuple[int, ...]:
    """The shape that the whole batch has."""
    return *x.shape[:-2], share[1], x.shape[-1]


class _NoisyDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float, noise: Noise, nodes: Tensor | None) -> Tensor:
        from evengraph.fast.triton_kernels import replica_dropout

        ctx.scale = 1 / (1 - rate)
        output = replica_dropout(x, rate, noise.seeds, noise.calls, nodes)
        noise.calls += 1
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        from evengraph.fast.triton_kernels import replica_dropout_backward

        (output,) = ctx.saved_tensors
        return replica_dropout_backward(gradients[0], output, ctx.scale), None, None, None


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int, share: Share | None) -> Tensor:
        """Zero negative values and a share of dropped / 256 of the others."""
        if share is None:
            noise = _random_bytes(x.shape)
        else:
            noise = _random_bytes(_batch_shape(x, share))[..., share[0], :]
        noise = noise.to(x.dtype)
        ctx.scale = 256 / (256 - dropped)
        output = _where_above(x, noise, dropped - 0.5).relu_().mul_(ctx.scale)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (output,) = ctx.saved_tensors  # positive exactly where the value passed
        return _where_above(gradients[0], output, 0.0).mul_(ctx.scale), None, None


def _random_bytes(shape: Sequence[int]) -> Tensor:
    count = math.prod(shape)
    words = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    return words.view(torch.uint8)[:count].view(*shape)


def _where_above(x: Tensor, reference: Tensor, limit: float) -> Tensor:
    """x where the reference exceeds the limit, zero elsewhere."""
    # ReLU's backward is all that torch vectorises on the CPU: others take ten times as long
    result: Tensor = torch.ops.aten.threshold_backward(x, reference, limit)
    return result
