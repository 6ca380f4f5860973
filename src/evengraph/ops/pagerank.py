"""Personalised PageRank by power series, without a matrix inverse."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from evengraph.ops.sparse import Sparse, csr

TOLERANCE = 1e-8  # truncated share
BLOCK_ENTRIES = 2**24  # numbers in memory at a time


def personalised_pagerank(propagation: Sparse, x: Tensor, teleport: float) -> Tensor:
    """The product of teleport (I - (1 - teleport) P)^-1 with a matrix, by its power series.

    A walk restarts with probability `teleport` at every step, so a few dozen steps suffice.

    Shapes:
        propagation: P, with a spectral radius of at most one, (N, N)
        x, returns: (N, d)
    """
    steps = math.ceil(math.log(TOLERANCE) / math.log1p(-teleport)) if teleport < 1 else 0
    spread = x
    for _ in range(steps):
        spread = (1 - teleport) * (propagation @ spread) + teleport * x
    return spread


@torch.no_grad()
def pagerank_rows(propagation: Sparse, nodes: Tensor, *, teleport: float, keep: int) -> Tensor:
    """The largest entries of selected rows of teleport (I - (1 - teleport) P)^-1, P symmetric.

    Only the selected rows are computed, a block at a time. Each keeps its `keep` largest entries,
    without zeros.

    Shapes:
        propagation: (N, N)
        nodes: (n,), rows to compute
        returns: sparse CSR, (n, N)
    """
    num_nodes = propagation.shape[0]
    columns, values = [nodes.new_empty(0)], [torch.empty(0, device=nodes.device)]
    ends = [nodes.new_zeros(1)]
    for block in nodes.split(max(BLOCK_ENTRIES // num_nodes, 1)) if nodes.numel() else ():
        start = torch.zeros(num_nodes, block.numel(), device=nodes.device)
        start[block, torch.arange(block.numel(), device=nodes.device)] = 1
        rank = personalised_pagerank(propagation, start, teleport)
        top = rank.t().topk(min(keep, num_nodes), dim=1)
        positive = top.values > 0
        columns.append(top.indices[positive])
        values.append(top.values[positive])
        ends.append(ends[-1][-1] + positive.sum(1).cumsum(0))
    shape = (nodes.numel(), num_nodes)
    return csr(torch.cat(ends), torch.cat(columns), torch.cat(values), shape)
