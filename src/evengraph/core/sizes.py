"""Sizes of memory: read what a user writes, print them, ask the system."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

UNITS = {"": 1, "B": 1}
UNITS |= {f"{sign}B": 1000**power for power, sign in enumerate("KMGT", start=1)}
UNITS |= {f"{sign}IB": 1024**power for power, sign in enumerate("KMGT", start=1)}
UNITS |= {sign: 1024**power for power, sign in enumerate("KMGT", start=1)}

CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
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
    sizes = [_system_memory()]
    for limit, used in CGROUP_FILES:
        with suppress(OSError, ValueError):
            sizes.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
    return max(min(sizes), 0)


def _system_memory() -> int:
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:  # all memory, where the system does not say how much is free
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * 1024**3
