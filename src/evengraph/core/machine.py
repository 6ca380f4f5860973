"""The machine: sizes of memory, processes, the allocator, devices."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import re
import socket
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    import torch

UNITS = {"": 1, "B": 1}
UNITS |= {f"{sign}B": 1000**power for power, sign in enumerate("KMGT", start=1)}
UNITS |= {f"{sign}IB": 1024**power for power, sign in enumerate("KMGT", start=1)}
UNITS |= {sign: 1024**power for power, sign in enumerate("KMGT", start=1)}

CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def parse_size(size: str | int | float) -> int:
    """Bytes of `4GB`, `512MiB`, `4G` or a number of bytes; `G` counts in powers of 1024."""
    text = str(int(size)) if isinstance(size, int | float) else size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    unit = match[2].upper() if match else ""
    if match is None or unit not in UNITS or float(match[1]) == 0:
        raise ValueError(f"memory must be a size such as 4GB or 512MiB, got {size!r}.")
    return int(float(match[1]) * UNITS[unit])


def format_size(size: float) -> str:
    """Such as `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def available_memory() -> int:
    """Bytes that this process can still take without swapping, in a container within its limit."""
    sizes = [int(psutil.virtual_memory().available)]
    for limit, used in CGROUP_FILES:
        with suppress(OSError, ValueError):
            sizes.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
    return max(min(sizes), 0)


@cache  # one thread per process
def end_with_parent() -> None:
    """End this process soon after its parent: a parent that is killed cannot do it."""
    started_by = multiprocessing.parent_process()  # which may have ended before we got here
    parent = os.getppid() if started_by is None else started_by.pid

    def watch() -> None:
        while os.getppid() == parent and psutil.pid_exists(parent):  # Windows keeps the number
            sleep(0.5)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def process_mark() -> str:
    """Names this process in a file name; `@` is in no host name, and ends both parts."""
    return f"{os.getpid()}@{socket.gethostname()}@"


def is_abandoned(mark: str) -> bool:
    """Whether a name that begins with a mark belongs to a process of this machine that ended."""
    pid, host, *_ = [*mark.split("@"), ""]
    return host == socket.gethostname() and pid.isdigit() and not psutil.pid_exists(int(pid))


def keep_freed_memory() -> bool:
    """Reuse freed memory in this process instead of returning it, for one that trains and ends.

    Returns whether it was set: it is on Linux with glibc, unless the environment sets an allocator.
    """
    by_user = any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ)
    if sys.platform != "linux" or by_user:
        return False
    with suppress(AttributeError, OSError):  # another C library
        mallopt, trim_threshold, mmap_max = ctypes.CDLL(None).mallopt, -1, -4  # of malloc.h
        return bool(mallopt(mmap_max, 0)) and bool(mallopt(trim_threshold, -1))
    return False


def pick_device(name: str | torch.device) -> torch.device:
    """A device by its name; `auto` is the first GPU if there is one."""
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be auto, cpu, cuda or cuda:N, got {str(name)!r}.")
    count = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= count:
        raise ValueError(f"There is no device {name}: torch sees {count} GPU(s).")
    return device


def free_memory(device: torch.device) -> int:
    """Bytes that this process can still take on a device."""
    if device.type != "cuda":
        return available_memory()
    import torch

    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
