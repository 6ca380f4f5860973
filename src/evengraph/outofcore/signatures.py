"""Signatures of the nodes of a graph on disk, to recognise those of training."""

from __future__ import annotations

import torch
from torch import Tensor

from evengraph.ops.signature import (
    feature_signatures,
    join_signatures,
    matching_signatures,
    sent_signatures,
)
from evengraph.ops.sparse import csr, product
from evengraph.outofcore.operators import Operator, unweighted
from evengraph.outofcore.propagation import SHARE, Workspace
from evengraph.outofcore.tables import Table, row_slices


def known_nodes(x: Table, space: Workspace, before: Tensor) -> Tensor:
    """Mask of the first nodes: whether their features and neighbours are those of training.

    Shapes:
        before: `node_signatures` of training, (M, 6)
        returns: bool, (n,), where n is at most M and at most the number of nodes
    """
    size = min(x.shape[0], len(before))
    features = torch.empty(size, 3, dtype=torch.float64)
    sent = torch.empty(x.shape[0], 3, dtype=torch.float64)
    for rows in row_slices(x.shape[0]):
        values = feature_signatures(x.read(rows))
        features[rows] = values[: max(size - rows.start, 0)]
        sent[rows] = sent_signatures(values, rows.start)
    signatures = join_signatures(features, _sums(space, sent, size))
    return matching_signatures(signatures, before[:size])


def _sums(space: Workspace, values: Tensor, size: int) -> Tensor:
    """Sums over the neighbours of the first nodes, (n, d)."""
    links = Operator(unweighted(space.links), "mean")
    sums = torch.empty(size, values.shape[1], dtype=values.dtype)
    for rows in links.blocks(int(SHARE * space.memory)):
        if rows.start >= size:
            break
        block = links.block(rows)
        ones = torch.ones_like(block.values(), dtype=values.dtype)
        shape = (block.shape[0], block.shape[1])
        around = product(csr(block.crow_indices(), block.col_indices(), ones, shape), values)
        sums[rows] = around[: size - rows.start]
    return sums
