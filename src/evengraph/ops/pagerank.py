"""Personalised PageRank: what spreads from some nodes over a graph, without its inverse."""

from __future__ import annotations

import math

from torch import Tensor

from evengraph.ops.propagate import Sparse

TOLERANCE = 1e-8  # share that is left out


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
