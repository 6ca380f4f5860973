"""Signatures of the nodes of a graph on disk, to recognise those of training."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from evengraph.disk.propagation import SHARE, Operator, Workspace, unweighted
from evengraph.disk.tables import Table, row_slices
from evengraph.ops.features import (
    feature_signatures,
    join_signatures,
    matching_signatures,
    sent_signatures,
)
from evengraph.ops.sparse import csr, product


def known_nodes(x: Table, space: Workspace, before: Tensor) -> Tensor:
    """Mask of the first nodes: whether their features and neighbours are those of training.

    Shapes:
        before: `node_signatures` of training, (M, 6)
        returns: bool, (n,), where n is at most M and at most the number of nodes
    """
    size = min(x.shape[0], len(before))
    sent = torch.empty(x.shape[0], 3, dtype=torch.float64)  # 24 bytes per node, whatever the limit
    for rows in row_slices(x.shape[0]):
        sent[rows] = sent_signatures(feature_signatures(x.read(rows)), rows.start)
    links, same = Operator(unweighted(space.links), "mean"), torch.empty(size, dtype=torch.bool)
    for rows in links.blocks(int(SHARE * space.memory)):
        if rows.start >= size:
            break
        rows = slice(rows.start, min(rows.stop, size))
        features = [feature_signatures(x.read(some)) for some in _parts(rows)]
        signatures = join_signatures(torch.cat(features), _sums(links.block(rows), sent))
        same[rows] = matching_signatures(signatures, before[rows])
    return same


def _parts(rows: slice) -> Iterator[slice]:
    """Slices that cover some rows in order."""
    for some in row_slices(rows.stop - rows.start):
        yield slice(rows.start + some.start, rows.start + some.stop)


def _sums(block: Tensor, values: Tensor) -> Tensor:
    """Sums over the neighbours of the nodes of a block, (n, d)."""
    ones = torch.ones_like(block.values(), dtype=values.dtype)
    shape = (block.shape[0], block.shape[1])
    return product(csr(block.crow_indices(), block.col_indices(), ones, shape), values)
