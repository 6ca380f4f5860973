"""What a network's answer for one node is made of: a part from the features of every node."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.nn.unified import Connectivity, FindClusters, UnifiedNetwork
from evengraph.ops import Clusters, Sparse, semantic_propagate


class Contributions(NamedTuple):
    """How much of a sum of one node's logits came from the features of each node.

    A network of ReLUs is linear around its input, so gradient times input takes its output apart
    without a rest: the parts and what the biases give sum to it.

    Shapes:
        value: (), the sum of logits
        total: (N,)
        along_paths: (N,), of the total, what went over A_struct alone
        within_clusters: (N,), of the total, what went through shared clusters alone
        clusters: int64, (N,), of each layer
    """

    value: Tensor
    total: Tensor
    along_paths: Tensor | None = None
    within_clusters: Tensor | None = None
    clusters: tuple[Tensor, ...] = ()


def gradient_times_input(
    logits_of: Callable[[Tensor], Tensor], x: Tensor, node: int, direction: Tensor
) -> Contributions:
    """The parts of any network.

    Args:
        logits_of: Logits of all nodes from features.
        x: The features.
        node: Whose logits to take apart.
        direction: What each of its logits counts in the sum.

    Shapes:
        x: (N, F)
        direction: (C,)
    """
    with torch.enable_grad():
        leaf = x.detach().float().requires_grad_()
        value = logits_of(leaf)[node] @ direction
        (gradient,) = torch.autograd.grad(value, leaf)
    return Contributions(value.detach(), (gradient * leaf.detach()).sum(1))


def trace_unified(
    net: UnifiedNetwork, inputs: Connectivity, find: FindClusters, node: int, direction: Tensor
) -> Contributions:
    """The parts of Uni-GNN's network, by the way they went, with the clusters held as they are.

    What took one way in one layer and the other in the next is in the total alone. All of it goes
    through the classifier, which averages over the node and its neighbours.
    """
    found: list[Clusters] = []

    def watched(layer: int, embeddings: Tensor | Sparse) -> Clusters:
        found.append(find(layer, embeddings))
        return found[-1]

    with torch.no_grad():
        value = net(inputs, watched)[node] @ direction
    total = _parts(net, inputs, found, node, direction, closed=None)
    ways: dict[str, Tensor] = {}
    for way, other in (("structural", "semantic"), ("semantic", "structural")):
        if way in net.encoders:
            closed = other if other in net.encoders else None
            ways[way] = _parts(net, inputs, found, node, direction, closed=closed)
    return Contributions(
        value,
        total,
        ways.get("structural"),
        ways.get("semantic"),
        tuple(clusters.assignment for clusters in found),
    )


@torch.enable_grad()
def _parts(
    net: UnifiedNetwork,
    inputs: Connectivity,
    found: list[Clusters],
    node: int,
    direction: Tensor,
    closed: str | None,
) -> Tensor:
    """Parts of all nodes, (N,), without what passes an encoder that is closed in any layer.

    The gradient of x is taken at x W, where it is narrow: both give the same product with it.
    """
    weights = net.weights[0]
    products = [(inputs.x @ weights[name]).detach().requires_grad_() for name in net.encoders]  # type: ignore[index]
    outputs = [
        semantic_propagate(one, found[0]) if name == "semantic" else inputs.structural @ one
        for name, one in zip(net.encoders, products, strict=True)
    ]
    for layer in range(1, len(net.weights)):
        joint = _joined(net, outputs, closed)
        raw = net.layer(layer, joint, inputs, lambda layer, _: found[layer])
        outputs = list(raw.chunk(len(net.encoders), dim=-1))
    logits = net.classifier(_joined(net, outputs, closed), inputs.adjacency, dropout=False)
    gradients = torch.autograd.grad(logits[node] @ direction, products, allow_unused=True)
    total = torch.zeros_like(products[0][:, 0])
    for gradient, one in zip(gradients, products, strict=True):
        if gradient is not None:
            total = total + (gradient * one.detach()).sum(1)
    return total.detach()


def _joined(net: UnifiedNetwork, outputs: list[Tensor], closed: str | None) -> Tensor:
    parts = [
        output.detach() if name == closed else output
        for name, output in zip(net.encoders, outputs, strict=True)
    ]
    return torch.cat(parts, dim=-1).relu()
