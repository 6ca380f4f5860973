"""Triton kernels: Adam, dropout and sparse products of replicas.

Adam is one pass that also saves the best weights; torch's fused one counts steps per tensor.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from evengraph.fast.row_chunks import RowChunks

BLOCK = 1024


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    weight,
    gradient,
    mean,
    square,
    best_weight,
    is_best,
    rate,
    root,
    size,
    weight_decay,
    first_gain,
    second_gain,
    epsilon,
    block: tl.constexpr,
):
    replica = tl.program_id(1).to(tl.int64)
    index = tl.program_id(0) * block + tl.arange(0, block)
    inside = index < size
    index = replica * size + index
    value = tl.load(weight + index, mask=inside, other=0)
    if tl.load(is_best + replica) != 0:
        tl.store(best_weight + index, value, mask=inside)
    pull = tl.load(gradient + index, mask=inside, other=0) + weight_decay * value
    average = tl.load(mean + index, mask=inside, other=0)
    average += first_gain * (pull - average)
    spread = tl.load(square + index, mask=inside, other=0)
    spread += second_gain * (pull * pull - spread)
    scale = tl.sqrt(spread) / tl.load(root + replica) + epsilon
    tl.store(mean + index, average, mask=inside)
    tl.store(square + index, spread, mask=inside)
    tl.store(weight + index, value - tl.load(rate + replica) * average / scale, mask=inside)


def fused_adam_step(
    weight: Tensor,
    gradient: Tensor,
    *state: Tensor,
    weight_decay: float,
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """`evengraph.fast.adam.adam_step` as one kernel; `state` holds its other tensors."""
    mean, square, best_weight, is_best, rate, root = state
    size = weight[0].numel()
    with torch.cuda.device_of(weight):
        _kernel[(triton.cdiv(size, BLOCK), weight.shape[0])](
            *(weight, gradient.contiguous(), mean, square, best_weight),
            *(is_best.view(torch.uint8), rate, root, size, weight_decay),
            *(1 - betas[0], 1 - betas[1], epsilon),
            block=BLOCK,
        )


ROWS = 16  # of a block
WIDEST = 128  # columns of a block


@triton.jit  # type: ignore[untyped-decorator]
def _kernel_of_cluster_gather(  # type: ignore[no-untyped-def]
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
    """Write (sum of a row's cluster + the row) * the cluster's share, for every row."""
    # `positions` are the index in x of each row, int32, (N,), -1 for a row of zeros
    num_rows, width = output.shape
    block = min(WIDEST, triton.next_power_of_2(width))
    grid = (triton.cdiv(num_rows, ROWS), triton.cdiv(width, block))
    with torch.cuda.device_of(x):
        _kernel_of_cluster_gather[grid](
            *(x, sums, assignment, share, positions, output),
            *(num_rows, width, x.stride(0), output.stride(0)),
            rows=ROWS,
            block=block,
            has_positions=positions is not None,
        )
    return output


STRIDE = 0x632BE59BD9B4E019  # odd: the calls of one stream start far apart


@triton.jit  # type: ignore[untyped-decorator]
def _kernel_of_dropout(  # type: ignore[no-untyped-def]
    x,
    output,
    seeds,
    calls,
    nodes,
    size,
    width,
    rate,
    scale,
    stride: tl.constexpr,
    block: tl.constexpr,
    has_nodes: tl.constexpr,
):
    replica = tl.program_id(1).to(tl.int64)
    index = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = index < size
    seed = tl.load(seeds + replica) + tl.load(calls + replica) * stride
    number = index.to(tl.int32)  # numbers repeat after 2^32 values
    if has_nodes:
        row = replica * (size // width) + index // width
        number = (tl.load(nodes + row, mask=inside, other=0) * width + index % width).to(tl.int32)
    passes = tl.rand(seed, number) >= rate
    value = tl.load(x + replica * size + index, mask=inside, other=0)
    value = tl.where(value <= 0, 0.0, value * scale)  # NaN stays NaN
    value = tl.where(passes, value, 0.0)
    tl.store(output + replica * size + index, value, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _backward_kernel(gradient, output, result, size, scale, block: tl.constexpr):  # type: ignore[no-untyped-def]
    index = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = index < size
    value = tl.load(gradient + index, mask=inside, other=0)
    passed = tl.load(output + index, mask=inside, other=0)
    tl.store(result + index, tl.where(passed == 0, 0.0, value * scale), mask=inside)


def replica_dropout_backward(gradient: Tensor, output: Tensor, scale: float) -> Tensor:
    """The scaled gradient where a value passed, zero elsewhere."""
    gradient = gradient.contiguous()
    result = torch.empty_like(gradient)
    with torch.cuda.device_of(gradient):
        _backward_kernel[(triton.cdiv(result.numel(), BLOCK),)](
            gradient, output, result, result.numel(), scale, block=BLOCK
        )
    return result


def replica_dropout(
    x: Tensor, rate: float, seeds: Tensor, calls: Tensor, nodes: Tensor | None = None
) -> Tensor:
    """ReLU, then dropout; random numbers depend on a replica's seed and call count only."""
    # with `nodes`, x is a subset, (R, M, d): a node draws the same numbers as among all nodes
    x = x.contiguous()
    output = torch.empty_like(x)
    size = x[0].numel()
    with torch.cuda.device_of(x):
        _kernel_of_dropout[(triton.cdiv(size, BLOCK), x.shape[0])](
            *(x, output, seeds, calls, nodes, size, x.shape[-1], rate, 1 / (1 - rate)),
            stride=STRIDE,
            block=BLOCK,
            has_nodes=nodes is not None,
        )
    return output


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
    """Selected rows, (R, E), of the product, different ones per replica; row -1 gives zeros."""
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
    """Sparse CSR times dense; a leading axis of x stands for several products."""
    # `output` may be columns of a wider matrix; `positions` are the index in x of each row of the
    # dense factor, int32, (N,) or (R, N), -1 for a row of zeros, None if x is the complete factor
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
