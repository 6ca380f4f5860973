"""Class prototypes of LTE4G: unlabelled nodes near labelled ones, or like them, fill up classes."""

from __future__ import annotations

import torch
from torch import Tensor

from evengraph.ops.sparse import row_entries

BLOCK_ENTRIES = 2**24  # similarities in memory at a time
SIMILAR = 10  # similar nodes per labelled node


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
    """The mean embedding of each class, (C, h), with unlabelled nodes added to small classes.

    A class with fewer labelled nodes than the target is filled up with unlabelled neighbours of
    its labelled nodes, the most probable first; if those are too few, with nodes whose features
    resemble a labelled one's.

    Args:
        sound: Fill up to the target with the most similar nodes, without nodes that are labelled
            and none twice. Otherwise as in LTE4G's public code: similar nodes are added only while
            the list, labelled nodes included, is shorter than what was missing, the most similar
            one of each node is left out, and those labelled for another class or already in the
            list are not.
    """
    means = []
    for label in range(probabilities.shape[1]):
        labelled = nodes[labels == label]
        members, missing = labelled, target - labelled.numel()
        if missing > 0:
            likely = probabilities[:, label]
            _, positions = row_entries(adjacency, labelled)
            near = adjacency.col_indices()[positions].long().unique()
            near = near[~torch.isin(near, nodes if sound else labelled)]
            members = torch.cat([labelled, _likeliest(near, likely, missing)])
            wanted = (target if sound else missing) - members.numel()
            if wanted > 0:
                alike = similar_nodes(x, adjacency, labelled, skip=0 if sound else 1)
                if sound:
                    alike = alike[~torch.isin(alike, torch.cat([nodes, members]))]
                members = torch.cat([members, _likeliest(alike, likely, wanted)])
        means.append(embeddings[members].mean(0))
    return torch.stack(means)


def _likeliest(nodes: Tensor, likely: Tensor, count: int) -> Tensor:
    """The most probable of given nodes."""
    order = torch.argsort(likely[nodes], descending=True, stable=True)
    return nodes[order[:count]]


def similar_nodes(x: Tensor, adjacency: Tensor, nodes: Tensor, skip: int) -> Tensor:
    """Nodes with features similar to those of given nodes, except themselves and neighbours."""
    # for each node the best ten by cosine similarity, after skipping the first `skip`; ascending
    length = x.norm(dim=1).clamp(min=torch.finfo(x.dtype).tiny)
    similar = []
    for block in nodes.split(max(BLOCK_ENTRIES // x.shape[0], 1)):
        likeness = (x[block] / length[block].unsqueeze(1)) @ x.t() / length  # (block, N)
        owner, positions = row_entries(adjacency, block)
        likeness[owner, adjacency.col_indices()[positions].long()] = -torch.inf
        likeness[torch.arange(block.numel(), device=x.device), block] = -torch.inf
        best, indices = likeness.topk(min(skip + SIMILAR, x.shape[0]), dim=1)
        similar.append(indices[:, skip:][best[:, skip:].isfinite()])
    return torch.cat(similar).unique() if similar else nodes
