"""The C library's allocator: keep freed memory for the next epoch, or give it back.

By default glibc requests every large array from the system and returns it at once. The system then
clears the same memory in every epoch, which takes half of the time on large graphs.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # of mallopt, in malloc.h
NEVER, NONE = -1, 0
SET_BY_USER = ("MALLOC_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Reuse freed memory in this process instead of returning it to the system.

    The process then stays as large as it ever was, so it is for processes that train and end.
    Returns whether it was set: it is on Linux with glibc, unless the environment sets an allocator.
    """
    if sys.platform != "linux" or any(name.startswith(SET_BY_USER) for name in os.environ):
        return False
    with suppress(AttributeError, OSError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        return bool(mallopt(MMAP_MAX, NONE)) and bool(mallopt(TRIM_THRESHOLD, NEVER))
    return False


def return_freed_memory() -> None:
    """Return freed memory to the system, where the C library can."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
