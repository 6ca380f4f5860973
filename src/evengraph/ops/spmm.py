"""A sparse product on CUDA that gives the same bits every time.

Torch hands CSR products to cuSPARSE with an algorithm that adds in an order of its own, so two
runs with one seed drift apart. This kernel adds the entries of a row in their order. Triton
comes with torch's CUDA builds and is imported only there.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

ENTRIES = 16  # of a row, taken at a time


@triton.jit  # type: ignore[untyped-decorator]
def _rows_kernel(  # type: ignore[no-untyped-def]
    pointers,
    columns,
    values,
    x,
    output,
    rows,
    inner,
    width,
    entries: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * block + tl.arange(0, block)
    replica = tl.program_id(2).to(tl.int64)
    x += replica * inner * width
    output += replica * rows * width
    inside = offsets < width
    start, stop = tl.load(pointers + row), tl.load(pointers + row + 1)
    total = tl.zeros((block,), dtype=output.dtype.element_ty)
    for first in range(start, stop, entries):
        entry = first + tl.arange(0, entries)
        valid = entry < stop
        column = tl.load(columns + entry, mask=valid, other=0).to(tl.int64)
        value = tl.load(values + entry, mask=valid, other=0)
        where = column[:, None] * width + offsets[None, :]
        part = tl.load(x + where, mask=valid[:, None] & inside[None, :], other=0)
        total += tl.sum(value[:, None] * part, axis=0)
    tl.store(output + row.to(tl.int64) * width + offsets, total, mask=inside)


def deterministic_product(matrix: Tensor, x: Tensor) -> Tensor:
    """Sparse CSR times dense, on CUDA; a leading axis of x stands for several products.

    Shapes:
        matrix: sparse CSR, (M, N)
        x: (N, d) or (R, N, d)
        returns: (M, d) or (R, M, d)
    """
    x = x.contiguous()
    rows, inner, width = matrix.shape[0], x.shape[-2], x.shape[-1]
    output = torch.empty((*x.shape[:-2], rows, width), dtype=x.dtype, device=x.device)
    if output.numel():
        block = min(128, triton.next_power_of_2(width))
        grid = (rows, triton.cdiv(width, block), x.shape[0] if x.dim() == 3 else 1)
        parts = matrix.crow_indices(), matrix.col_indices(), matrix.values()
        with torch.cuda.device(x.device):
            _rows_kernel[grid](*parts, x, output, rows, inner, width, entries=ENTRIES, block=block)
    return output
