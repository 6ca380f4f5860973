"""Personalised PageRank: where a walk that keeps coming home spends its time."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from evengraph.ops.propagate import Sparse, csr, product

BLOCK_ENTRIES = 2**24  # numbers that are held at one time


@torch.no_grad()
def pagerank_rows(
    propagation: Sparse, nodes: Tensor, *, teleport: float, keep: int, tolerance: float = 1e-4
) -> Tensor:
    """The largest entries of some rows of t (I - (1 - t) P)^-1, for a symmetric P.

    Row v is the sum of t (1 - t)^k P^k over all k, taken up to a remainder below the tolerance.
    Only the rows asked for are ever held, a block at a time, and never an N x N matrix.

    Args:
        propagation: P, its own transpose.
        nodes: Rows.
        teleport: t, the chance of coming home at each step.
        keep: Entries kept of each row, the largest; zeros are no entries.
        tolerance: Share of the sum that may be left out.

    Shapes:
        propagation: (N, N)
        nodes: (n,)
        returns: sparse CSR, (n, N)
    """
    num_nodes, device = propagation.shape[0], nodes.device
    keep = min(keep, num_nodes)
    steps = math.ceil(math.log(tolerance) / math.log(1 - teleport)) if teleport < 1 else 0
    columns, values = [], []
    for block in nodes.split(max(BLOCK_ENTRIES // num_nodes, 1)):
        home = torch.zeros(num_nodes, block.numel(), device=device)
        home[block, torch.arange(block.numel(), device=device)] = 1
        rank = teleport * home
        for _ in range(steps):
            rank = (1 - teleport) * product(propagation.matrix, rank, propagation.pieces)
            rank += teleport * home
        top = rank.t().topk(keep, dim=1)
        columns.append(top.indices)
        values.append(top.values)
    shape = (nodes.numel(), num_nodes)
    if not columns:
        nothing = nodes.new_empty(0)
        return csr(nodes.new_zeros(1), nothing, nothing.float(), shape)
    held = torch.cat(values).flatten()
    ends = (torch.cat(values) > 0).sum(1).cumsum(0)
    pointers = torch.cat([ends.new_zeros(1), ends])
    return csr(pointers, torch.cat(columns).flatten()[held > 0], held[held > 0], shape)
