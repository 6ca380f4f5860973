"""Two convolutions and nothing after them: the network of the papers on public splits."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from evengraph.nn.layers import Noise, relu_dropout
from evengraph.ops.attach import Propagation
from evengraph.ops.propagate import Sparse


class PlainNetwork(nn.Module):
    """A layer, ReLU, dropout and another layer, whose weights do not decay.

    Args:
        first: Makes a convolution, or another layer of the same signature, from two widths.
        last: Makes the other one.
        num_features: F.
        hidden: Width between the layers.
        num_classes: C.
        dropout: Share of activations dropped between them.

    Shapes:
        x: (N, F)
        propagation: (N, N), already normalised
        returns: (N, C)
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
        super().__init__()
        self.encoder, self.last = first(num_features, hidden), last(hidden, num_classes)
        self.last.decays = False  # type: ignore[assignment]
        self.dropout = dropout
        self.noise: Noise | None = None

    def forward(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        """Logits of all nodes, without dropout."""
        return self.classify(self.encoder(x, propagation), propagation)

    def classify(self, first: Tensor, propagation: Propagation, *, dropout: bool = False) -> Tensor:
        """Logits from the first layer's output before its activation."""
        hidden = relu_dropout(first, self.dropout, training=dropout, noise=self.noise)
        logits: Tensor = self.last(hidden, propagation)
        return logits
