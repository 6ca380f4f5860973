"""MLP: the features of a node alone, as if there were no graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import scipy.sparse as sp
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.network import NetworkMethod
from evengraph.ops import Sparse


@final
@dataclass(kw_only=True)
class MLP(NetworkMethod):
    """Two hidden layers on the features of each node, the graph left out.

    It is the comparison's network with every convolution replaced by a plain layer: what GCN is
    where there are no edges. Where it does as well as GCN, the graph does not help.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)

    Cost:
        O(N h^2 + nnz(X) h) an epoch.

    Departs:
        With no neighbours there is nothing to normalise: `normalisation` changes nothing.

    Reference:
        Rumelhart, Hinton and Williams, "Learning Representations by Back-Propagating Errors",
        Nature 1986.
    """

    title = "MLP"
    suits_heterophily = True

    def _fit(self, task: Task) -> None:
        labels = task.graph.y[task.train_nodes]
        self._fit_network(
            task,
            self._inputs(task.graph),
            lambda logits: cross_entropy(logits[task.train_nodes], labels),
        )

    def _propagation(self, graph: Data) -> Sparse:
        """Every node hears itself."""
        return Sparse.from_scipy(sp.identity(graph.num_nodes, format="csr"), graph.x.device)
