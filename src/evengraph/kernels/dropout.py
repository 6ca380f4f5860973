"""ReLU and dropout on CUDA, with one stream of random numbers per replica.

Torch's dropout draws from a single stream, so a replica's numbers would depend on how many others
train beside it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024
STRIDE = 0x632BE59BD9B4E019  # odd: the calls of one stream start far apart


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    x,
    output,
    seeds,
    calls,
    nodes,
    size,
    width,
    rate,
    scale,
    stride: tl.constexpr,
    block: tl.constexpr,
    has_nodes: tl.constexpr,
):
    replica = tl.program_id(1).to(tl.int64)
    index = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = index < size
    seed = tl.load(seeds + replica) + tl.load(calls + replica) * stride
    number = index.to(tl.int32)  # numbers repeat after 2^32 values
    if has_nodes:
        row = replica * (size // width) + index // width
        number = (tl.load(nodes + row, mask=inside, other=0) * width + index % width).to(tl.int32)
    passes = tl.rand(seed, number) >= rate
    value = tl.load(x + replica * size + index, mask=inside, other=0)
    value = tl.where(value <= 0, 0.0, value * scale)  # NaN stays NaN
    value = tl.where(passes, value, 0.0)
    tl.store(output + replica * size + index, value, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _backward_kernel(gradient, output, result, size, scale, block: tl.constexpr):  # type: ignore[no-untyped-def]
    index = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = index < size
    value = tl.load(gradient + index, mask=inside, other=0)
    passed = tl.load(output + index, mask=inside, other=0)
    tl.store(result + index, tl.where(passed == 0, 0.0, value * scale), mask=inside)


def replica_dropout_backward(gradient: Tensor, output: Tensor, scale: float) -> Tensor:
    """The scaled gradient where a value passed, zero elsewhere."""
    gradient = gradient.contiguous()
    result = torch.empty_like(gradient)
    with torch.cuda.device_of(gradient):
        _backward_kernel[(triton.cdiv(result.numel(), BLOCK),)](
            gradient, output, result, result.numel(), scale, block=BLOCK
        )
    return result


def replica_dropout(
    x: Tensor, rate: float, seeds: Tensor, calls: Tensor, nodes: Tensor | None = None
) -> Tensor:
    """ReLU, then dropout; random numbers depend on a replica's seed and call count only.

    With `nodes`, x holds a subset of the nodes: a node draws the same numbers as among all nodes.

    Shapes:
        x: (R, ...), with nodes (R, M, d)
        seeds, calls: int64, (R,)
        nodes: int64, (R, M)
    """
    x = x.contiguous()
    output = torch.empty_like(x)
    size = x[0].numel()
    with torch.cuda.device_of(x):
        _kernel[(triton.cdiv(size, BLOCK), x.shape[0])](
            *(x, output, seeds, calls, nodes, size, x.shape[-1], rate, 1 / (1 - rate)),
            stride=STRIDE,
            block=BLOCK,
            has_nodes=nodes is not None,
        )
    return output
