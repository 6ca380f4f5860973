"""Checkpoints: training that is saved as it goes on, and continues after a kill."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, runtime_checkable

import torch

from evengraph.core.files import write_atomic
from evengraph.core.ranks import ALONE, Ranks
from evengraph.core.rng import random_state, restore_random_state

EVERY = 30.0  # seconds
RANDOM = "random"


@runtime_checkable
class Stateful(Protocol):
    """What a checkpoint can store."""

    def state_dict(self) -> dict[str, Any]:
        """Tensors, numbers and lists of them, by name."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Take what `state_dict` returned."""
        ...


@dataclass
class Checkpoint:
    """A file that training is saved in every few seconds, and that it continues from.

    All processes that train together have the same state: the first one writes it, and any number
    of them continues from it. The random state is stored as well, so that the result is that of a
    run without a break.

    Args:
        path: The file; name it by a hash of what is trained, so that nothing else continues it.
        every: Seconds between two writes.
        ranks: The processes that train together.
    """

    path: Path
    every: float = EVERY
    ranks: Ranks = ALONE
    latest: float = field(default_factory=monotonic, init=False)

    def load(self, parts: Mapping[str, Stateful]) -> bool:
        """Put the parts into the state of the file; returns whether there is one."""
        content = self.ranks.once(lambda: self.path.read_bytes() if self.path.exists() else b"")
        if not content:
            return False
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        for name, part in parts.items():
            part.load_state_dict(state[name])
        restore_random_state(state[RANDOM])
        return True

    def save(self, parts: Mapping[str, Stateful]) -> None:
        """Write the file, if it is time to."""
        if self.ranks.rank or monotonic() - self.latest < self.every:
            return
        state: dict[str, Any] = {name: part.state_dict() for name, part in parts.items()}
        buffer = io.BytesIO()
        torch.save(state | {RANDOM: random_state()}, buffer)
        write_atomic(buffer.getvalue(), self.path)
        self.latest = monotonic()

    def remove(self) -> None:
        """Remove the file once training is complete."""
        if not self.ranks.rank:
            self.path.unlink(missing_ok=True)
