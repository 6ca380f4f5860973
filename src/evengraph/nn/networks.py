"""The two networks that methods train: with a convolutional classifier, or of two convolutions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import scipy.sparse as sp
import torch
from torch import Tensor, nn

from evengraph.fast.dropout import Noise, Share, relu_dropout
from evengraph.nn.backbones import CONVS, Backbone
from evengraph.nn.layers import GraphClassifier
from evengraph.ops.sparse import Sparse, take
from evengraph.ops.synthesis import Propagation


class Inputs(NamedTuple):
    """What a network takes of a graph.

    Shapes:
        x: (N, F)
        propagation: (N, N), already normalised
    """

    x: Tensor | Sparse
    propagation: Propagation


class _Network(nn.Module, ABC):
    """An encoder and what follows it: `Inputs` to logits, (N, C)."""

    def __init__(self, encoder: nn.Module, dropout: float) -> None:
        super().__init__()
        self.encoder, self.dropout = encoder, dropout
        self.noise: Noise | None = None

    def forward(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        """Logits of all nodes, without dropout."""
        return self.classify(self.encoder(x, propagation), propagation)

    def embed(self, first: Tensor, *, dropout: bool = False, share: Share | None = None) -> Tensor:
        """Embeddings from the encoder's output before its activation."""
        return relu_dropout(first, self.dropout, training=dropout, noise=self.noise, share=share)

    @abstractmethod
    def classify(
        self,
        first: Tensor,
        propagation: Propagation,
        *,
        dropout: bool = False,
        share: Share | None = None,
    ) -> Tensor:
        """Logits from the encoder's output before its activation.

        No dropout precedes it, so a pass with dropout and one without can share the encoder.
        `share` is as in `relu_dropout`.
        """


class GraphNetwork(_Network):
    """The network of the paper's comparison.

    Convolution, ReLU, dropout; convolution, ReLU, dropout, linear layer.
    """

    def __init__(
        self,
        num_features: int,
        hidden: int,
        num_classes: int,
        dropout: float,
        backbone: Backbone = "gcn",
    ) -> None:
        conv = CONVS[backbone]
        super().__init__(conv(num_features, hidden), dropout)
        self.classifier = GraphClassifier(hidden, hidden, num_classes, dropout, conv)

    def classify(
        self,
        first: Tensor,
        propagation: Propagation,
        *,
        dropout: bool = False,
        share: Share | None = None,
    ) -> Tensor:
        """See `_Network.classify`."""
        embeddings = self.embed(first, dropout=dropout, share=share)
        logits: Tensor = self.classifier(embeddings, propagation, dropout=dropout, share=share)
        return logits


class PlainNetwork(_Network):
    """The network of papers on public splits: two layers, with weight decay on the first only.

    `first` and `last` build a convolution, or another layer of its signature, from two widths.
    """

    def __init__(
        self,
        first: Callable[[int, int], nn.Module],
        last: Callable[[int, int], nn.Module],
        num_features: int,
        hidden: int,
        num_classes: int,
        dropout: float,
    ) -> None:
        super().__init__(first(num_features, hidden), dropout)
        self.last = last(hidden, num_classes)
        self.last.decays = False  # type: ignore[assignment]

    def classify(
        self,
        first: Tensor,
        propagation: Propagation,
        *,
        dropout: bool = False,
        share: Share | None = None,
    ) -> Tensor:
        """See `_Network.classify`."""
        logits: Tensor = self.last(self.embed(first, dropout=dropout, share=share), propagation)
        return logits


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
