"""Edge decoders: scores of pairs of embeddings, and a loss to learn them from a graph."""

from __future__ import annotations

import scipy.sparse as sp
import torch
from torch import Tensor, nn

from evengraph.ops.sparse import take


class EdgeDecoder(nn.Module):
    """Scores pairs of embeddings: sigmoid(h W (h' W)^T); W starts uniform in +- 1 / sqrt(width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        bound = width**-0.5
        self.weight = nn.Parameter(torch.empty(width, width).uniform_(-bound, bound))

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        """Scores of pairs, row by row.

        Shapes:
            one, other: (K, width)
            returns: (K,)
        """
        return ((one @ self.weight) * (other @ self.weight)).sum(1).sigmoid()

    def among(self, embeddings: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        """Scores of pairs of nodes; each node is transformed once.

        Shapes:
            embeddings: (N, width)
            sources, targets: (K,)
            returns: (K,)
        """
        projected = embeddings @ self.weight
        return (take(projected, sources) * take(projected, targets)).sum(1).sigmoid()


class Reconstruction:
    """Loss of a decoder that separates the edges of a graph from other pairs of nodes.

    The loss over all N^2 pairs is |E| (mean over edges of (1 - s)^2 + mean over other pairs of
    s^2), self-loops included. Here the second mean is over as many random pairs as edges, drawn
    at each call, which is unbiased unless only edges are drawn. A graph with more edges than
    `limit` samples its edges as well.

    Args:
        adjacency: The graph, binary and symmetric, without self-loops.
        device: Device of the embeddings.
        limit: Maximum number of pairs of either kind.
    """

    def __init__(self, adjacency: sp.spmatrix, device: torch.device, limit: int = 2**17) -> None:
        self.num_nodes, self.limit = adjacency.shape[0], limit
        looped = (adjacency + sp.identity(self.num_nodes, format="csr")).tocoo()
        rows, columns = (torch.from_numpy(part).long() for part in (looped.row, looped.col))
        self.edges = (rows * self.num_nodes + columns).sort().values.to(device)  # one key per edge

    def __call__(self, decoder: EdgeDecoder, embeddings: Tensor) -> Tensor:
        """The loss for these embeddings, with gradients."""
        edges, others, is_other = self._draw()
        pairs = torch.cat([edges, others])
        scores = decoder.among(embeddings, pairs // self.num_nodes, pairs % self.num_nodes)
        on_edges, on_others = scores.tensor_split([edges.numel()])
        missed = (1 - on_edges).square().mean()
        invented = (on_others.square() * is_other).sum() / is_other.sum().clamp(min=1)
        loss: Tensor = self.edges.numel() * (missed + invented)
        return loss

    def _draw(self) -> tuple[Tensor, Tensor, Tensor]:
        """Edges, random pairs, and a mask of the pairs that are not edges."""
        size, device = self.edges.numel(), self.edges.device
        edges = self.edges
        if size > self.limit:
            edges = edges[torch.randint(size, (self.limit,), device=device)]
        others = torch.randint(self.num_nodes**2, (edges.numel(),), device=device)
        index = torch.searchsorted(self.edges, others).clamp(max=size - 1)
        return edges, others, self.edges[index] != others
