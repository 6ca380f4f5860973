"""Measure in a process of its own, whose memory nothing else has used."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def in_own_process(module: str, *arguments: str) -> dict[str, Any]:
    """Run a module with arguments; the last line that it prints is its result, as JSON."""
    call = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return values


def gibibytes(what: str) -> float:
    """Current (VmRSS) or peak (VmHWM) memory of this process."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(what))
    return int(line.split()[1]) / 2**20
