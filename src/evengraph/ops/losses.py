"""Losses that know about class sizes."""

from __future__ import annotations

import torch
from torch import Tensor


def inverse_class_weights(class_counts: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """One over the number of labelled nodes of each class (Eq. 9); 0 for a class without any.

    Shapes:
        class_counts: (C,)
        returns: (C,)
    """
    counts = class_counts.to(dtype)
    return torch.where(counts > 0, 1 / counts.clamp(min=1), torch.zeros_like(counts))
