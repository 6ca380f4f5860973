"""IceBerg: Double Balancing on features that are propagated before training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast, final

import scipy.sparse as sp
from torch import Tensor, nn
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.core.untrusted import MAX_STEPS
from evengraph.disk.propagation import Walk, Workspace
from evengraph.disk.tables import Table
from evengraph.methods.bases.network import NetworkMethod, double_balancing_epoch
from evengraph.methods.bases.row_batches import BATCH, RowEpoch, sees_all_rows
from evengraph.methods.bases.row_model import RowInput
from evengraph.nn.networks import Inputs, PlainNetwork
from evengraph.nn.onnx_graph import OnnxGraph
from evengraph.ops.losses import NamedLoss, labelled_loss
from evengraph.ops.sparse import Normalisation, Sparse, diffuse
from evengraph.ops.synthesis import Propagation
from evengraph.training.row_supply import MemoryRows, RowSupply

NO_EDGES = sp.csr_matrix((0, 0))  # the loss does not use them


@final
@dataclass(kw_only=True)
class IceBerg(NetworkMethod):
    """Propagate features many steps, then train with a balanced loss on labels and pseudo-labels.

    Features are propagated before training, so that a few labels reach far, and a network without
    convolutions is trained on them by Double Balancing: each unlabelled node with at least the mean
    confidence gets a pseudo-label, and both losses are balanced softmax with their own class sizes.

    Args:
        loss: Loss on labels: `cross_entropy`, `reweight` (times mean class size over class size),
            `balanced_softmax` or `renode` (`reweight`, with labelled nodes weighted by rank of
            conflict, as ReNode does by default). Pseudo-labels always use balanced softmax.
        pseudo_weight: Weight of the loss on pseudo-labels.
        steps: Propagation steps.
        teleport: Share of a node's own features that each step adds again.

    Cost:
        O(N F h) per epoch, and once O(E F) per propagation step. Propagated features are dense:
        they take N F numbers.

    Departs:
        Selection and the length of training are those of the comparison. The published scripts use
        `learning_rate=0.1` (half of that on PubMed): better with few labels on bags of words, but
        training diverges on dense positive features such as those of Amazon Computers. As
        published, the second layer has no weight decay. Classes that are never predicted are left
        out of the loss on pseudo-labels. The noise-tolerant term, unused in the public scripts, is
        not implemented.

    Reference:
        Li, Chen, Zhao, Wang, Liu, Zhang, Zhou and Yu, "IceBerg: Debiased Self-Training for
        Class-Imbalanced Node Classification", WWW 2025.
    """

    stores_dense = True
    search_space = {
        "learning_rate": (0.01, 0.03, 0.1),
        "teleport": (0.05, 0.1, 0.2),
        "loss": ("balanced_softmax", "reweight"),
    }
    shares_rows = True
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
        x = diffuse(propagation, graph.x.float(), self.steps, self.teleport)
        return Inputs(x, propagation)

    # Graphs on disk

    def row_width(self, num_features: int) -> int:
        """As wide as the features."""
        return num_features

    def fit_tables(self, x: Table, space: Workspace) -> dict[str, Table]:
        """The propagated features."""
        if self.loss == "renode":
            raise ValueError("loss must not be 'renode' for a graph on disk: it needs its edges.")
        return self.tables(x, space)

    def fit_rows(self, task: Task, rows: Mapping[str, Tensor]) -> None:
        """Train on all rows in every epoch, or on some of many."""
        x = self.stacked(rows)
        if not self._ranks.is_alone or not sees_all_rows(task):
            self.fit_supply(MemoryRows(task, x, self._ranks))
            return
        self.net_ = self._new_network()
        inputs = Inputs(x, self._propagation(task.graph))  # which is not used
        epoch = double_balancing_epoch(self.net_, inputs, task, self.loss, self.pseudo_weight)
        self._train(self.net_, epoch)

    @property
    def networks(self) -> int:
        """One."""
        return 1

    def drawn_per_epoch(self) -> tuple[int, int]:
        """As many unlabelled rows as labelled ones, if pseudo-labels count."""
        return BATCH, BATCH if self.pseudo_weight else 0

    def stacked(self, rows: Mapping[str, Tensor]) -> Tensor:
        """The propagated features."""
        return rows["propagated"]

    def fit_supply(self, supply: RowSupply) -> None:
        """Train on rows that are drawn in every epoch."""
        self.net_ = net = self._new_network().to(supply.device)
        counts = supply.task.class_counts.to(supply.device)

        def on_labels(labels: Tensor, logits: Tensor) -> Tensor:
            return labelled_loss(self.loss, NO_EDGES, labels, labels, counts)(logits)

        unused = Sparse.from_scipy(NO_EDGES, supply.device)
        epoch = RowEpoch(net, supply, lambda _: unused, on_labels, self.pseudo_weight)
        self._train(net, epoch)
        net.to(self.device_)

    def tables(self, x: Table, space: Workspace) -> dict[str, Table]:
        """The propagated features of a graph on disk."""
        walk = Walk(self.normalisation, self.steps, self.teleport)
        return {"propagated": space.propagate(x, walk)}

    def row_logits(self, rows: Mapping[str, Tensor]) -> Tensor:
        """Both layers on rows."""
        x = rows["propagated"]
        logits: Tensor = self.net_(x, None)
        return logits

    # Export

    def row_inputs(self) -> dict[str, RowInput]:
        """The propagated features."""
        about = f"features, propagated {self.steps} steps with teleport {self.teleport}"
        return {"propagated": RowInput(self.num_features_, f"{about}, {self.normalisation}")}

    def rows(self, graph: Data) -> dict[str, Tensor]:
        """The propagated features of a graph."""
        return {"propagated": cast(Tensor, self._inputs(graph).x)}

    def onnx_probabilities(self, onnx: OnnxGraph, rows: Mapping[str, str]) -> str:
        """The two layers."""
        layers = self.net_.encoder.linear, self.net_.last.linear
        weights = [(layer.weight.t(), layer.bias) for layer in layers]
        return onnx.softmax(onnx.perceptron(rows["propagated"], weights))

    def _build_network(self) -> nn.Module:
        widths = self.num_features_, self.hidden, self.num_classes_
        return PlainNetwork(_Pointwise, _Pointwise, *widths, self.dropout)


class _Pointwise(nn.Module):
    """A linear layer with the signature of a convolution; the features are already propagated."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor, propagation: Propagation) -> Tensor:
        """Transform the features of each node."""
        transformed: Tensor = self.linear(x)
        return transformed
