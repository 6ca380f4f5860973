"""Triton kernels: sparse products that add in a fixed order."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from evengraph.fast.row_chunks import RowChunks

WIDEST = 128  # columns of a block
ENTRIES = 16  # of a sparse row that are read together


@triton.jit  # type: ignore[untyped-decorator]
def _chunks_kernel(  # type: ignore[no-untyped-def]
    starts,
    stops,
    targets,
    columns,
    values,
    x,
    output,
    scratch,
    width,
    x_row,
    entries: tl.constexpr,
    block: tl.constexpr,
    even: tl.constexpr,
    far: tl.constexpr,
):
    chunk = tl.program_id(0)
    offset = tl.program_id(1) * block + tl.arange(0, block)
    inside = offset < width
    start, stop = tl.load(starts + chunk), tl.load(stops + chunk)
    total = tl.zeros((block,), dtype=output.dtype.element_ty)
    for first in range(start, stop, entries):
        entry = first + tl.arange(0, entries)
        valid = entry < stop
        column = tl.load(columns + entry, mask=valid, other=0)
        value = tl.load(values + entry, mask=valid, other=0)
        if far:
            column = column.to(tl.int64)
        where = x + (column * x_row)[:, None] + offset[None, :]
        if even:
            part = tl.load(where, mask=valid[:, None], other=0)
        else:
            part = tl.load(where, mask=valid[:, None] & inside[None, :], other=0)
        total += tl.sum(value[:, None] * part, axis=0)
    target = tl.load(targets + chunk).to(tl.int64)
    if target >= 0:
        tl.store(output + target * width + offset, total, mask=inside)
    else:
        tl.store(scratch + (-1 - target) * width + offset, total, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _join_kernel(  # type: ignore[no-untyped-def]
    rows, firsts, scratch, output, width, block: tl.constexpr
):
    number = tl.program_id(0)
    offset = tl.program_id(1) * block + tl.arange(0, block)
    inside = offset < width
    total = tl.zeros((block,), dtype=output.dtype.element_ty)
    for part in range(tl.load(firsts + number), tl.load(firsts + number + 1)):
        total += tl.load(scratch + tl.cast(part, tl.int64) * width + offset, mask=inside, other=0)
    row = tl.load(rows + number).to(tl.int64)
    tl.store(output + row * width + offset, total, mask=inside)


def deterministic_product(matrix: Tensor, x: Tensor, chunks: RowChunks) -> Tensor:
    """Sparse CSR times dense."""
    if x.stride(-1) != 1:
        x = x.contiguous()
    rows, width = matrix.shape[0], x.shape[1]
    output = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    if not output.numel():
        return output
    block = min(WIDEST, triton.next_power_of_2(width))
    blocks = triton.cdiv(width, block)
    scratch = torch.empty(chunks.scratch * width, dtype=x.dtype, device=x.device)
    with torch.cuda.device_of(x):
        _chunks_kernel[(chunks.starts.numel(), blocks)](
            *(chunks.starts, chunks.stops, chunks.targets),
            *(matrix.col_indices(), matrix.values(), x, output, scratch),
            *(width, x.stride(0)),
            entries=ENTRIES,
            block=block,
            even=width % block == 0,
            far=x.shape[0] * x.stride(0) >= 2**31,
            num_warps=1,
        )
        if chunks.scratch:  # add up the partial sums of long rows
            _join_kernel[(chunks.rows.numel(), blocks)](
                *(chunks.rows, chunks.firsts, scratch, output, width),
                block=block,
                num_warps=1,
            )
    return output
