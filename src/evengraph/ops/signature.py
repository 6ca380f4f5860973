"""Signatures of nodes: enough to tell whether a node is one seen before, without keeping it."""

from __future__ import annotations

import torch
from torch import Tensor

from evengraph.ops.propagate import undirected_adjacency
from evengraph.ops.sparse import Sparse

TURNS = (0.7548776662466927, 0.5698402909980532)  # of a circle, from one place to the next
CLOSE = 1e-5  # features that went through a table, or another machine, differ in their last digits


def feature_signatures(x: Tensor) -> Tensor:
    """Two fixed sums over the features of each node, and the length of its row.

    Nodes with other features have, all but surely, other sums; the features cannot be read off.

    Shapes:
        x: (N, F)
        returns: float64, (N, 3)
    """
    directions = _waves(x.shape[1], x.device)
    parts = []
    for rows in x.float().split(2**16):
        rows = rows.double()
        parts.append(torch.cat([rows @ directions, rows.norm(dim=1, keepdim=True)], dim=1))
    return torch.cat(parts)


def node_signatures(x: Tensor, edge_index: Tensor) -> Tensor:
    """Signatures that change with a node's features, with its neighbours and with theirs.

    Edges are read in both directions; repeats and self-loops do not count, nor does the order.

    Shapes:
        x: (N, F)
        edge_index: (2, E)
        returns: float64, (N, 6)
    """
    own, num_nodes = feature_signatures(x), x.shape[0]
    matrix = undirected_adjacency(edge_index, num_nodes)
    neighbours = Sparse.from_scipy(matrix, x.device, torch.float64)
    sums, length = own.split([2, 1], dim=1)
    sent = torch.cat([sums + _waves(num_nodes, x.device), length.square() + 1], dim=1)
    around, scale = (neighbours @ sent).split([2, 1], dim=1)
    return torch.cat([own, around, scale.sqrt()], dim=1)


def matching_signatures(signatures: Tensor, before: Tensor) -> Tensor:
    """Which nodes stand where they stood before, with the signature that they had.

    Shapes:
        signatures: (N, d), before: (M, d)
        returns: bool, (N,)
    """
    same = torch.zeros(signatures.shape[0], dtype=torch.bool, device=signatures.device)
    both = min(signatures.shape[0], before.shape[0])
    sums = before[:both].to(signatures).unflatten(1, (-1, 3))  # two sums and their scale
    gap = (signatures[:both].unflatten(1, (-1, 3)) - sums).abs()
    same[:both] = (gap <= CLOSE * sums[..., 2:]).flatten(1).all(dim=1)
    return same


def _waves(size: int, device: torch.device) -> Tensor:
    """Numbers between -1 and 1 that never repeat, the same on every machine, (size, 2)."""
    places = torch.arange(1, size + 1, dtype=torch.float64).unsqueeze(1)
    turns = torch.tensor(TURNS, dtype=torch.float64)
    return (2 * torch.pi * (places * turns).frac()).cos().to(device)
