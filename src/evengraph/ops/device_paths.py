"""Shortest paths of a graph on a GPU, by sorting the walks of a block of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.ops.sparse import csr, row_entries
from evengraph.ops.thinning import Thinning

Block = tuple[Tensor, Tensor, Tensor]
"""Entries per row, (n,), and column and weight of each entry, row by row."""


class DevicePaths:
    """`evengraph.ops.structural.Paths` of a CSR tensor."""

    def __init__(self, matrix: Tensor, alpha: int) -> None:
        self.matrix, self.alpha, self.direct = matrix, alpha, matrix.col_indices().numel()
        self.walks = self._walks().cpu().numpy()

    def _walks(self) -> Tensor:
        pointers, columns = self.matrix.crow_indices().long(), self.matrix.col_indices()
        count = torch.ones(self.matrix.shape[0], dtype=torch.float64, device=columns.device)
        for _ in range(self.alpha):
            total = torch.cat([count.new_zeros(1), count[columns.long()].cumsum(0)])
            count = count + total[pointers[1:]] - total[pointers[:-1]]
        return count

    def weights(self, rows: NDArray[np.int64], thinning: Thinning | None = None) -> Block:
        """One over the distances."""
        keys, counts = self._nearness(rows)
        row, columns = keys // self.matrix.shape[1], keys % self.matrix.shape[1]
        weights = 1 / (self.alpha + 1 - counts).float()
        if thinning is not None:
            nodes = torch.from_numpy(rows).to(row.device)[row]
            keep, weights = thinning(nodes, columns, weights)
            row, columns, weights = row[keep], columns[keep], weights[keep]
        return torch.bincount(row, minlength=rows.size), columns.int(), weights

    def count(self, rows: NDArray[np.int64]) -> int:
        """The entries have to be found."""
        return self._nearness(rows)[0].numel()

    def join(self, blocks: Sequence[Block]) -> Tensor:
        """Blocks one below the other."""
        if not blocks:
            return self.matrix
        per_row, columns, weights = (torch.cat(parts) for parts in zip(*blocks, strict=True))
        pointers = torch.cat([per_row.new_zeros(1), per_row.cumsum(0)])
        size = self.matrix.shape[0]
        return csr(pointers, columns, weights, (size, size))

    def _nearness(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Index of the row times N plus the node, sorted, and alpha + 1 - distance.

        Of the nested sets of nodes within 1, 2, ... alpha steps, it counts those with the node.
        """
        size, columns = self.matrix.shape[1], self.matrix.col_indices()
        nodes = torch.from_numpy(rows).to(columns.device)
        own = torch.arange(rows.size, device=columns.device) * size + nodes
        reached, sets = own, []
        for _ in range(self.alpha):
            owner, positions = row_entries(self.matrix, reached % size)
            further = reached[owner] // size * size + columns[positions]
            reached = torch.unique(torch.cat([reached, further]))
            sets.append(reached)
        keys, counts = torch.unique(torch.cat(sets), return_counts=True)
        other = keys % size != nodes[keys // size]
        return keys[other], counts[other]
