"""Adam for replicas on CUDA: one pass over the weights, where torch's operations need a dozen.

The same pass saves the weights of the best epoch. Torch's fused Adam counts steps per tensor, not
per replica.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    weight,
    gradient,
    mean,
    square,
    best_weight,
    is_best,
    rate,
    root,
    size,
    weight_decay,
    first_gain,
    second_gain,
    epsilon,
    block: tl.constexpr,
):
    replica = tl.program_id(1).to(tl.int64)
    index = tl.program_id(0) * block + tl.arange(0, block)
    inside = index < size
    index = replica * size + index
    value = tl.load(weight + index, mask=inside, other=0)
    if tl.load(is_best + replica) != 0:
        tl.store(best_weight + index, value, mask=inside)
    pull = tl.load(gradient + index, mask=inside, other=0) + weight_decay * value
    average = tl.load(mean + index, mask=inside, other=0)
    average += first_gain * (pull - average)
    spread = tl.load(square + index, mask=inside, other=0)
    spread += second_gain * (pull * pull - spread)
    scale = tl.sqrt(spread) / tl.load(root + replica) + epsilon
    tl.store(mean + index, average, mask=inside)
    tl.store(square + index, spread, mask=inside)
    tl.store(weight + index, value - tl.load(rate + replica) * average / scale, mask=inside)


def fused_adam_step(
    weight: Tensor,
    gradient: Tensor,
    *state: Tensor,
    weight_decay: float,
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """`evengraph.ops.adam.adam_step` as one kernel; `state` holds its other tensors."""
    mean, square, best_weight, is_best, rate, root = state
    size = weight[0].numel()
    with torch.cuda.device_of(weight):
        _kernel[(triton.cdiv(size, BLOCK), weight.shape[0])](
            *(weight, gradient.contiguous(), mean, square, best_weight),
            *(is_best.view(torch.uint8), rate, root, size, weight_decay),
            *(1 - betas[0], 1 - betas[1], epsilon),
            block=BLOCK,
        )
