"""The second half of semantic propagation on CUDA: from each cluster's sum back to its nodes.

Torch needs three passes over all nodes for it, each as expensive as the sums.
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
    positions,
    output,
    num_rows,
    width,
    x_row,
    output_row,
    rows: tl.constexpr,
    block: tl.constexpr,
    has_positions: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * rows + tl.arange(0, rows)
    offset = tl.program_id(1) * block + tl.arange(0, block)
    inside = row < num_rows
    cluster = tl.load(assignment + row, mask=inside, other=0)
    part = tl.load(share + cluster, mask=inside, other=0)
    both = inside[:, None] & (offset < width)[None, :]
    position = row
    if has_positions:
        position = tl.load(positions + row, mask=inside, other=-1).to(tl.int64)
    present = both & (position >= 0)[:, None]
    own = tl.load(x + position[:, None] * x_row + offset[None, :], mask=present, other=0)
    total = tl.load(sums + cluster[:, None] * width + offset[None, :], mask=both, other=0)
    goal = output + row[:, None] * output_row + offset[None, :]
    tl.store(goal, (total + own) * part[:, None], mask=both)


def gather_cluster_sums(
    x: Tensor,
    sums: Tensor,
    assignment: Tensor,
    share: Tensor,
    output: Tensor,
    positions: Tensor | None = None,
) -> Tensor:
    """Write (sum of a row's cluster + the row) * the cluster's share, for every row.

    Shapes:
        x, output: (N, d), any row stride; with positions, x has fewer rows
        sums: (K, d), share: (K, 1)
        assignment: int64, (N,)
        positions: int32, (N,), the index in x of each row, -1 for a row of zeros
    """
    num_rows, width = output.shape
    block = min(WIDEST, triton.next_power_of_2(width))
    grid = (triton.cdiv(num_rows, ROWS), triton.cdiv(width, block))
    with torch.cuda.device_of(x):
        _kernel[grid](
            *(x, sums, assignment, share, positions, output),
            *(num_rows, width, x.stride(0), output.stride(0)),
            rows=ROWS,
            block=block,
            has_positions=positions is not None,
        )
    return output
