"""The layers that methods share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from evengraph.ops.attach import Propagation
from evengraph.ops.propagate import Sparse


class Noise:
    """A random stream for each of several replicas, on a card, the same however many there are.

    Every call of `relu_dropout` takes the next numbers of each stream.

    Shapes:
        seeds, calls: int64, (R,)
    """

    def __init__(self, seeds: Tensor) -> None:
        self.seeds, self.calls = seeds, torch.zeros_like(seeds)


def relu_dropout(
    x: Tensor,
    rate: float,
    *,
    training: bool,
    noise: Noise | None = None,
    nodes: Tensor | None = None,
) -> Tensor:
    """ReLU, then dropout while training, as one operation.

    On the CPU torch draws one Bernoulli number at a time, which costs more than the matrix
    products around it; there we cut random 64-bit words into bytes instead, ten times as
    fast. A rate is then met to 1/256, and the surviving values are scaled to fit.

    Args:
        x: Values.
        rate: Share that is dropped.
        training: Whether anything is dropped.
        noise: Streams to draw from, on a card.
        nodes: Which node each row belongs to, with noise and some nodes alone.

    Shapes:
        x: any; (R, N, d) with noise, (R, M, d) with nodes
        nodes: int64, (R, M)
    """
    if not training or rate == 0:
        return x.relu()
    dropped: Tensor
    if noise is not None:
        dropped = _NoisyDropout.apply(x, rate, noise, nodes)  # type: ignore[no-untyped-call]
    elif x.device.type != "cpu":
        dropped = nn.functional.dropout(x.relu(), rate)
    else:
        parts = min(round(256 * rate), 255)
        dropped = _ReluDropout.apply(x, parts)  # type: ignore[no-untyped-call]
    return dropped


class _NoisyDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float, noise: Noise, nodes: Tensor | None) -> Tensor:
        from evengraph.ops.dropout import replica_dropout

        ctx.scale = 1 / (1 - rate)
        output = replica_dropout(x, rate, noise.seeds, noise.calls, nodes)
        noise.calls += 1
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        from evengraph.ops.dropout import replica_dropout_backward

        (output,) = ctx.saved_tensors
        return replica_dropout_backward(gradients[0], output, ctx.scale), None, None, None


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int) -> Tensor:
        """Zero what is negative and, of 256 parts of the rest, as many as `dropped`."""
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        noise = words.view(torch.uint8)[: x.numel()].view(x.shape).to(x.dtype)
        ctx.scale = 256 / (256 - dropped)
        output = _where_above(x, noise, dropped - 0.5).relu_().mul_(ctx.scale)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (output,) = ctx.saved_tensors  # positive just where the value went through
        return _where_above(gradients[0], output, 0.0).mul_(ctx.scale), None


def _where_above(x: Tensor, reference: Tensor, limit: float) -> Tensor:
    """x where the reference exceeds the limit, zero elsewhere.

    ReLU's own backward is this operation, and the only form of it that torch vectorises on
    the CPU: `torch.where` and a product with a bool mask take ten times as long.
    """
    kept: Tensor = torch.ops.aten.threshold_backward(x, reference, limit)
    return kept


Start = Callable[[Tensor, Tensor], None]
"""Draws first weights, (inputs, outputs), and a bias, (outputs,), in place."""


def by_outputs(weight: Tensor, bias: Tensor) -> None:
    """Uniform in +- 1 / sqrt(outputs), as in the public code of the comparison methods."""
    _uniform(weight, bias, bias.numel() ** -0.5)


def by_inputs(weight: Tensor, bias: Tensor) -> None:
    """Uniform in +- 1 / sqrt(inputs), as linear layers of torch start."""
    _uniform(weight, bias, weight.shape[0] ** -0.5)


def glorot(weight: Tensor, bias: Tensor) -> None:
    """Glorot's uniform weights and a bias of zero, as PyG's convolutions start."""
    nn.init.xavier_uniform_(weight)
    nn.init.zeros_(bias)


def _uniform(weight: Tensor, bias: Tensor, bound: float) -> None:
    nn.init.uniform_(weight, -bound, bound)
    nn.init.uniform_(bias, -bound, bound)


class Convolution(nn.Module, ABC):
    """What kinds of graph convolution share: a product row by row, then all that takes the graph.

    Shapes:
        x: (N, inputs), dense or sparse
        propagation: (N, N), already normalised
        returns: (N, outputs)
    """

    weight: nn.Parameter

    def forward(self, x: Tensor | Sparse, propagation: Propagation) -> Tensor:
        """Convolve: project, then spread."""
        return self.spread(self.project(x), propagation)

    def project(self, x: Tensor | Sparse) -> Tensor:
        """x W, row by row."""
        return x @ self.weight

    @abstractmethod
    def spread(self, projected: Tensor, propagation: Propagation) -> Tensor:
        """What the graph makes of projected rows."""


class GraphConv(Convolution):
    """GCN's convolution, P x W + b: transform, then propagate the narrower product.

    Args:
        inputs: Width of x.
        outputs: Width of what is returned.
        start: First weights.
    """

    def __init__(self, inputs: int, outputs: int, start: Start = by_outputs) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        start(self.weight, self.bias)

    def spread(self, projected: Tensor, propagation: Propagation) -> Tensor:
        """P times the projected rows, and the bias."""
        return propagation @ projected + self.bias.unsqueeze(-2)


class GraphClassifier(nn.Module):
    """A graph convolution, GCN's or another of the same signature, ReLU, dropout, a linear layer.

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
        self, x: Tensor, propagation: Propagation, *, dropout: bool, nodes: Tensor | None = None
    ) -> Tensor:
        """Logits of all nodes, or of those that the propagation ends in."""
        return self._finish(self.conv(x, propagation), dropout, nodes)

    def of_propagated(self, x: Tensor, *, dropout: bool) -> Tensor:
        """Logits of GCN's convolution from P x: where x stays, it is propagated once and for all.

        Shapes:
            x: (M, inputs), rows of the nodes wanted
            returns: (M, C)
        """
        return self._finish(x @ self.conv.weight + self.conv.bias.unsqueeze(-2), dropout)

    def _finish(self, convolved: Tensor, dropout: bool, nodes: Tensor | None = None) -> Tensor:
        hidden = relu_dropout(
            convolved, self.dropout, training=dropout, noise=self.noise, nodes=nodes
        )
        return dense(self.linear, hidden)


def dense(linear: nn.Linear, x: Tensor) -> Tensor:
    """A linear layer whose weights may have a leading axis: one layer for each replica."""
    return x @ linear.weight.transpose(-1, -2) + linear.bias.unsqueeze(-2)
