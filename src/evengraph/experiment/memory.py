"""PeakMemory: how much memory a block of code takes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import torch

from evengraph.core.allocator import return_freed_memory


class PeakMemory:
    """Peak memory of a block of code, beyond what was in use before, in GiB.

    `gib` is None where the system does not tell.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.gib: float | None = None

    def __enter__(self) -> PeakMemory:
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
            self.before = torch.cuda.memory_allocated(self.device) / 2**30
        else:
            return_freed_memory()  # of an earlier fit, which would hide what this one takes
            self.before = _process_memory("VmRSS") or 0.0
            with suppress(OSError):  # resets the peak, where the system can
                Path("/proc/self/clear_refs").write_text("5")
        return self

    def __exit__(self, *_: object) -> None:
        if self.device.type == "cuda":
            self.gib = torch.cuda.max_memory_allocated(self.device) / 2**30 - self.before
        elif (peak := _process_memory("VmHWM")) is not None:
            self.gib = max(peak - self.before, 0.0)


def _process_memory(name: str) -> float | None:
    """A value of /proc/self/status in GiB."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 2**20 for line in lines if line.startswith(name)), None)


def processes_on_gpu(device: torch.device, gib_per_process: float = 4) -> int:
    """How many processes the free memory of a GPU is enough for."""
    free, _ = torch.cuda.mem_get_info(device)
    return max(int(free / gib_per_process / 2**30), 1)
