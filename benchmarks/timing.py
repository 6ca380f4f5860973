"""Time tasks in alternation, so that noise affects all alike; memory of a process; the machine."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

WARM_UP = 5


def milliseconds(*tasks: Callable[[], object], rounds: int = 30) -> list[float]:
    """Median time of each task, measured in alternation."""
    for task in tasks:
        for _ in range(WARM_UP):  # the first runs allocate memory that later ones reuse
            task()
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(rounds):
        for task, spent in zip(tasks, times, strict=True):
            start = perf_counter()
            task()
            spent.append(perf_counter() - start)
    return [1000 * median(spent) for spent in times]


def table(title: str, header: list[str], rows: list[list[object]]) -> None:
    """Print a table in plain text."""
    shown = [header, *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in shown) for column in range(len(header))]
    print(f"\n{title}")
    for row in shown:
        print("  " + "   ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)))


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


class PeakMemory:
    """Peak memory of a block of code beyond what was in use, in GiB; on Linux."""

    gib = 0.0

    def __enter__(self) -> PeakMemory:
        ctypes.CDLL(None).malloc_trim(0)  # of an earlier fit, which would hide what this one takes
        self.before = _process_memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        return self

    def __exit__(self, *_: object) -> None:
        self.gib = max(_process_memory("VmHWM") - self.before, 0.0)


def _process_memory(name: str) -> float:
    """A value of /proc/self/status in GiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 2**20 for line in lines if line.startswith(name))


def machine() -> str:
    """The processor, in a word or two."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.machine()])[0].replace(",", " ")


def commit() -> str:
    """The current commit."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"
