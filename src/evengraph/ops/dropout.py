"""ReLU and dropout on CUDA, with a stream of random numbers for each replica.

Torch's own dropout draws from one stream, so that what a replica sees would depend on how many
others train beside it. Triton comes with torch's CUDA builds and is imported only there.
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
    some: tl.constexpr,
):
    replica = tl.program_id(1).to(tl.int64)
    index = tl.program_id(0) * block + tl.arange(0, block)
    inside = index < size
    seed = tl.load(seeds + replica) + tl.load(calls + replica) * stride
    number = index
    if some:
        row = replica * (size // width) + index // width
        number = (tl.load(nodes + row, mask=inside, other=0) * width + index % width).to(tl.int32)
    kept = tl.rand(seed, number) >= rate
    value = tl.load(x + replica * size + index, mask=inside, other=0)
    value = tl.where(value <= 0, 0.0, value * scale)  # what is no number stays none
    value = tl.where(kept, value, 0.0)
    tl.store(output + replica * size + index, value, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _backward_kernel(gradient, output, result, size, scale, block: tl.constexpr):  # type: ignore[no-untyped-def]
    index = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = index < size
    value = tl.load(gradient + index, mask=inside, other=0)
    passed = tl.load(output + index, mask=inside, other=0)
    # What is no number stays none, as above.
    tl.store(result + index, tl.where(passed == 0, 0.0, value * scale), mask=inside)


def replica_dropout_backward(gradient: Tensor, output: Tensor, scale: float) -> Tensor:
    """The gradient where a value went through, scaled; zero elsewhere."""
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
    """ReLU, then dropout; what is drawn depends on a replica's seed and the number of the call.

    Args:
        x: Values.
        rate: Share that is dropped.
        seeds: Of each replica.
        calls: How many there have been, of each replica.
        nodes: Which node each row belongs to, if not the first to the first: a node draws the
            same among few as among all.

    Shapes:
        x: (R, ...), with nodes (R, M, d)
        seeds, calls: int64, (R,)
        nodes: int64, (R, M)
    """
    x = x.contiguous()
    output = torch.empty_like(x)
    size = x[0].numel()
    grid = (triton.cdiv(size, BLOCK), x.shape[0])
    with torch.cuda.device_of(x):
        _kernel[grid](
            x,
            output,
            seeds,
            calls,
            nodes,
            size,
            x.shape[-1],
            rate,
            1 / (1 - rate),
            stride=STRIDE,
            block=BLOCK,
            some=nodes is not None,
        )
    return output
