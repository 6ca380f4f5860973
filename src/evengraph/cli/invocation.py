"""The command as it was typed, for the files that it writes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextvars import ContextVar
from shlex import join

_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


def remember(arguments: Sequence[str] | None) -> None:
    """Keep the arguments of this call of the command line; None stands for those of the process."""
    _ARGUMENTS.set(tuple(sys.argv[1:] if arguments is None else arguments))


def typed_command(*more: str) -> str:
    """The command that is running, with other words at its end, quoted so that it can be pasted."""
    return join(["evengraph", *_ARGUMENTS.get(), *more])
