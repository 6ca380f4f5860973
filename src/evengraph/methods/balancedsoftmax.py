"""Balanced softmax: class sizes are part of the softmax in training, and not of the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from torch import Tensor
from torch.nn.functional import cross_entropy

from evengraph.core.task import Task
from evengraph.methods.bases.margin import MarginMethod
from evengraph.methods.bases.supervised import LabelledMethod
from evengraph.ops import log_sizes


@final
@dataclass(kw_only=True)
class BalancedSoftmax(LabelledMethod, MarginMethod):
    """Tell the softmax in training how frequent classes are, so that the network need not learn it.

    The loss is cross-entropy of a softmax in which a class of n labelled nodes counts n times; the
    answer is the plain softmax. It is logit adjustment of strength 1. `margin="tam"` is TAM upon
    it, as its paper reports first.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O(E h + nnz(X) h) an epoch, as GCN.

    Reference:
        Ren, Yu, Sheng, Ma, Zhao, Yi and Li, "Balanced Meta-Softmax for Long-Tailed Visual
        Recognition", NeurIPS 2020.
    """

    title = "Balanced softmax"
    search_space = {"margin": ("none", "tam")}
    suits_heterophily = True

    def _raised(self, class_counts: Tensor) -> Tensor:
        return log_sizes(class_counts)

    def _loss(self, task: Task) -> Callable[[Tensor], Tensor]:
        nodes, raised = task.train_nodes, self._raised(task.class_counts)
        labels, margins = task.graph.y[nodes], self._margins(task)
        return lambda logits: cross_entropy(logits[nodes] + raised + margins(logits), labels)

    @property
    def _batches(self) -> bool:
        return super()._batches and self.margin == "none"
