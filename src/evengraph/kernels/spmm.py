"""A deterministic sparse product on CUDA.

Torch passes CSR products to cuSPARSE, which adds in no fixed order, so that two runs with one seed
drift apart. This kernel adds the entries of a row in order, chunk by chunk, and is faster with
several products at once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from evengraph.kernels.row_chunks import RowChunks

WIDEST = 128  # columns of a block
SHORT_ROWS = 32  # entries per row; below, four products share the reading of entries


@triton.jit  # type: ignore[untyped-decorator]
def _chunks_kernel(  # type: ignore[no-untyped-def]
    starts,
    stops,
    targets,
    columns,
    values,
    positions,
    x,
    output,
    scratch,
    replicas,
    nodes,
    width,
    x_row,
    x_replica,
    output_row,
    output_replica,
    scratch_replica,
    entries: tl.constexpr,
    block: tl.constexpr,
    together: tl.constexpr,
    even: tl.constexpr,
    far: tl.constexpr,
    has_positions: tl.constexpr,
):
    chunk = tl.program_id(0)
    lane = tl.arange(0, together * block)
    replica = (tl.program_id(1) * together + lane // block).to(tl.int64)
    offset = tl.program_id(2) * block + lane % block
    inside = (replica < replicas) & (offset < width)
    source = x + replica * x_replica + offset
    start, stop = tl.load(starts + chunk), tl.load(stops + chunk)
    total = tl.zeros((together * block,), dtype=output.dtype.element_ty)
    for first in range(start, stop, entries):
        entry = first + tl.arange(0, entries)
        valid = entry < stop
        column = tl.load(columns + entry, mask=valid, other=0)
        value = tl.load(values + entry, mask=valid, other=0)
        if has_positions:  # one replica at a time
            first_position = positions + tl.program_id(1).to(tl.int64) * nodes
            column = tl.load(first_position + column, mask=valid, other=-1)
            valid = column >= 0
        if far:
            column = column.to(tl.int64)
        where = source[None, :] + (column * x_row)[:, None]
        if even:
            part = tl.load(where, mask=valid[:, None], other=0)
        else:
            part = tl.load(where, mask=valid[:, None] & inside[None, :], other=0)
        total += tl.sum(value[:, None] * part, axis=0)
    target = tl.load(targets + chunk).to(tl.int64)
    if target >= 0:
        goal = output + replica * output_replica + target * output_row + offset
        tl.store(goal, total, mask=inside)
    else:
        goal = scratch + replica * scratch_replica + (-1 - target) * width + offset
        tl.store(goal, total, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _join_kernel(  # type: ignore[no-untyped-def]
    rows,
    firsts,
    scratch,
    output,
    width,
    output_row,
    output_replica,
    scratch_replica,
    block: tl.constexpr,
):
    number = tl.program_id(0)
    replica = tl.program_id(1).to(tl.int64)
    offset = tl.program_id(2) * block + tl.arange(0, block)
    inside = offset < width
    source = scratch + replica * scratch_replica + offset
    total = tl.zeros((block,), dtype=output.dtype.element_ty)
    for part in range(tl.load(firsts + number), tl.load(firsts + number + 1)):
        total += tl.load(source + tl.cast(part, tl.int64) * width, mask=inside, other=0)
    row = tl.load(rows + number).to(tl.int64)
    tl.store(output + replica * output_replica + row * output_row + offset, total, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _rows_kernel(  # type: ignore[no-untyped-def]
    pointers,
    columns,
    values,
    rows,
    positions,
    x,
    output,
    nodes,
    width,
    x_row,
    x_replica,
    count,
    entries: tl.constexpr,
    block: tl.constexpr,
    has_positions: tl.constexpr,
):
    number = tl.program_id(0)
    replica = tl.program_id(1).to(tl.int64)
    offset = tl.program_id(2) * block + tl.arange(0, block)
    inside = offset < width
    row = tl.load(rows + replica * count + number)
    valid_row = row >= 0
    start = tl.load(pointers + row, mask=valid_row, other=0)
    stop = tl.load(pointers + row + 1, mask=valid_row, other=0)
    source = x + replica * x_replica + offset
    total = tl.zeros((block,), dtype=output.dtype.element_ty)
    for first in range(start, stop, entries):
        entry = first + tl.arange(0, entries)
        valid = entry < stop
        column = tl.load(columns + entry, mask=valid, other=0)
        value = tl.load(values + entry, mask=valid, other=0)
        if has_positions:
            column = tl.load(positions + replica * nodes + column, mask=valid, other=-1)
            valid = column >= 0
        where = source[None, :] + (column.to(tl.int64) * x_row)[:, None]
        part = tl.load(where, mask=valid[:, None] & inside[None, :], other=0)
        total += tl.sum(value[:, None] * part, axis=0)
    tl.store(output + (replica * count + number) * width + offset, total, mask=inside)


def product_rows(matrix: Tensor, x: Tensor, rows: Tensor, positions: Tensor | None) -> Tensor:
    """Selected rows of the product, different ones per replica.

    Shapes:
        matrix: sparse CSR, (L, N)
        x: (R, N, d), or (R, M, d) with positions
        rows: int64, (R, E); -1 gives zeros
        positions: int32, (R, N), as in `deterministic_product`
        returns: (R, E, d)
    """
    x = x if x.stride(-1) == 1 else x.contiguous()
    (replicas, count), width = rows.shape, x.shape[-1]
    output = torch.empty((replicas, count, width), dtype=x.dtype, device=x.device)
    if output.numel():
        block = min(WIDEST, triton.next_power_of_2(width))
        with torch.cuda.device_of(x):
            _rows_kernel[(count, replicas, triton.cdiv(width, block))](
                *(matrix.crow_indices(), matrix.col_indices(), matrix.values(), rows, positions),
                *(x, output, matrix.shape[1], width, x.stride(1), x.stride(0), count),
                entries=16,
                block=block,
                has_positions=positions is not None,
                num_warps=1,
            )
    return output


def deterministic_product(
    matrix: Tensor,
    x: Tensor,
    chunks: RowChunks,
    output: Tensor | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Sparse CSR times dense; a leading axis of x stands for several products.

    Args:
        output: Where to write, such as columns of a wider matrix.
        positions: The index in x of each row of the dense factor, -1 for a row of zeros; None if
            x is the complete factor.

    Shapes:
        matrix: sparse CSR, (M, N)
        x: (N, d) or (R, N, d); with positions, fewer rows
        output, returns: (M, d) or (R, M, d)
        positions: int32, (N,) or (R, N)
    """
    if x.stride(-1) != 1:
        x = x.contiguous()
    rows, width = matrix.shape[0], x.shape[-1]
    if output is None:
        output = torch.empty((*x.shape[:-2], rows, width), dtype=x.dtype, device=x.device)
    if not output.numel():
        return output
    replicas = x.shape[0] if x.dim() == 3 else 1
    short = matrix.col_indices().numel() < SHORT_ROWS * rows
    together = min(triton.next_power_of_2(replicas), 4 if short else 2) if positions is None else 1
    block = min(WIDEST, triton.next_power_of_2(width))
    blocks = triton.cdiv(width, block)
    x_replica = x.stride(0) if x.dim() == 3 else 0
    output_replica = output.stride(0) if x.dim() == 3 else 0
    scratch = torch.empty(replicas * chunks.scratch * width, dtype=x.dtype, device=x.device)
    with torch.cuda.device_of(x):
        _chunks_kernel[(chunks.starts.numel(), triton.cdiv(replicas, together), blocks)](
            *(chunks.starts, chunks.stops, chunks.targets),
            *(matrix.col_indices(), matrix.values(), positions, x, output, scratch),
            *(replicas, matrix.shape[1], width, x.stride(-2), x_replica),
            *(output.stride(-2), output_replica, chunks.scratch * width),
            entries=16 if together == 1 else 8,
            block=block,
            together=together,
            even=replicas % together == 0 and width % block == 0,
            far=x.shape[-2] * x.stride(-2) >= 2**31,
            has_positions=positions is not None,
            num_warps=1 if together * block <= 256 else 2,
        )
        if chunks.scratch:  # add up the partial sums of long rows
            _join_kernel[(chunks.rows.numel(), replicas, blocks)](
                *(chunks.rows, chunks.firsts, scratch, output, width),
                *(output.stride(-2), output_replica, chunks.scratch * width),
                block=block,
                num_warps=1,
            )
    return output
