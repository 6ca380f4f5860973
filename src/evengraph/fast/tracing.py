"""Contributions of every node's features to the logits of one node in Uni-GNN, by path."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.fast.unignn import Connectivity, UnifiedNetwork, inputs_and_clusters
from evengraph.nn.attribution import OTHERS, OWN, Contributions
from evengraph.ops.semantic import Clusters, semantic_propagate
from evengraph.ops.sparse import Sparse


def contributions(method: Any, graph: Data, node: int, direction: Tensor) -> Contributions:
    """Exact parts of a sum of a node's logits in a UniGNN by path, with clusters held fixed.

    What passed one encoder in one layer and the other in the next is in the total only. All of it
    passes the classifier, which averages over the node and its neighbours.
    """
    net, inputs, find = inputs_and_clusters(method, graph)
    clusters: list[Clusters] = []

    def recorded(layer: int, embeddings: Tensor | Sparse) -> Clusters:
        clusters.append(find(layer, embeddings))
        return clusters[-1]

    with torch.no_grad():
        value = net(inputs, recorded)[node] @ direction
    total, columns = _contributions(net, inputs, clusters, node, direction, blocked=None)
    paths = {
        path: _contributions(net, inputs, clusters, node, direction, blocked=other)[0]
        for path, other in (("structural", "semantic"), ("semantic", "structural"))
        if path in net.encoders
    }
    assignments = tuple(groups.assignment for groups in clusters)
    structural, semantic = paths.get("structural"), paths.get("semantic")
    return Contributions(value, total, structural, semantic, assignments, columns)


@torch.enable_grad()
def _contributions(
    net: UnifiedNetwork,
    inputs: Connectivity,
    clusters: list[Clusters],
    node: int,
    direction: Tensor,
    blocked: str | None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Contributions of all nodes, (N,), and columns, except through a blocked encoder.

    The gradient is taken at x W, which is narrower than x and gives the same product.
    """
    weights = net.weights[0]
    products = [(inputs.x @ weights[name]).detach().requires_grad_() for name in net.encoders]
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
    total, one = (torch.zeros_like(products[0][:, 0]) for _ in range(2))
    one[node] = 1
    mean = _transposed(inputs.x, torch.full_like(one, 1 / len(one)).unsqueeze(1)).squeeze(1)
    row = _transposed(inputs.x, one.unsqueeze(1)).squeeze(1) - mean
    own, every = torch.zeros_like(row), torch.zeros_like(row)
    for name, gradient, xw in zip(net.encoders, gradients, products, strict=True):
        if gradient is not None:
            total = total + (gradient * (xw - xw.mean(0)).detach()).sum(1)
            matrix = weights[name].detach()
            own += row * (matrix @ gradient[node])
            every += (_transposed(inputs.x, gradient) * matrix).sum(1)
            every -= mean * (matrix @ gradient.sum(0))
    return total.detach(), {OWN: own, OTHERS: every - own}


def _transposed(x: Tensor | Sparse, values: Tensor) -> Tensor:
    """The transpose of x times values."""
    return x.transposed_product(values) if isinstance(x, Sparse) else x.t() @ values


def _join(net: UnifiedNetwork, outputs: list[Tensor], blocked: str | None) -> Tensor:
    parts = [
        output.detach() if name == blocked else output
        for name, output in zip(net.encoders, outputs, strict=True)
    ]
    return torch.cat(parts, dim=-1).relu()
