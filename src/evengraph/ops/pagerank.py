"""Personalised PageRank: what spreads from some nodes over a graph, without its inverse."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from evengraph.ops.sparse import Sparse, csr

TOLERANCE = 1e-8  # share that is left out
BLOCK_ENTRIES = 2**24  # numbers that are held at one time


def personalised_pagerank(propagation: Sparse, x: Tensor, teleport: float) -> Tensor:
    """The product of teleport (I - (1 - teleport) P)^-1 with some columns, by its power series.

    A walk starts anew with probability `teleport` at every step, so that steps beyond some dozens
    are all but never reached.

    Args:
        propagation: P, with a spectral radius of at most one.
        x: The columns.
        teleport: In (0, 1].

    Shapes:
        propagation: (N, N)
        x, returns: (N, d)
    """
    steps = math.ceil(math.log(TOLERANCE) / math.log1p(-teleport)) if teleport < 1 else 0
    spread = x
    for _ in range(steps):
        spread = (1 - teleport) * (propagation @ spread) + teleport * x
    return spread


@torch.no_grad()
def pagerank_rows(propagation: Sparse, nodes: Tensor, *, teleport: float, keep: int) -> Tensor:
    """The largest entries of some rows of teleport (I - (1 - teleport) P)^-1, for a symmetric P.

    Only the rows asked for are ever held, a block at a time.

    Args:
        propagation: P, its own transpose.
        nodes: Rows.
        teleport: In (0, 1].
        keep: Entries kept of each row; zeros are no entries.

    Shapes:
        propagation: (N, N)
        nodes: (n,)
        returns: sparse CSR, (n, N)
    """
    num_nodes = propagation.shape[0]
    columns, values = [nodes.new_empty(0)], [torch.empty(0, device=nodes.device)]
    ends = [nodes.new_zeros(1)]
    for block in nodes.split(max(BLOCK_ENTRIES // num_nodes, 1)) if nodes.numel() else ():
        home = torch.zeros(num_nodes, block.numel(), device=nodes.device)
        home[block, torch.arange(block.numel(), device=nodes.device)] = 1
        rank = personalised_pagerank(propagation, home, teleport)
        top = rank.t().topk(min(keep, num_nodes), dim=1)
        held = top.values > 0
        columns.append(top.indices[held])
        values.append(top.values[held])
        ends.append(ends[-1][-1] + held.sum(1).cumsum(0))
    shape = (nodes.numel(), num_nodes)
    return csr(torch.cat(ends), torch.cat(columns), torch.cat(values), shape)
