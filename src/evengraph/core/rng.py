"""Randomness: the only place that sets a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def generator(seed: int) -> torch.Generator:
    """A random stream of its own, independent of every other.

    It lives on the CPU: numbers drawn from it and moved to a graphics card are the same there.
    """
    return torch.Generator().manual_seed(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Set every global random state for a while, then put the caller's back.

    Weight initialisation and dropout draw from global state; nothing else here should.
    """
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    python_state = random.getstate()
    numpy_state = np.random.get_state()
    with torch.random.fork_rng(devices=devices):
        random.seed(seed)
        np.random.seed(seed % 2**32)
        # torch.manual_seed would also leave a seed waiting for cards that are not in use yet.
        torch.default_generator.manual_seed(seed)
        if devices:
            torch.cuda.manual_seed_all(seed)
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)
