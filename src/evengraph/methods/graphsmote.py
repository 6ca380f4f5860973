"""GraphSMOTE: interpolated embeddings, linked by a learnt edge scorer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from evengraph.core.task import Task
from evengraph.methods.bases.network import NetworkMethod
from evengraph.metrics.multiclass import validation_score
from evengraph.nn.networks import Backbone, EdgeDecoder, Reconstruction
from evengraph.ops.sparse import (
    row_entries,
    take,
    undirected_adjacency,
    weighted_adjacency,
    with_self_loops,
)
from evengraph.ops.synthesis import (
    AttachedGraph,
    interpolate,
    plan_copies,
    random_shares,
    rare_classes,
)


@final
@dataclass(kw_only=True)
class GraphSMOTE(NetworkMethod):
    """Interpolate embeddings of rare nodes, and link the new nodes by a learnt edge decoder.

    An encoder embeds the nodes, and a decoder is trained to reconstruct the edges, first alone,
    then jointly with the classifier. In every epoch new nodes are put between the embedding of a
    rare labelled node, the seed, and the nearest of its class. The decoder scores their links to
    the neighbours of both, and the enlarged graph is classified.

    Args:
        variant: `T` uses links with a score of at least 0.5, with weight 1; `O` uses all
            candidates, weighted by their scores.
        copies: New nodes per labelled node of a rare class; 0 fills every class up to the largest.
        minority: Number of rare classes; 0: those nearer in ratio to the smallest than the largest.
        pretrain_epochs: Epochs of encoder and decoder alone.
        reconstruction_weight: Weight of the decoder's loss afterwards.
        sound: Give new nodes a self-loop, so that their own embedding counts, and let the
            classification loss train the decoder (variant O).

    Cost:
        O(E h + nnz(X) h) per epoch, a few times GCN, and the distances within each rare class; the
        original's N^2 pairs are never listed.

    Departs:
        The decoder's loss takes all edges, or 131,072 random ones if there are more, and as many
        random pairs instead of all N^2, which is unbiased; Adam is reset after the first stage. As
        in the comparison's public code, and so presumably in the published row, new nodes have no
        self-loop, rare classes are only doubled, and the scores of O are detached; `sound` and
        `copies=0` fix that. There, `copies` has no effect; here it has. O combines scores with
        normalised links and normalises again; with attention (`gat`), with links of weight 1.

    Reference:
        Zhao, Zhang and Wang, "GraphSMOTE: Imbalanced Node Classification on Graphs with Graph
        Neural Networks", WSDM 2021.
    """

    tuned_params = frozenset({"variant"})
    limits = {"copies": 0, "minority": 0, "pretrain_epochs": 0, "reconstruction_weight": 0}

    backbone: Backbone = "gcn"
    variant: Literal["T", "O"] = "T"
    copies: int = 1
    minority: int = 0
    pretrain_epochs: int = 50
    reconstruction_weight: float = 1e-6
    sound: bool = False

    def _fit(self, task: Task) -> None:
        graph, nodes = task.graph, task.train_nodes
        labels, device = graph.y[nodes], graph.x.device
        copies = plan_copies(labels, rare_classes(task.class_counts, self.minority), self.copies)
        seeds = nodes[copies.positions]
        added = graph.num_nodes + torch.arange(seeds.numel(), device=device)
        rows, all_labels = torch.cat([nodes, added]), torch.cat([labels, copies.labels])

        inputs = self._inputs(graph)
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        neighbours = with_self_loops(weighted_adjacency(graph), device)
        frame = neighbours if self.variant == "T" else self._propagation(graph)
        sums = (frame @ torch.ones(graph.num_nodes, 1, device=device)).squeeze(1)
        loop, how = float(self.sound), self._normalisation
        attach = partial(AttachedGraph, frame, sums, num_new=seeds.numel(), loop=loop, how=how)
        reconstruction = Reconstruction(matrix, device)
        self.net_ = net = self._new_network()
        decoder = EdgeDecoder(self.hidden).to(device)

        def epoch() -> tuple[Tensor, Tensor]:
            first = net.encoder(*inputs)  # no dropout before it: both passes share it
            with torch.no_grad():
                score = validation_score(net.classify(first, inputs.propagation), task)
            known = net.embed(first, dropout=True)
            # synthetic nodes: h_i + u (h_nn(i) - h_i), u uniform in [0, 1)
            shares = random_shares(copies, task.num_classes)
            new, peers = interpolate(take(known, nodes), labels, copies, shares)
            # edge generator: sigmoid(h W (h' W)^T) of a new node and its candidates
            new_ends, ends = candidate_links(neighbours.matrix, seeds, nodes[peers])
            weights = self._weights(decoder, take(known, ends), take(new, new_ends))
            attached = attach(ends, new_ends, weights)
            # classifier on the enlarged graph; its loss, plus that of reconstructing the edges
            logits = net.classifier(torch.cat([known, new]), attached, dropout=True)
            loss = cross_entropy(logits[rows], all_labels)
            return loss + self.reconstruction_weight * reconstruction(decoder, known), score

        # the sum over pairs of (A + I - S)^2, where pairs without an edge count as much as edges
        self._pretrain(inputs, decoder, reconstruction, self.pretrain_epochs)
        self._train(nn.ModuleList([net, decoder]), epoch)

    def _weights(self, decoder: EdgeDecoder, one: Tensor, other: Tensor) -> Tensor:
        """Weights of candidate links between known and new nodes, (K,)."""
        with torch.set_grad_enabled(self.variant == "O" and self.sound):
            scores: Tensor = decoder(one, other)
        return scores if self.variant == "O" else (scores >= 0.5).to(scores)


def candidate_links(neighbours: Tensor, seeds: Tensor, peers: Tensor) -> tuple[Tensor, Tensor]:
    """Link new nodes to their seed, the seed's peer and the neighbours of both.

    `neighbours` is CSR with self-loops. Returns the new and the known node of each link, (K,).
    """
    num_nodes = neighbours.shape[0]
    keys = []
    for nodes in (seeds, peers):
        owner, positions = row_entries(neighbours, nodes)
        keys.append(owner * num_nodes + neighbours.col_indices()[positions])
    pairs = torch.unique(torch.cat(keys))
    return pairs // num_nodes, pairs % num_nodes
