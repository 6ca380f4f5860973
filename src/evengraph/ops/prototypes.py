"""Class prototypes: mean embeddings of labelled nodes and of unlabelled ones that are likely."""

from __future__ import annotations

import torch
from torch import Tensor

from evengraph.ops.propagate import row_entries

SIMILAR = 10  # nodes that look like a labelled one, for each of them


def class_prototypes(
    embeddings: Tensor,
    probabilities: Tensor,
    x: Tensor,
    adjacency: Tensor,
    nodes: Tensor,
    labels: Tensor,
    target: int,
    *,
    sound: bool = False,
) -> Tensor:
    """The mean embedding of each class, small classes helped out by unlabelled nodes.

    A class with fewer labelled nodes than the target is filled up with unlabelled neighbours of
    its labelled nodes, the most probable first; if those are too few, with nodes whose features
    resemble a labelled one's.

    Args:
        embeddings: Of all nodes.
        probabilities: Predicted classes of all nodes.
        x: Features, by which nodes resemble one another.
        adjacency: The graph, a sparse CSR matrix.
        nodes: The labelled nodes.
        labels: Their classes; every class has one.
        target: Nodes wanted for each prototype.
        sound: Fill up to the target and take the most similar nodes. Otherwise as in LTE4G's
            public code: similar nodes are added only while the list, labelled nodes included, is
            shorter than what was missing, and the most similar one of each node is left out.

    Shapes:
        embeddings: (N, h), probabilities: (N, C), x: (N, F)
        adjacency: sparse CSR, (N, N)
        nodes, labels: (n,)
        returns: (C, h)
    """
    known = torch.zeros(embeddings.shape[0], dtype=torch.bool, device=nodes.device)
    known[nodes] = True
    means = []
    for label in range(probabilities.shape[1]):
        members = nodes[labels == label]
        missing = target - members.numel()
        if missing > 0:
            likely = probabilities[:, label]
            _, positions = row_entries(adjacency, members)
            near = adjacency.col_indices()[positions].long().unique()
            members = torch.cat([members, _likeliest(near[~known[near]], likely, missing)])
            wanted = (target if sound else missing) - members.numel()
            if wanted > 0:
                skip = 0 if sound else 1
                alike = similar_nodes(x, adjacency, nodes[labels == label], skip)
                fresh = ~known[alike] & ~torch.isin(alike, members)
                members = torch.cat([members, _likeliest(alike[fresh], likely, wanted)])
        means.append(embeddings[members].mean(0))
    return torch.stack(means)


def _likeliest(nodes: Tensor, likely: Tensor, count: int) -> Tensor:
    """The most probable of some nodes."""
    order = torch.argsort(likely[nodes], descending=True, stable=True)
    return nodes[order[:count]]


def similar_nodes(x: Tensor, adjacency: Tensor, nodes: Tensor, skip: int) -> Tensor:
    """Nodes whose features resemble those of some nodes, neighbours and the nodes themselves aside.

    For each node the best by cosine similarity, leaving out the first `skip`, ten in all. One row
    of similarities is held at a time.

    Shapes:
        x: (N, F)
        nodes: (m,)
        returns: int64, ascending, without repeats
    """
    length = x.norm(dim=1).clamp(min=torch.finfo(x.dtype).tiny)
    found = []
    for node in nodes:
        likeness = (x @ (x[node] / length[node])) / length
        _, positions = row_entries(adjacency, node.unsqueeze(0))
        likeness[adjacency.col_indices()[positions].long()] = -torch.inf
        likeness[node] = -torch.inf
        best, which = likeness.topk(min(skip + SIMILAR, likeness.numel()))
        found.append(which[skip:][best[skip:].isfinite()])
    return torch.cat(found).unique() if found else nodes
