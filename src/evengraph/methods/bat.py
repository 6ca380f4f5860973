"""BAT: virtual nodes that bring far labels to where predictions are at risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from evengraph.core.task import Task
from evengraph.methods.bases.network import NetworkKind, NetworkMethod
from evengraph.metrics import validation_score
from evengraph.nn import Backbone
from evengraph.ops import labelled_loss, undirected_adjacency
from evengraph.ops.attach import StackedFeatures
from evengraph.ops.losses import NamedLoss
from evengraph.ops.virtual import Variant, VirtualNodes


@final
@dataclass(kw_only=True)
class BAT(NetworkMethod):
    """Link nodes whose predictions are at risk to a virtual node of what they may be instead.

    Rare classes suffer because labels are far away or the neighbours are of other classes, not
    because losses weigh too little. So each class gets a virtual node: labelled, and with the
    mean features of the nodes that are predicted so. In every epoch a node that is less certain
    than others of its predicted class draws links to the virtual nodes of the other classes,
    which then speak to it and listen to it. Predicting needs none of them.

    Args:
        variant: What a node may be instead: `BAT0` asks its own prediction, `BAT1` what its
            neighbours are predicted to be.
        loss: What it is put upon: `cross_entropy`, `reweight` (times mean class size over class
            size), `balanced_softmax` or `renode` (`reweight`, with labelled nodes weighted by rank
            of conflict, as ReNode does by default). A virtual node is one more node of its class,
            in class sizes, too, and has no conflict: it weighs one.

    Cost:
        O(E (h + C) + nnz(X) h) per epoch, about twice GCN.

    Departs:
        The network, its depth and width, and the rule of selection are by default those of the
        comparison; the public code has three convolutions of width 256, all of which decay. Random
        numbers are drawn in one stream, where the public code starts all of them afresh in every
        epoch, dropout included.

    Reference:
        Liu, Qiu, Zeng, Yoo, Zhou, Xu, Zhu, Weldemariam, He and Tong, "Class-Imbalanced Graph
        Learning without Class Rebalancing", ICML 2024.
    """

    title = "BAT"
    search_space = {"variant": ("BAT0", "BAT1"), "loss": ("cross_entropy", "reweight")}

    backbone: Backbone = "gcn"
    network: NetworkKind = "comparison"
    variant: Variant = "BAT1"
    loss: NamedLoss = "cross_entropy"

    def _fit(self, task: Task) -> None:
        graph, nodes = task.graph, task.train_nodes
        labels, counts = graph.y[nodes], task.class_counts
        classes = torch.arange(task.num_classes, device=graph.x.device)
        rows = torch.cat([nodes, graph.num_nodes + classes])
        inputs = self._inputs(graph)
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        how = self._normalisation
        virtual = VirtualNodes(matrix, inputs.x, nodes, labels, counts, self.variant, how)
        loss = labelled_loss(self.loss, matrix, nodes, labels, counts, added=classes)
        self.net_ = net = self._new_network()

        def epoch() -> tuple[Tensor, Tensor]:
            with torch.no_grad():
                clean = net(*inputs)
            linked, means = virtual.link(clean)
            first = net.encoder(StackedFeatures(inputs.x, means), linked)
            logits = net.classify(first, linked, dropout=True)
            return loss(logits[rows]), validation_score(clean, task)

        self._train(net, epoch)
