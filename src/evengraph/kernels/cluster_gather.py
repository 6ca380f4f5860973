"""The second half of semantic propagation on CUDA: from each cluster's sum back to its nodes.

Torch needs three passes over all nodes for it, and a pass costs as much as the sums. Triton comes
with torch's CUDA builds and is imported only there.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = 16  # of a block
WIDEST = 128  # columns of a block


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    x,
    sums,
    assignment,
    share,
    places,
    output,
    num_rows,
    width,
    x_row,
    output_row,
    rows: tl.constexpr,
    block: tl.constexpr,
    some: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
    offset = tl.program_id(1) * block + tl.arange(0, block)
    inside = row < num_rows
    cluster = tl.load(assignment + row, mask=inside, other=0)
    part = tl.load(share + cluster, mask=inside, other=0)
    both = inside[:, None] & (offset < width)[None, :]
    place = row
    if some:
        place = tl.load(places + row, mask=inside, other=-1).to(tl.int64)
    there = both & (place >= 0)[:, None]
    own = tl.load(x + place[:, None] * x_row + offset[None, :], mask=there, other=0)
    total = tl.load(sums + cluster[:, None] * width + offset[None, :], mask=both, other=0)
    goal = output + row[:, None] * output_row + offset[None, :]
    tl.store(goal, (total + own) * part[:, None], mask=both)


def spread(
    x: Tensor,
    sums: Tensor,
    assignment: Tensor,
    share: Tensor,
    output: Tensor,
    places: Tensor | None = None,
) -> Tensor:
    """Write (sum of a row's cluster + the row) * the cluster's share.

    Args:
        x: The rows.
        sums: Of each cluster.
        assignment: The cluster of each row.
        share: Of each cluster.
        output: Where to write.
        places: Where each row stands in x, -1 for a row of zeros.

    Shapes:
        x, output: (N, d), rows evenly spaced; with places, x has fewer
        sums: (K, d)
        assignment: int64, (N,)
        share: (K, 1)
        places: int32, (N,)
    """
    num_rows, width = output.shape
    block = min(WIDEST, triton.next_power_of_2(width))
    grid = (triton.cdiv(num_rows, ROWS), triton.cdiv(width, block))
    with torch.cuda.device_of(x):
        _kernel[grid](
            x,
            sums,
            assignment,
            share,
            places,
            output,
            num_rows,
            width,
            x.stride(0),
            output.stride(0),
            rows=ROWS,
            block=block,
            some=places is not None,
        )
    return output
