"""Worker processes that end with their parent."""

from __future__ import annotations

import os
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
