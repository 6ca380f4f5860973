"""Adam for replicas on CUDA: one pass over the weights, where torch's operations need a dozen.

It also keeps the weights of the best epoch, which it reads anyway. Torch's own fused Adam has one
count of steps for a tensor, not one for each replica. Triton comes with torch's CUDA builds and is
imported only there.
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
    kept,
    best,
    rate,
    root,
    size,
    weight_decay,
    first_gain,
    second_gain,
    small,
    block: tl.constexpr,
):
    replica = tl.program_id(1).to(tl.int64)
    index = tl.program_id(0) * block + tl.arange(0, block)
    inside = index < size
    index = replica * size + index
    value = tl.load(weight + index, mask=inside, other=0)
    if tl.load(best + replica) != 0:
        tl.store(kept + index, value, mask=inside)
    pull = tl.load(gradient + index, mask=inside, other=0) + weight_decay * value
    average = tl.load(mean + index, mask=inside, other=0)
    average += first_gain * (pull - average)
    spread = tl.load(square + index, mask=inside, other=0)
    spread += second_gain * (pull * pull - spread)
    scale = tl.sqrt(spread) / tl.load(root + replica) + small
    tl.store(mean + index, average, mask=inside)
    tl.store(square + index, spread, mask=inside)
    tl.store(weight + index, value - tl.load(rate + replica) * average / scale, mask=inside)


def keep_and_step(
    weight: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    kept: Tensor,
    best: Tensor,
    rate: Tensor,
    root: Tensor,
    *,
    weight_decay: float,
    decay: tuple[float, float],
    small: float,
) -> None:
    """Keep the weights of the replicas at their best, then step, both in place.

    Args:
        weight: What to step.
        gradient: Of the loss.
        mean: Adam's mean of gradients.
        square: Adam's mean of squared gradients.
        kept: Weights of the best epoch.
        best: Which replicas are at their best.
        rate: Learning rate over the first correction, of each replica.
        root: Square root of the second correction, of each replica.
        weight_decay: Weight decay.
        decay: Of Adam's two means.
        small: Adam's epsilon.

    Shapes:
        weight, gradient, mean, square, kept: (R, ...)
        best: bool, (R,)
        rate, root: (R,)
    """
    size = weight[0].numel()
    with torch.cuda.device_of(weight):
        _kernel[(triton.cdiv(size, BLOCK), weight.shape[0])](
            weight,
            gradient.contiguous(),
            mean,
            square,
            kept,
            best.view(torch.uint8),
            rate,
            root,
            size,
            weight_decay,
            1 - decay[0],
            1 - decay[1],
            small,
            block=BLOCK,
        )
