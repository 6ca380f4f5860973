"""A command that torchrun has started several times: the first process writes, the others help."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from evengraph.cli.console import err, out

if TYPE_CHECKING:
    from evengraph.training.ranks import Ranks

_CURRENT: ContextVar[tuple[Ranks, Path] | None] = ContextVar("ranks", default=None)


@contextmanager
def launched_ranks(arguments: Sequence[str]) -> Iterator[None]:
    """Join the processes that torchrun has started; the others but the first print nothing."""
    if os.environ.get("WORLD_SIZE", "1") == "1":  # torch is not imported
        yield
        return
    from evengraph.training.ranks import joined_ranks

    with TemporaryDirectory() as scratch, joined_ranks() as ranks:
        if not ranks.is_alone and [*arguments, ""][0] != "run":
            raise ValueError("Several processes are for evengraph run; start others only once.")
        out.quiet = err.quiet = ranks.rank > 0
        _CURRENT.set((ranks, Path(scratch)))
        yield


def current_ranks() -> Ranks:
    """The processes of this command."""
    from evengraph.training.ranks import ALONE

    current = _CURRENT.get()
    return ALONE if current is None else current[0]


def own_folder(folder: Path, name: str) -> Path:
    """Where this process writes to: for all but the first a folder that is removed at the end."""
    current = _CURRENT.get()
    return folder if current is None or current[0].rank == 0 else current[1] / name


def speaks_for_all(error: Exception) -> bool:
    """Whether this process is the one to print an error that others may have as well."""
    current = _CURRENT.get()
    if current and not current[0].is_first_with(f"{type(error).__name__}: {error}"):
        return False
    err.quiet = False
    return True
