"""Layers that methods share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from evengraph.fast.dropout import Noise, Share, relu_dropout
from evengraph.ops.sparse import Sparse
from evengraph.ops.synthesis import Propagation

Init = Callable[[Tensor, Tensor], None]
"""Initialises a weight, (inputs, outputs), and a bias, (outputs,), in place."""


def uniform_by_outputs(weight: Tensor, bias: Tensor) -> None:
    """Uniform in +- 1 / sqrt(outputs), as in the public code of the comparison methods."""
    _uniform(weight, bias, bias.numel() ** -0.5)


def uniform_by_inputs(weight: Tensor, bias: Tensor) -> None:
    """Uniform in +- 1 / sqrt(inputs), the default of torch's linear layers."""
    _uniform(weight, bias, weight.shape[0] ** -0.5)


def glorot(weight: Tensor, bias: Tensor) -> None:
    """Glorot uniform weights and a zero bias, the default of PyG's convolutions."""
    nn.init.xavier_uniform_(weight)
    nn.init.zeros_(bias)


def _uniform(weight: Tensor, bias: Tensor, bound: float) -> None:
    nn.init.uniform_(weight, -bound, bound)
    nn.init.uniform_(bias, -bound, bound)


class Convolution(nn.Module, ABC):
    """A graph convolution: a product row by row, then everything that needs the graph.

    Shapes:
        x: (N, inputs), dense or sparse
        propagation: (N, N), already normalised
        returns: (N, outputs)
    """

    weight: nn.Parameter

    def forward(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        """Project, then propagate."""
        return self.propagate(self.project(x), propagation)

    def project(self, x: Tensor | Sparse) -> Tensor:
        """x W, row by row."""
        return x @ self.weight

    @abstractmethod
    def propagate(self, projected: Tensor, propagation: Propagation) -> Tensor:
        """Combine the projected rows over the graph."""


class GraphConv(Convolution):
    """GCN's convolution, P x W + b: transform, then propagate the narrower product."""

    def __init__(self, inputs: int, outputs: int, init: Init = uniform_by_outputs) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        init(self.weight, self.bias)

    def propagate(self, projected: Tensor, propagation: Propagation) -> Tensor:
        """P times the projected rows, plus the bias."""
        return propagation @ projected + self.bias.unsqueeze(-2)


class GraphClassifier(nn.Module):
    """A graph convolution, ReLU, dropout and a linear layer.

    Shapes:
        x: (N, inputs)
        returns: (N, C)
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        num_classes: int,
        dropout: float,
        conv: Callable[[int, int], nn.Module] = GraphConv,
    ) -> None:
        super().__init__()
        self.conv: Any = conv(inputs, hidden)
        self.linear = nn.Linear(hidden, num_classes)
        nn.init.normal_(self.linear.weight, std=0.05)
        self.dropout = dropout
        self.noise: Noise | None = None

    def forward(
        self,
        x: Tensor,
        propagation: Propagation,
        *,
        dropout: bool,
        nodes: Tensor | None = None,
        share: Share | None = None,
    ) -> Tensor:
        """Logits of all nodes, or of the rows of the propagation matrix."""
        return self._output(self.conv(x, propagation), dropout, nodes, share)

    def classify_propagated(self, x: Tensor, *, dropout: bool) -> Tensor:
        """Logits from P x, for a GCN convolution whose constant input is propagated only once.

        Shapes:
            x: (M, inputs), rows of the nodes to classify
            returns: (M, C)
        """
        return self._output(x @ self.conv.weight + self.conv.bias.unsqueeze(-2), dropout)

    def _output(
        self,
        convolved: Tensor,
        dropout: bool,
        nodes: Tensor | None = None,
        share: Share | None = None,
    ) -> Tensor:
        hidden = relu_dropout(
            convolved, self.dropout, training=dropout, noise=self.noise, nodes=nodes, share=share
        )
        # weights may have a leading axis: one layer per replica
        weight, bias = self.linear.weight.transpose(-1, -2), self.linear.bias.unsqueeze(-2)
        return hidden @ weight + bias
