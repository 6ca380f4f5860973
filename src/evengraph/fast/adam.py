"""Adam for replicas, with a step count per replica."""

from __future__ import annotations

import torch
from torch import Tensor

from evengraph.ops.sparse import has_kernels

BETAS = 0.9, 0.999  # decay of Adam's two running means
EPSILON = 1e-8


@torch.no_grad()
def adam_step(
    weight: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    best_weight: Tensor,
    is_best: Tensor,
    rate: Tensor,
    root: Tensor,
    *,
    weight_decay: float,
) -> None:
    """Save the weights of replicas at their best epoch, then take a step, both in place."""
    # (R, ...) each, the last three (R,); `rate` and `root` come from `bias_corrections`
    if has_kernels(weight.device):
        from evengraph.fast.triton_kernels import fused_adam_step

        fused_adam_step(
            *(weight, gradient, mean, square, best_weight, is_best, rate, root),
            weight_decay=weight_decay,
            betas=BETAS,
            epsilon=EPSILON,
        )
        return
    keep_where(is_best, weight, best_weight)
    pull = gradient + weight_decay * weight
    mean.lerp_(pull, 1 - BETAS[0])
    square.lerp_(pull.square(), 1 - BETAS[1])
    scale = (square.sqrt() / _per_replica(root, weight)).add_(EPSILON)
    weight.sub_(_per_replica(rate, weight) * mean / scale)


def bias_corrections(steps: Tensor, learning_rate: float) -> tuple[Tensor, Tensor]:
    """`rate` and `root` of `adam_step` after so many steps, (R,) each."""
    steps = steps.double()
    rate = learning_rate / (1 - BETAS[0] ** steps)
    return rate.float(), (1 - BETAS[1] ** steps).sqrt().float()


def keep_where(replicas: Tensor, source: Tensor, target: Tensor) -> None:
    """Copy the entries of some replicas, given as a mask, into the target."""
    target.copy_(torch.where(_per_replica(replicas, source), source, target))


def _per_replica(values: Tensor, like: Tensor) -> Tensor:
    """Reshape one value per replica so that it broadcasts over the replica's entries."""
    return values.view(-1, *[1] * (like.dim() - 1))
