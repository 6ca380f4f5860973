"""Rows of a sparse matrix cut into short pieces, so that a card works at all of them at once.

A hub's row may hold a thousand times the entries of another. Taken whole, the card waits for it.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LONGEST = 128  # entries of a piece


class Pieces(NamedTuple):
    """Entries starts[p] to stops[p] make piece p. A whole row goes straight to its place.

    Pieces of a row that was cut go to scratch memory, and are added up from there in their order.

    Shapes:
        starts, stops: int32, (P,)
        targets: int32, (P,), the row of a whole one, -1 - its place in scratch memory of a part
        rows: int32, (L,), the rows that were cut
        firsts: int32, (L + 1,), where the parts of each begin in scratch memory
    """

    starts: Tensor
    stops: Tensor
    targets: Tensor
    rows: Tensor
    firsts: Tensor
    scratch: int


def cut(row_pointers: Tensor) -> Pieces:
    """Cut the long rows of a matrix that stays; the longest pieces come first.

    Shapes:
        row_pointers: (M + 1,), of a CSR matrix
    """
    pointers = row_pointers.long()
    _check(int(pointers[-1]))
    parts = _parts(pointers).clamp(min=1)  # an empty row is a piece: zeros must be written
    row = torch.repeat_interleave(parts)
    starts, stops = _ends(pointers, parts, row)
    split = parts[row] > 1
    targets = torch.where(split, -split.cumsum(0), row)
    order = torch.argsort(stops - starts, descending=True, stable=True)
    rows = (parts > 1).nonzero().squeeze(1)
    firsts = torch.cat([rows.new_zeros(1), parts[rows].cumsum(0)])
    return Pieces(
        starts[order].int(),
        stops[order].int(),
        targets[order].int(),
        rows.int(),
        firsts.int(),
        scratch=int(split.sum()),
    )


def cut_evenly(row_pointers: Tensor, entries: int) -> Pieces:
    """Cut a matrix that changes: the number of pieces depends on its size alone.

    Every row goes through scratch memory, and some pieces are empty. Nothing waits for the card.
    """
    _check(entries)
    pointers = row_pointers.long()
    num_rows = pointers.numel() - 1
    count = num_rows + entries // LONGEST  # no fewer than are needed, whatever the rows
    parts = _parts(pointers)
    ends = parts.cumsum(0)
    places = torch.arange(count, device=pointers.device)
    row = torch.searchsorted(ends, places, right=True).clamp_(max=max(num_rows - 1, 0))
    starts, stops = _ends(pointers, parts, row)
    used = places < ends[-1:]
    firsts = torch.cat([ends.new_zeros(1), ends])
    rows = torch.arange(num_rows, device=pointers.device)
    return Pieces(
        (starts * used).int(),
        (stops * used).int(),
        (-1 - places).int(),
        rows.int(),
        firsts.int(),
        scratch=count,
    )


def _check(entries: int) -> None:
    if entries >= 2**31:  # the kernels count in 32 bits, which is faster
        raise ValueError(f"A card takes fewer than 2^31 entries of a sparse matrix, got {entries}.")


def _parts(pointers: Tensor) -> Tensor:
    """Pieces that each row is cut into."""
    return (pointers.diff() + LONGEST - 1) // LONGEST


def _ends(pointers: Tensor, parts: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
    """Where the pieces of each row, one after the other, start and stop."""
    before = parts.cumsum(0) - parts
    number = torch.arange(row.numel(), device=row.device) - before[row]
    starts = pointers[row] + number * LONGEST
    return starts, torch.minimum(starts + LONGEST, pointers[row + 1])
