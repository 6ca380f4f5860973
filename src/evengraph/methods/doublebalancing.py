"""Double Balancing: self-training with pseudo-labels that are balanced themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from evengraph.core.task import Task
from evengraph.methods.bases.network import PLAIN, NetworkMethod
from evengraph.methods.bases.self_training import double_balancing_epoch
from evengraph.nn import Backbone
from evengraph.ops.losses import NamedLoss
from evengraph.ops.propagate import Normalisation


@final
@dataclass(kw_only=True)
class DoubleBalancing(NetworkMethod):
    """Train on confident predictions as well, with losses balanced by their own class sizes.

    In every epoch each unlabelled node that is predicted with at least the mean confidence becomes
    an example of its predicted class. Both losses, on labels and on pseudo-labels, are balanced
    softmax, each with the class sizes of its own examples. Each is a mean of its own, so that a
    few labels weigh as much as thousands of pseudo-labels. The network is two convolutions;
    IceBerg is the same on features that were propagated beforehand.

    Args:
        loss: Of the labels: `cross_entropy`, `reweight` (times mean class size over class size),
            `balanced_softmax` or `renode` (`reweight`, with labelled nodes weighted by rank of
            conflict, as ReNode does by default). That of pseudo-labels stays balanced softmax.
        pseudo_weight: Weight of the loss on pseudo-labels.

    Cost:
        O(E h + nnz(X) h) per epoch, as GCN.

    Departs:
        Selection and the length of training are those of the comparison. Nothing comes after the
        two convolutions, and the second does not decay, as published; on the comparison's network,
        with its linear layer, several points are lost. A class that no node is predicted as is
        left out of the loss on pseudo-labels. The noise-tolerant term, which the public scripts
        leave out, is not implemented.

    Reference:
        Li, Chen, Zhao, Wang, Liu, Zhang, Zhou and Yu, "IceBerg: Debiased Self-Training for
        Class-Imbalanced Node Classification", WWW 2025.
    """

    title = "Double balancing"
    search_space = {"loss": ("balanced_softmax", "reweight"), "hidden": (128, 256)}
    compared_by_default = True
    suits_heterophily = True
    network = PLAIN
    limits = {"pseudo_weight": 0}

    hidden: int = 128
    normalisation: Normalisation = "symmetric"
    backbone: Backbone = "gcn"
    loss: NamedLoss = "balanced_softmax"
    pseudo_weight: float = 1.0

    def _fit(self, task: Task) -> None:
        self.net_ = self._new_network()
        inputs = self._inputs(task.graph)
        epoch = double_balancing_epoch(self.net_, inputs, task, self.loss, self.pseudo_weight)
        self._train(self.net_, epoch, recordable=True)
