"""Signatures of nodes: recognise nodes of the training graph without storing them."""

from __future__ import annotations

import torch
from torch import Tensor

from evengraph.ops.propagate import undirected_adjacency
from evengraph.ops.sparse import Sparse

TURNS = (0.7548776662466927, 0.5698402909980532)  # of a circle, from one index to the next
CLOSE = 1e-5  # tolerance for features that went through a table or another machine


def feature_signatures(x: Tensor) -> Tensor:
    """Two fixed weighted sums over the features of each node, and the norm of its row.

    Different features almost surely have different sums; features cannot be recovered from them.

    Shapes:
        x: (N, F)
        returns: float64, (N, 3)
    """
    directions = _waves(x.shape[1], x.device)
    parts = []
    for rows in x.float().split(2**12):
        rows = rows.double()
        parts.append(torch.cat([rows @ directions, rows.norm(dim=1, keepdim=True)], dim=1))
    return torch.cat(parts)


def node_signatures(x: Tensor, edge_index: Tensor) -> Tensor:
    """Signatures that change with a node's features, its neighbours and their features.

    Edges are read in both directions; repeats, self-loops and the order do not matter.

    Shapes:
        x: (N, F)
        edge_index: (2, E)
        returns: float64, (N, 6)
    """
    features, num_nodes = feature_signatures(x), x.shape[0]
    matrix = undirected_adjacency(edge_index, num_nodes)
    neighbours = Sparse.from_scipy(matrix, x.device, torch.float64)
    return join_signatures(features, neighbours @ sent_signatures(features))


def sent_signatures(features: Tensor, start: int = 0) -> Tensor:
    """What nodes from an index on add to the signatures of their neighbours, (n, 3)."""
    sums, length = features.split([2, 1], dim=1)
    waves = _waves(len(features), features.device, start)
    return torch.cat([sums + waves, length.square() + 1], dim=1)


def join_signatures(features: Tensor, received: Tensor) -> Tensor:
    """Signatures of nodes from those of their features and the sums of `sent_signatures`."""
    around, scale = received.split([2, 1], dim=1)
    return torch.cat([features, around, scale.sqrt()], dim=1)


def matching_signatures(signatures: Tensor, before: Tensor) -> Tensor:
    """Mask of the nodes whose signature equals the earlier one at the same index.

    Shapes:
        signatures: (N, d), before: (M, d)
        returns: bool, (N,)
    """
    same = torch.zeros(signatures.shape[0], dtype=torch.bool, device=signatures.device)
    size = min(signatures.shape[0], before.shape[0])
    sums = before[:size].to(signatures).unflatten(1, (-1, 3))  # two sums and their scale
    gap = (signatures[:size].unflatten(1, (-1, 3)) - sums).abs()
    same[:size] = (gap <= CLOSE * sums[..., 2:]).flatten(1).all(dim=1)
    return same


def _waves(size: int, device: torch.device, start: int = 0) -> Tensor:
    """Fixed, non-repeating numbers between -1 and 1, of indices from `start` on, (size, 2)."""
    index = torch.arange(start + 1, start + size + 1, dtype=torch.float64).unsqueeze(1)
    turns = torch.tensor(TURNS, dtype=torch.float64)
    return (2 * torch.pi * (index * turns).frac()).cos().to(device)
