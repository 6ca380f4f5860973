"""A sparse product on CUDA that gives the same bits every time.

Torch hands CSR products to cuSPARSE with an algorithm that adds in an order of its own, so two
runs with one seed drift apart. This kernel adds the entries of a row in their order, piece by
piece, and is the faster one with several products at once. Triton comes with torch's CUDA builds
and is imported only there.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from evengraph.ops.row_chunks import Pieces

WIDEST = 128  # columns of a block
SHORT_ROWS = 32  # entries; with fewer, more products share the reading of them


@triton.jit  # type: ignore[untyped-decorator]
def _pieces_kernel(  # type: ignore[no-untyped-def]
    starts,
    stops,
    targets,
    columns,
    values,
    places,
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
    some: tl.constexpr,
):
    piece = tl.program_id(0)
    place = tl.arange(0, together * block)
    replica = (tl.program_id(1) * together + place // block).to(tl.int64)
    offset = tl.program_id(2) * block + place % block
    inside = (replica < replicas) & (offset < width)
    source = x + replica * x_replica + offset
    start, stop = tl.load(starts + piece), tl.load(stops + piece)
    total = tl.zeros((together * block,), dtype=output.dtype.element_ty)
    for first in range(start, stop, entries):
        entry = first + tl.arange(0, entries)
        valid = entry < stop
        column = tl.load(columns + entry, mask=valid, other=0)
        value = tl.load(values + entry, mask=valid, other=0)
        if some:  # one replica at a time
            first_place = places + tl.program_id(1).to(tl.int64) * nodes
            column = tl.load(first_place + column, mask=valid, other=-1)
            valid = column >= 0
        if far:
            column = column.to(tl.int64)
        where = source[None, :] + (column * x_row)[:, None]
        if even:
            part = tl.load(where, mask=valid[:, None], other=0)
        else:
            part = tl.load(where, mask=valid[:, None] & inside[None, :], other=0)
        total += tl.sum(value[:, None] * part, axis=0)
    target = tl.load(targets + piece).to(tl.int64)
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
    places,
    x,
    output,
    nodes,
    width,
    x_row,
    x_replica,
    count,
    entries: tl.constexpr,
    block: tl.constexpr,
    some: tl.constexpr,
):
    number = tl.program_id(0)
    replica = tl.program_id(1).to(tl.int64)
    offset = tl.program_id(2) * block + tl.arange(0, block)
    inside = offset < width
    row = tl.load(rows + replica * count + number)
    wanted = row >= 0
    start = tl.load(pointers + row, mask=wanted, other=0)
    stop = tl.load(pointers + row + 1, mask=wanted, other=0)
    source = x + replica * x_replica + offset
    total = tl.zeros((block,), dtype=output.dtype.element_ty)
    for first in range(start, stop, entries):
        entry = first + tl.arange(0, entries)
        valid = entry < stop
        column = tl.load(columns + entry, mask=valid, other=0)
        value = tl.load(values + entry, mask=valid, other=0)
        if some:
            column = tl.load(places + replica * nodes + column, mask=valid, other=-1)
            valid = column >= 0
        where = source[None, :] + (column.to(tl.int64) * x_row)[:, None]
        part = tl.load(where, mask=valid[:, None] & inside[None, :], other=0)
        total += tl.sum(value[:, None] * part, axis=0)
    tl.store(output + (replica * count + number) * width + offset, total, mask=inside)


def rows_of_product(matrix: Tensor, x: Tensor, rows: Tensor, places: Tensor | None) -> Tensor:
    """Some rows of the product, others for each replica, on CUDA.

    Args:
        matrix: The sparse matrix.
        x: What to multiply.
        rows: Which rows; -1 gives zeros.
        places: Where each row of the dense factor stands in x, -1 for a row of zeros; without
            it, x is the whole factor.

    Shapes:
        matrix: sparse CSR, (L, N)
        x: (R, N, d), or (R, M, d) with places
        rows: int64, (R, E)
        places: int32, (R, N)
        returns: (R, E, d)
    """
    x = x if x.stride(-1) == 1 else x.contiguous()
    (replicas, count), width = rows.shape, x.shape[-1]
    output = torch.empty((replicas, count, width), dtype=x.dtype, device=x.device)
    if output.numel():
        block = min(WIDEST, triton.next_power_of_2(width))
        with torch.cuda.device_of(x):
            _rows_kernel[(count, replicas, triton.cdiv(width, block))](
                matrix.crow_indices(),
                matrix.col_indices(),
                matrix.values(),
                rows,
                places,
                x,
                output,
                matrix.shape[1],
                width,
                x.stride(1),
                x.stride(0),
                count,
                entries=16,
                block=block,
                some=places is not None,
                num_warps=1,
            )
    return output


def deterministic_product(
    matrix: Tensor,
    x: Tensor,
    pieces: Pieces,
    output: Tensor | None = None,
    places: Tensor | None = None,
) -> Tensor:
    """Sparse CSR times dense, on CUDA; a leading axis of x stands for several products.

    Args:
        matrix: The sparse matrix.
        x: What to multiply.
        pieces: The rows of the matrix, cut.
        output: Where to write; the columns of a wider matrix, say.
        places: Where each row of the dense factor stands in x, -1 for a row of zeros.

    Shapes:
        matrix: sparse CSR, (M, N)
        x: (N, d) or (R, N, d); with places, fewer rows
        output, returns: (M, d) or (R, M, d)
        places: int32, (N,) or (R, N)
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
    together = min(triton.next_power_of_2(replicas), 4 if short else 2) if places is None else 1
    block = min(WIDEST, triton.next_power_of_2(width))
    blocks = triton.cdiv(width, block)
    x_replica = x.stride(0) if x.dim() == 3 else 0
    output_replica = output.stride(0) if x.dim() == 3 else 0
    scratch = torch.empty(replicas * pieces.scratch * width, dtype=x.dtype, device=x.device)
    with torch.cuda.device_of(x):
        _pieces_kernel[(pieces.starts.numel(), triton.cdiv(replicas, together), blocks)](
            pieces.starts,
            pieces.stops,
            pieces.targets,
            matrix.col_indices(),
            matrix.values(),
            places,
            x,
            output,
            scratch,
            replicas,
            matrix.shape[1],
            width,
            x.stride(-2),
            x_replica,
            output.stride(-2),
            output_replica,
            pieces.scratch * width,
            entries=16 if together == 1 else 8,
            block=block,
            together=together,
            even=replicas % together == 0 and width % block == 0,
            far=x.shape[-2] * x.stride(-2) >= 2**31,
            some=places is not None,
            num_warps=1 if together * block <= 256 else 2,
        )
        if pieces.scratch:
            _join(pieces, scratch, output, block)
    return output


def _join(pieces: Pieces, scratch: Tensor, output: Tensor, block: int) -> None:
    """Add up the parts of rows that were cut."""
    width, several = output.shape[-1], output.dim() == 3
    replicas = output.shape[0] if several else 1
    _join_kernel[(pieces.rows.numel(), replicas, triton.cdiv(width, block))](
        pieces.rows,
        pieces.firsts,
        scratch,
        output,
        width,
        output.stride(-2),
        output.stride(0) if several else 0,
        pieces.scratch * width,
        block=block,
        num_warps=1,
    )
