"""Attention over the edges of a graph on disk.

Blocks of rows hold all edges of their targets, so the softmax over them is that of the whole graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from evengraph.disk.propagation import SHARE, VERSION, Operator, Strips, Workspace, unweighted
from evengraph.disk.tables import (
    ColumnTable,
    DerivedTable,
    Table,
    joined_hash,
    product_table,
)
from evengraph.nn.backbones import AttentionConv, edge_scores
from evengraph.ops.attention import EdgeList, edge_shares
from evengraph.ops.sparse import csr, product

SCORES = 8  # columns beside a strip; where heads have more, a third buffer of its columns is free


def attended_table(conv: AttentionConv, x: Table, space: Workspace, stage: str) -> Table:
    """The output of an attention layer at all nodes, without its bias."""
    values, heads = product_table(x, conv.weight.detach()), conv.heads

    def score(rows: Tensor, some: slice) -> Tensor:
        # columns: both scores of the first head, of the second one, ...
        return conv.node_scores(rows).detach().permute(1, 2, 0).flatten(1)[:, some]

    content = "scores", [conv.attention.detach()]
    scores = DerivedTable(values, score, 2 * heads, content)
    hashes = space.links.content_hash, values.content_hash, scores.content_hash
    key = joined_hash(VERSION, "attention", *hashes)
    result = ColumnTable(space.folder / key[:24], values.shape, key)
    compute = _Attention(space, result, values, stage, scores, values.shape[1] // heads)
    return space.fill(compute, beside=min(2 * heads, SCORES))


@dataclass(frozen=True, eq=False)
class _Attention(Strips):
    """Computes strips of columns: weighted means over the edges of each node.

    Args:
        scores: Those of each node as a target and as a source, two columns per head.
        width: Columns of a head.
    """

    scores: Table
    width: int

    def __call__(self, columns: slice) -> None:
        """Compute some columns, of one head or of several, and write them."""
        space, matrix = self.space, Operator(unweighted(self.space.links), "row")
        values = space.load(self.table, columns)
        heads = slice(columns.start // self.width, (columns.stop - 1) // self.width + 1)
        scores = space.load(self.scores, slice(2 * heads.start, 2 * heads.stop))
        result = torch.empty_like(values)
        total = self.table.shape[1] * len(values)
        for rows in matrix.blocks(int(SHARE * space.limit)):
            block = matrix.block(rows).to(space.device)
            for head, some in self._parts(columns):
                first = 2 * (head - heads.start)
                weighted = _attention(block, rows, *scores[:, first : first + 2].split(1, dim=1))
                result[rows, some] = product(weighted, values[:, some].contiguous())
            done = columns.start * len(values) + rows.stop * values.shape[1]
            space.progress(self.stage, done / total)
        self.result.write(columns.start, result.cpu().numpy())

    def _parts(self, columns: slice) -> Iterator[tuple[int, slice]]:
        """The heads of some columns, and where in these each of them is."""
        start = columns.start
        while start < columns.stop:
            head = start // self.width
            stop = min((head + 1) * self.width, columns.stop)
            yield head, slice(start - columns.start, stop - columns.start)
            start = stop


def _attention(block: Tensor, rows: slice, as_target: Tensor, as_source: Tensor) -> Tensor:
    """Rows of the matrix of attention of one head.

    Shapes:
        block: sparse CSR, (rows, N), whose entries are the edges
        as_target, as_source: (N, 1)
    """
    pointers, sources = block.crow_indices(), block.col_indices()
    targets = torch.repeat_interleave(pointers.diff().long())
    edges = EdgeList(targets, sources.long(), None, block.shape[0])
    shares = edge_shares(edges, edge_scores(as_target[rows], as_source, edges))
    return csr(pointers, sources, shares.squeeze(1), (block.shape[0], block.shape[1]))
