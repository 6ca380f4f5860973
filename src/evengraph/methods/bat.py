"""BAT: virtual nodes that connect uncertain nodes to the classes they may belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from evengraph.core.task import Task
from evengraph.methods.bases.network import NetworkKind, NetworkMethod
from evengraph.metrics.multiclass import validation_score
from evengraph.nn.networks import Backbone
from evengraph.ops.losses import NamedLoss, labelled_loss
from evengraph.ops.sparse import weighted_adjacency
from evengraph.ops.synthesis import StackedFeatures, Variant, VirtualNodes


@final
@dataclass(kw_only=True)
class BAT(NetworkMethod):
    """Link uncertain nodes to virtual nodes of the other classes that they may belong to.

    Rare classes suffer from distant labels and neighbours of other classes rather than from small
    loss weights. So each class gets a virtual node, labelled, with the mean features of the nodes
    predicted as that class. In every epoch nodes that are less certain than others of their
    predicted class get random edges, in both directions, to the virtual nodes of other classes.
    Predicting uses no virtual nodes.

    Args:
        variant: How likely other classes are: by the node's own prediction (`BAT0`), or by the
            predictions of its neighbours (`BAT1`).
        loss: `cross_entropy`, `reweight` (by inverse class size), `balanced_softmax` or `renode`
            (`reweight` with ReNode's weights of nodes); a virtual node has weight 1 in its class.

    Cost:
        O(E (h + C) + nnz(X) h) per epoch, about twice GCN.

    Departs:
        Depth, width and selection are by default those of the comparison; the public code has three
        convolutions of width 256, all with weight decay. It also resets the random state in every
        epoch, dropout included; here it is not reset.

    Reference:
        Liu, Qiu, Zeng, Yoo, Zhou, Xu, Zhu, Weldemariam, He and Tong, "Class-Imbalanced Graph
        Learning without Class Rebalancing", ICML 2024.
    """

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
        matrix = weighted_adjacency(graph)
        how = self._normalisation
        virtual = VirtualNodes(matrix, inputs.x, nodes, labels, counts, self.variant, how)
        loss = labelled_loss(self.loss, matrix, nodes, labels, counts, added=classes)
        self.net_ = net = self._new_network()

        def epoch() -> tuple[Tensor, Tensor]:
            with torch.no_grad():
                clean = net(*inputs)
            # risk of v: max(0, u_v - mean of u in its class) n_class / n_max, with u = 1 - max p;
            # an edge to the virtual node of class c: risk times the posterior of c
            linked, means = virtual.link(clean)
            first = net.encoder(StackedFeatures(inputs.x, means), linked)
            logits = net.classify(first, linked, dropout=True)
            return loss(logits[rows]), validation_score(clean, task)

        self._train(net, epoch)
