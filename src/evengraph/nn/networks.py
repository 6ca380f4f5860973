"""The two networks that methods train: with a convolutional classifier, or of two convolutions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

from evengraph.core.ranks import Part
from evengraph.nn.backbones import CONVS, Backbone
from evengraph.nn.layers import GraphClassifier
from evengraph.ops.attach import Propagation
from evengraph.ops.dropout import Noise, relu_dropout
from evengraph.ops.sparse import Sparse


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

    def embed(self, first: Tensor, *, dropout: bool = False, part: Part | None = None) -> Tensor:
        """Embeddings from the encoder's output before its activation."""
        return relu_dropout(first, self.dropout, training=dropout, noise=self.noise, part=part)

    @abstractmethod
    def classify(
        self,
        first: Tensor,
        propagation: Propagation,
        *,
        dropout: bool = False,
        part: Part | None = None,
    ) -> Tensor:
        """Logits from the encoder's output before its activation.

        No dropout precedes it, so a pass with dropout and one without can share the encoder.
        `part` is as in `relu_dropout`.
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
        part: Part | None = None,
    ) -> Tensor:
        """See `_Network.classify`."""
        embeddings = self.embed(first, dropout=dropout, part=part)
        logits: Tensor = self.classifier(embeddings, propagation, dropout=dropout, part=part)
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
        part: Part | None = None,
    ) -> Tensor:
        """See `_Network.classify`."""
        logits: Tensor = self.last(self.embed(first, dropout=dropout, part=part), propagation)
        return logits
