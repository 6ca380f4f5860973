"""Balanced softmax: class sizes are part of the softmax in training, but not of the prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from torch import Tensor

from evengraph.core.task import Task
from evengraph.methods.bases.network import MarginMethod, NetworkKind, NetworkMethod
from evengraph.nn.networks import Backbone
from evengraph.ops.losses import ClassTerms, class_loss, log_sizes


@final
@dataclass(kw_only=True)
class BalancedSoftmax(NetworkMethod, MarginMethod):
    """Multiply each class by its size in the training softmax, so the network need not learn it.

    The loss is cross-entropy of a softmax in which a class with n labelled nodes counts n times;
    predictions use the plain softmax. It equals logit adjustment with strength 1. `margin="tam"`
    adds TAM, the first combination that its paper reports.

    Cost:
        O(E h + nnz(X) h) per epoch, as GCN.

    Departs:
        The meta sampler, which draws the paper's batches, has no use here: an epoch has all nodes.

    Reference:
        Ren, Yu, Sheng, Ma, Zhao, Yi and Li, "Balanced Meta-Softmax for Long-Tailed Visual
        Recognition", NeurIPS 2020.
    """

    title = "Balanced softmax"
    search_space = {"margin": ("none", "tam")}
    suits_heterophily = True

    backbone: Backbone = "gcn"
    network: NetworkKind = "comparison"

    def _class_terms(self, class_counts: Tensor) -> ClassTerms:
        # the softmax of n_c exp(z_c) is that of the logits z_c + log n_c
        return ClassTerms(train_offsets=log_sizes(class_counts))

    def _loss(self, task: Task) -> Callable[[Tensor], Tensor]:
        if self.margin == "none":
            return super()._loss(task)
        nodes, margins = task.train_nodes, self._margins(task)
        loss = class_loss("balanced_softmax", task.graph.y[nodes], task.class_counts)
        return lambda logits: loss(logits[nodes], margins(logits))
