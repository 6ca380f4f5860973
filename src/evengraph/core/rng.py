"""Randomness: the only module that sets a seed."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def generator(seed: int) -> torch.Generator:
    """An independent random generator; on the CPU, so that every device gets the same numbers."""
    return torch.Generator().manual_seed(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed all global random states, for weights and dropout alone; restore them at the end."""
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    python_state, numpy_state = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=devices):
        random.seed(seed)
        np.random.seed(seed % 2**32)
        # torch.manual_seed would also seed GPUs that are not in use yet
        torch.default_generator.manual_seed(seed)
        if devices:
            torch.cuda.manual_seed_all(seed)
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)


def random_state() -> list[torch.Tensor]:
    """The state of torch's generators, on CPU and GPU: the same of all that train together."""
    used = [torch.cuda.get_rng_state()] if torch.cuda.is_initialized() else []
    return [torch.get_rng_state(), *used]


def restore_random_state(state: list[torch.Tensor]) -> None:
    """Continue where `random_state` was, on this or on another device."""
    torch.set_rng_state(state[0])
    for part in state[1:] if torch.cuda.is_initialized() else []:
        torch.cuda.set_rng_state(part)
