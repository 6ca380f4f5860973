"""MLP: the features of a node alone, without the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import scipy.sparse as sp
from torch_geometric.data import Data

from evengraph.methods.bases.network import NetworkMethod
from evengraph.ops.sparse import Sparse


@final
@dataclass(kw_only=True)
class MLP(NetworkMethod):
    """Two hidden layers on the features of each node, without the graph.

    It is the comparison's network with every convolution replaced by a plain layer, which is GCN
    on a graph without edges. Where it scores as well as GCN, the graph does not help.

    Cost:
        O(N h^2 + nnz(X) h) per epoch.

    Departs:
        With no neighbours there is nothing to normalise: `normalisation` has no effect.

    Reference:
        Rumelhart, Hinton and Williams, "Learning Representations by Back-Propagating Errors",
        Nature 1986.
    """

    suits_heterophily = True

    @property
    def uses_graph(self) -> bool:
        return False

    def _propagation(self, graph: Data) -> Sparse:
        """The identity: a node receives its own features only."""
        return Sparse.from_scipy(sp.identity(graph.num_nodes, format="csr"), graph.x.device)
