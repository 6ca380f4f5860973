"""How the agreement of a committee relates to being right."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

EDGES = (0.0, 0.5, 0.75, 0.95)
"""Lower ends of the bands of agreement; the last one holds predictions that (almost) all share."""


def agreement_bands(agreement: Tensor, correct: Tensor) -> list[dict[str, Any]]:
    """Count nodes, and those that are predicted correctly, per band of agreement.

    Bands without nodes are left out. Weights of votes are rounded, so that a band begins slightly
    below its edge.

    Shapes:
        agreement: (M,), between 0 and 1
        correct: bool, (M,)
    """
    edges = torch.tensor(EDGES[1:], dtype=torch.float64, device=agreement.device) - 1e-6
    bands = torch.bucketize(agreement.double(), edges, right=True)
    counts = torch.bincount(bands, minlength=len(EDGES)).tolist()
    hits = torch.bincount(bands[correct], minlength=len(EDGES)).tolist()
    return [
        {"from": low, "nodes": nodes, "correct": right}
        for low, nodes, right in zip(EDGES, counts, hits, strict=True)
        if nodes
    ]
