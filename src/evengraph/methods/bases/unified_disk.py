"""How Uni-GNN predicts graphs on disk."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from evengraph.disk.propagation import Workspace
from evengraph.disk.signatures import known_nodes
from evengraph.disk.tables import Table
from evengraph.disk.unified import unified_table
from evengraph.nn.unified import UnifiedNetwork

LAST = "last"  # layer


class UnifiedOnDisk:
    """Layer-wise inference of a `UnifiedNetwork` that connects direct neighbours."""

    net_: UnifiedNetwork
    alpha_: int

    @abstractmethod
    def _training_signatures(self) -> Tensor:
        """Signatures of the training nodes; also computes the means of their clusters."""

    def tables(self, x: Table, space: Workspace) -> dict[str, Table]:
        """The classifier's convolution at all nodes of a graph on disk."""
        if self.alpha_ > 1:
            raise ValueError(
                f"Uni-GNN with alpha={self.alpha_} needs the whole graph in memory to predict it; "
                "train it with alpha=1."
            )
        known = torch.zeros(0, dtype=torch.bool)
        if "semantic" in self.net_.encoders:
            known = known_nodes(x, space, self._training_signatures())
        return {LAST: unified_table(self.net_, x, space, known)}

    def row_logits(self, rows: Mapping[str, Tensor]) -> Tensor:
        """Logits from rows of the convolution."""
        logits: Tensor = self.net_.classifier.linear(rows[LAST].relu())
        return logits
