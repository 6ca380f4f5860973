"""An epoch that several processes share, with gradients added up by DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from evengraph.core.ranks import Ranks

Epoch = Callable[[], tuple[Tensor, Tensor]]
"""One pass: the loss to minimise, and the validation score of the same weights."""


def shared_epoch(module: nn.Module, epoch: Epoch, ranks: Ranks) -> Epoch:
    """The epoch of all processes, from one that gives each its share of the loss.

    Its loss and score are the same in all of them, and so are the gradients.
    """
    if ranks.is_alone:
        return epoch
    model = DistributedDataParallel(_Forward(module, epoch))

    def whole() -> tuple[Tensor, Tensor]:
        share, score = model()
        first = score.to(share) if ranks.rank == 0 else torch.zeros_like(share)
        loss, score = ranks.sum(torch.stack([share.detach(), first])).unbind()
        scaled = ranks.size * share  # torch takes the mean of the gradients
        return scaled + (loss - scaled.detach()), score

    return whole


class _Forward(nn.Module):
    """A module whose forward pass is an epoch of another one."""

    def __init__(self, module: nn.Module, epoch: Epoch) -> None:
        super().__init__()
        self.module, self.epoch = module, epoch

    def forward(self) -> tuple[Tensor, Tensor]:
        """Loss and score."""
        return self.epoch()
