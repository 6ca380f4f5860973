"""Contributions of every node's features to the logits of one node."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.nn.unified import Connectivity, FindClusters, UnifiedNetwork
from evengraph.ops import Clusters, Sparse, semantic_propagate


class Contributions(NamedTuple):
    """Contribution of each node's features to a weighted sum of one node's logits.

    A ReLU network is locally linear, so gradient times input decomposes its output exactly: the
    contributions and those of the biases sum to it.

    Shapes:
        value: (), the sum of logits
        total: (N,)
        along_paths: (N,), the part of the total that went over A_struct only
        within_clusters: (N,), the part of the total that went through shared clusters only
        clusters: int64, (N,) per layer
    """

    value: Tensor
    total: Tensor
    along_paths: Tensor | None = None
    within_clusters: Tensor | None = None
    clusters: tuple[Tensor, ...] = ()


def gradient_times_input(
    logits_of: Callable[[Tensor], Tensor], x: Tensor, node: int, direction: Tensor
) -> Contributions:
    """Contributions in any network, given as a function from features to logits.

    Shapes:
        x: (N, F)
        direction: (C,), weight of each of the node's logits
    """
    with torch.enable_grad():
        leaf = x.detach().float().requires_grad_()
        value = logits_of(leaf)[node] @ direction
        (gradient,) = torch.autograd.grad(value, leaf)
    return Contributions(value.detach(), (gradient * leaf.detach()).sum(1))


def trace_unified(
    net: UnifiedNetwork, inputs: Connectivity, find: FindClusters, node: int, direction: Tensor
) -> Contributions:
    """Contributions in Uni-GNN's network by path, with clusters held fixed.

    What passed one encoder in one layer and the other in the next is in the total only. All of it
    passes the classifier, which averages over the node and its neighbours.
    """
    clusters: list[Clusters] = []

    def recorded(layer: int, embeddings: Tensor | Sparse) -> Clusters:
        clusters.append(find(layer, embeddings))
        return clusters[-1]

    with torch.no_grad():
        value = net(inputs, recorded)[node] @ direction
    total = _contributions(net, inputs, clusters, node, direction, blocked=None)
    paths = {
        path: _contributions(net, inputs, clusters, node, direction, blocked=other)
        for path, other in (("structural", "semantic"), ("semantic", "structural"))
        if path in net.encoders
    }
    assignments = tuple(groups.assignment for groups in clusters)
    return Contributions(value, total, paths.get("structural"), paths.get("semantic"), assignments)


@torch.enable_grad()
def _contributions(
    net: UnifiedNetwork,
    inputs: Connectivity,
    clusters: list[Clusters],
    node: int,
    direction: Tensor,
    blocked: str | None,
) -> Tensor:
    """Contributions of all nodes, (N,), except through a blocked encoder in any layer.

    The gradient is taken at x W, which is narrower than x and gives the same product.
    """
    weights = net.weights[0]
    products = [(inputs.x @ weights[name]).detach().requires_grad_() for name in net.encoders]  # type: ignore[index]
    outputs = [
        semantic_propagate(xw, clusters[0]) if name == "semantic" else inputs.structural @ xw
        for name, xw in zip(net.encoders, products, strict=True)
    ]
    for layer in range(1, len(net.weights)):
        joint = _join(net, outputs, blocked)
        raw = net.layer(layer, joint, inputs, lambda layer, _: clusters[layer])
        outputs = list(raw.chunk(len(net.encoders), dim=-1))
    logits = net.classifier(_join(net, outputs, blocked), inputs.adjacency, dropout=False)
    gradients = torch.autograd.grad(logits[node] @ direction, products, allow_unused=True)
    total = torch.zeros_like(products[0][:, 0])
    for gradient, xw in zip(gradients, products, strict=True):
        if gradient is not None:
            total = total + (gradient * xw.detach()).sum(1)
    return total.detach()


def _join(net: UnifiedNetwork, outputs: list[Tensor], blocked: str | None) -> Tensor:
    parts = [
        output.detach() if name == blocked else output
        for name, output in zip(net.encoders, outputs, strict=True)
    ]
    return torch.cat(parts, dim=-1).relu()
