"""SIGTERM, which schedulers send, ends a command as Ctrl-C does: results so far are kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def sigterm_interrupts() -> Iterator[list[int]]:
    """Turn SIGTERM into an interrupt; the list is not empty once one has come."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received  # signals reach the main thread only
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if callable(signal.getsignal(signal.SIGINT)):  # may be deferred for a moment
            signal.raise_signal(signal.SIGINT)
        else:  # shells let background commands ignore it
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)
