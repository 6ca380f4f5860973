"""The network of the comparison: an encoder of one convolution, a classifier of another."""

from __future__ import annotations

from torch import Tensor, nn

from evengraph.nn.backbones import CONVS, Backbone
from evengraph.nn.layers import GraphClassifier, Noise, relu_dropout
from evengraph.ops.attach import Propagation
from evengraph.ops.propagate import Sparse


class GraphNetwork(nn.Module):
    """Convolution, ReLU, dropout; convolution, ReLU, dropout, linear layer.

    Args:
        num_features: F.
        hidden: Width of both convolutions.
        num_classes: C.
        dropout: Share of activations dropped after each.
        backbone: The kind of both convolutions.

    Shapes:
        x: (N, F)
        propagation: (N, N), already normalised
        returns: (N, C)
    """

    def __init__(
        self,
        num_features: int,
        hidden: int,
        num_classes: int,
        dropout: float,
        backbone: Backbone = "gcn",
    ) -> None:
        super().__init__()
        conv = CONVS[backbone]
        self.encoder = conv(num_features, hidden)
        self.classifier = GraphClassifier(hidden, hidden, num_classes, dropout, conv)
        self.dropout = dropout
        self.noise: Noise | None = None

    def forward(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        """Logits of all nodes, without dropout."""
        return self.classify(self.encoder(x, propagation), propagation)

    def embed(self, first: Tensor, *, dropout: bool = False) -> Tensor:
        """Embeddings from the encoder's output before its activation."""
        return relu_dropout(first, self.dropout, training=dropout, noise=self.noise)

    def classify(self, first: Tensor, propagation: Propagation, *, dropout: bool = False) -> Tensor:
        """Logits from the encoder's output before its activation.

        There is no dropout before that, so a pass with dropout and one without can share it.
        """
        logits: Tensor = self.classifier(
            self.embed(first, dropout=dropout), propagation, dropout=dropout
        )
        return logits
