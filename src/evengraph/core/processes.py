"""Processes: workers that end with their parent, and whose files are left behind."""

from __future__ import annotations

import os
import socket
from functools import cache
from threading import Thread
from time import sleep

CHECK_EVERY = 0.5  # seconds


@cache  # one thread per process
def end_with_parent() -> None:
    """End this process soon after its parent: a parent that is killed cannot do it."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            sleep(CHECK_EVERY)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def process_exists(pid: int) -> bool:
    """Whether a process of this machine is there, of whatever user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def process_mark() -> str:
    """Names this process in a file name; `@` is in no host name, and ends both parts."""
    return f"{os.getpid()}@{socket.gethostname()}@"


def is_abandoned(mark: str) -> bool:
    """Whether a name that begins with a mark belongs to a process of this machine that ended."""
    pid, host, *_ = [*mark.split("@"), ""]
    return host == socket.gethostname() and pid.isdigit() and not process_exists(int(pid))
