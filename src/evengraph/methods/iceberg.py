"""IceBerg: Double Balancing on features that are propagated before training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, final

from torch import Tensor, nn
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.core.untrusted import MAX_STEPS
from evengraph.methods.bases.network import NetworkMethod, double_balancing_epoch
from evengraph.nn.networks import Inputs, PlainNetwork
from evengraph.ops.losses import NamedLoss
from evengraph.ops.sparse import Normalisation, diffuse
from evengraph.ops.synthesis import Propagation


@final
@dataclass(kw_only=True)
class IceBerg(NetworkMethod):
    """Propagate features many steps, then train with a balanced loss on labels and pseudo-labels.

    Features are propagated before training, so that a few labels reach far, and a network without
    convolutions is trained on them by Double Balancing: each unlabelled node with at least the mean
    confidence gets a pseudo-label, and both losses are balanced softmax with their own class sizes.

    Args:
        loss: On labels: `cross_entropy`, `reweight` (by inverse class size), `balanced_softmax`
            or `renode` (`reweight` with ReNode's weights of nodes); balanced softmax on others.
        pseudo_weight: Weight of the loss on pseudo-labels.
        steps: Propagation steps.
        teleport: Share of a node's own features that each step adds again.

    Cost:
        O(N F h) per epoch, and once O(E F) per propagation step. It stores N F dense numbers.

    Departs:
        Selection and the length of training are those of the comparison. The published scripts use
        `learning_rate=0.1` (half of that on PubMed): better with few labels on bags of words, but
        training diverges on dense positive features such as those of Amazon Computers. As
        published, the second layer has no weight decay. Classes that are never predicted are left
        out of the loss on pseudo-labels, as is the noise-tolerant term, unused in public scripts.

    Reference:
        Li, Chen, Zhao, Wang, Liu, Zhang, Zhou and Yu, "IceBerg: Debiased Self-Training for
        Class-Imbalanced Node Classification", WWW 2025.
    """

    search_space = {
        "learning_rate": (0.01, 0.03, 0.1),
        "teleport": (0.05, 0.1, 0.2),
        "loss": ("balanced_softmax", "reweight"),
    }
    limits = {"pseudo_weight": 0, "steps": (0, MAX_STEPS), "teleport": "fraction"}

    weight_decay: float = 5e-3
    hidden: int = 128
    normalisation: Normalisation = "symmetric"
    loss: NamedLoss = "balanced_softmax"
    pseudo_weight: float = 1.0
    steps: int = 20
    teleport: float = 0.1

    def _fit(self, task: Task) -> None:
        self.net_ = self._new_network()
        inputs = self._inputs(task.graph)
        epoch = double_balancing_epoch(self.net_, inputs, task, self.loss, self.pseudo_weight)
        self._train(self.net_, epoch, recordable=True)

    def _inputs(self, graph: Data) -> Inputs:
        propagation = self._propagation(graph)
        # x <- (1 - teleport) P x + teleport x_0, `steps` times
        x = diffuse(propagation, graph.x.float(), self.steps, self.teleport)
        return Inputs(x, propagation)

    def _build_network(self) -> nn.Module:
        widths = self.num_features_, self.hidden, self.num_classes_
        return PlainNetwork(_Pointwise, _Pointwise, *widths, self.dropout)


class _Pointwise(nn.Module):
    """A linear layer with the signature of a convolution; the features are already propagated."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor, propagation: Propagation) -> Tensor:
        return cast(Tensor, self.linear(x))
