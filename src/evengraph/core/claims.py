"""Claims: which process works on which job, and whether it is still alive."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path
from typing import NamedTuple

STALE = 24 * 3600.0  # seconds after which a job claimed on another machine may be claimed again


class Claimant(NamedTuple):
    """A process that works on jobs.

    A process id is used again after a while, and after every start of the machine. The time at
    which the process started and the id of the boot tell the two apart; empty where unknown.
    """

    host: str
    process: int
    boot: str = ""
    started: str = ""

    def alive(self, *, seen: float, now: float) -> bool:
        """Whether the process that made a claim at the time `seen` may still work on it."""
        if not isinstance(seen, int | float) or not _is_process_id(self.process):
            return False  # the claim is damaged
        if self.host != socket.gethostname():
            return abs(now - seen) <= STALE  # a time in the future is that of a wrong clock
        boot = boot_id()
        if self.boot and boot and self.boot != boot:
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # alive, of another user
            pass
        state, started = _state(self.process)
        if state in ("Z", "X"):  # dead, but not yet reaped by its parent
            return False
        return not (self.started and started) or self.started == started


def _is_process_id(value: object) -> bool:
    """Whether it is the id of one process; 0 and negative numbers stand for groups of them."""
    return isinstance(value, int) and 0 < value < 2**31


class Holder(NamedTuple):
    """A living process and what it holds."""

    claimant: Claimant
    seen: float  # time of its latest claim
    jobs: int


def this_process() -> Claimant:
    """The calling process."""
    return Claimant(socket.gethostname(), os.getpid(), boot_id(), _state(os.getpid())[1])


@cache
def boot_id() -> str:
    """Differs after every start of the machine; empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _state(process: int) -> tuple[str, str]:
    """State of a process and when it started, in ticks since the boot; empty if unknown."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return "", ""
    parts = text.rpartition(")")[2].split()  # the name of the program may hold spaces
    return parts[0], parts[19]
