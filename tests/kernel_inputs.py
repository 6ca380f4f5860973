"""What tests of the card's kernels share; without a card, Triton's interpreter runs them."""

import torch
from torch.nn.functional import pad

from small_graphs import normal

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
MARGIN = 2


def surrounded(x):
    """A copy of a tensor in the midst of a larger one of NaN, which comes with it."""
    whole = pad(x, (MARGIN, MARGIN) * x.dim(), value=torch.nan)
    return midst(whole), whole


def midst(whole):
    return whole[(slice(MARGIN, -MARGIN),) * whole.dim()]


def is_untouched(whole):
    """Whether there is still nothing but NaN around the midst."""
    around = whole.clone()
    midst(around).fill_(torch.nan)
    return bool(around.isnan().all())


def poisoned(*shape, dtype=torch.float32):
    """Memory to write to, NaN within and around; and the whole of it."""
    return surrounded(torch.full(shape, torch.nan, dtype=dtype, device=DEVICE))


def on_device(*shape, seed=0, dtype=torch.float32):
    return normal(*shape, seed=seed, dtype=dtype).to(DEVICE)


def assert_same(found, expected):
    """Equal up to rounding, found on the device and expected on the CPU."""
    expected = expected.to(found.dtype)
    exact = found.dtype == torch.float64
    atol = 1e-10 if exact else 1e-4
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-6 if exact else 1e-4, atol=atol)
