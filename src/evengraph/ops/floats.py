"""Single-precision numbers: their first digits and their order."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

LARGEST = 0x7F7FFFFF  # bits of the largest finite number
DIGITS = 16  # bits of a number that are used: the last ones depend on the order of summation


def first_digits(x: Tensor) -> Tensor:
    """Numbers rounded to their first `DIGITS` bits, (...)."""
    mantissa, exponent = torch.frexp(x)
    return torch.ldexp((mantissa * 2**DIGITS).round(), exponent - DIGITS)


def largest_up_to(function: Callable[[Tensor], Tensor], limit: Tensor) -> Tensor:
    """The largest finite float32 at which a function that never falls is at most a limit.

    Shapes:
        limit, returns: (K,)
    """
    low = torch.full(limit.shape, -LARGEST, device=limit.device)  # int64
    high = -low
    while (low < high).any():
        middle = (low + high + 1).div(2, rounding_mode="floor")
        fits = function(_number(middle)) <= limit
        low, high = torch.where(fits, middle, low), torch.where(fits, high, middle - 1)
    return _number(low)


def _number(rank: Tensor) -> Tensor:
    """The float32 of a rank: zero has rank 0, the next larger number 1, and so on."""
    bits = torch.where(rank >= 0, rank, -(2**31) - rank)
    return bits.to(torch.int32).view(torch.float32)
