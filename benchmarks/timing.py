"""Time two things side by side, so that a noisy machine disturbs both alike."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

WARM_UP = 5


def milliseconds(*tasks: Callable[[], object], rounds: int = 30) -> list[float]:
    """Median time of each task, taken in turns."""
    for task in tasks:
        for _ in range(WARM_UP):  # first runs pay for memory that later ones reuse
            task()
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(rounds):
        for task, spent in zip(tasks, times, strict=True):
            start = perf_counter()
            task()
            spent.append(perf_counter() - start)
    return [1000 * median(spent) for spent in times]
