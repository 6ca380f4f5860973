"""Rehearsal of an epoch that is to be recorded as a CUDA graph.

A recording that fails can leave the process unusable. What cannot be recorded is, above all, an
operation that waits for the GPU, such as `item()`; torch can report these in an ordinary epoch.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

MESSAGE = "synchronizing CUDA operation"  # in torch's warning


@contextmanager
def waits_for_gpu() -> Iterator[list[str]]:
    """Collect, until the end of the block, a warning per operation that waits for the GPU."""
    found: list[str] = []
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode(before)
            found += [str(warning.message) for warning in caught if MESSAGE in str(warning.message)]
    for warning in caught:
        if MESSAGE not in str(warning.message):  # for others to see
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
