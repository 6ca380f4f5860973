"""Rows of a sparse matrix cut into short chunks that a GPU processes in parallel.

A hub's row may hold a thousand times the entries of another and would delay the whole product.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

CHUNK_ENTRIES = 128  # at most


class RowChunks(NamedTuple):
    """Chunk p holds entries starts[p] to stops[p]. A row of one chunk is written directly."""

    # partial sums of longer rows go to scratch memory and are added up from there in order

    starts: Tensor  # int32, (P,)
    stops: Tensor
    targets: Tensor  # (P,), the row of a complete one, -1 - its scratch index of a partial one
    rows: Tensor  # int32, (L,), the rows that go through scratch memory
    firsts: Tensor  # int32, (L + 1,), the first scratch index of each
    scratch: int


def chunk_rows(row_pointers: Tensor) -> RowChunks:
    """Chunk a constant matrix; the longest chunks come first."""
    pointers = row_pointers.long()
    _check(int(pointers[-1]))
    counts = _chunk_counts(pointers).clamp(min=1)  # an empty row needs a chunk to write zeros
    row = torch.repeat_interleave(counts)
    starts, stops = _bounds(pointers, counts, row)
    partial = counts[row] > 1
    targets = torch.where(partial, -partial.cumsum(0), row)
    order = torch.argsort(stops - starts, descending=True, stable=True)
    rows = (counts > 1).nonzero().squeeze(1)
    firsts = torch.cat([rows.new_zeros(1), counts[rows].cumsum(0)])
    starts, stops, targets = (part[order].int() for part in (starts, stops, targets))
    return RowChunks(starts, stops, targets, rows.int(), firsts.int(), int(partial.sum()))


def chunk_rows_fixed(row_pointers: Tensor, entries: int) -> RowChunks:
    """Chunk a matrix that changes: the number of chunks depends on its size alone."""
    # all rows go through scratch memory, some chunks are empty, nothing waits for the GPU
    _check(entries)
    pointers = row_pointers.long()
    num_rows = pointers.numel() - 1
    limit = num_rows + entries // CHUNK_ENTRIES  # enough, however the entries are distributed
    counts = _chunk_counts(pointers)
    ends = counts.cumsum(0)
    index = torch.arange(limit, device=pointers.device)
    row = torch.searchsorted(ends, index, right=True).clamp_(max=max(num_rows - 1, 0))
    starts, stops = _bounds(pointers, counts, row)
    used = index < ends[-1:]
    firsts = torch.cat([ends.new_zeros(1), ends])
    rows = torch.arange(num_rows, device=pointers.device)
    starts, stops, targets = (part.int() for part in (starts * used, stops * used, -1 - index))
    return RowChunks(starts, stops, targets, rows.int(), firsts.int(), limit)


def _check(entries: int) -> None:
    if entries >= 2**31:  # 32-bit indices make the kernels faster
        raise ValueError(
            f"A sparse matrix on a GPU must have fewer than 2^31 entries, got {entries}."
        )


def _chunk_counts(pointers: Tensor) -> Tensor:
    return (pointers.diff() + CHUNK_ENTRIES - 1) // CHUNK_ENTRIES


def _bounds(pointers: Tensor, counts: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
    """First entry of each chunk, and one past its last."""
    before = counts.cumsum(0) - counts
    number = torch.arange(row.numel(), device=row.device) - before[row]
    starts = pointers[row] + number * CHUNK_ENTRIES
    return starts, torch.minimum(starts + CHUNK_ENTRIES, pointers[row + 1])
