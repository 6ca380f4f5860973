"""What Uni-GNN does beyond its paper: predict graphs other than its own, and be saved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.untrusted import MAX_HOPS
from evengraph.methods.bases.method import Method, check_limit
from evengraph.ops.features import matching_signatures, node_signatures
from evengraph.ops.semantic import cluster_means, nearest_mean
from evengraph.ops.sparse import Sparse

Features: TypeAlias = "Tensor | Sparse"
FindClusters = Callable[[int, Features], Tensor]  # of a layer, from its input

# what the names in the parameter `readings` of version 0.2.0 stand for
READINGS: Mapping[str, Mapping[str, Any]] = {
    "mean-loss": {"mean_loss": True},
    "unit-rows": {"unit_rows": True},
    "stop-on-loss": {"stop_on": "loss"},
    "stop-on-accuracy": {"stop_on": "accuracy"},
}


class UnifiedMethod(Method):
    """A method with clusters in every layer; nodes that are recognised keep theirs on any graph.

    Training nodes are recognised by their signatures; any other node joins the cluster with the
    nearest mean. Signatures and means are found when they are first needed.
    """

    layers: int
    alpha: Any
    alpha_: int
    num_nodes_: int
    graph_: Data | None
    signatures_: Tensor
    means_: dict[int, Tensor]

    @property
    @abstractmethod
    def num_clusters(self) -> int:
        """Clusters of a layer; 0 without clusters."""

    @abstractmethod
    def _inputs(self, graph: Data) -> Any:
        """What the network sees of a graph."""

    @abstractmethod
    def _encode(self, inputs: Any, find: FindClusters) -> Tensor:
        """Embeddings of the last layer, (N, width)."""

    @abstractmethod
    def _stored(self, layer: int, h: Features) -> Tensor:
        """The clusters of the training graph as they were found last, (N,)."""

    @abstractmethod
    def _cluster_rows(self, h: Features) -> Features:
        """The rows that are clustered, from the input of a layer."""

    def _known_or_nearest(self, graph: Data) -> FindClusters:
        """Those of any graph: stored for training nodes, the nearest for others."""
        if not self.num_clusters:
            return self._stored
        self._remember()
        known = self._known(graph).nonzero().squeeze(1)
        if len(known) == graph.num_nodes == self.num_nodes_:
            return self._stored

        def find(layer: int, h: Features) -> Tensor:
            clusters = nearest_mean(self._cluster_rows(h), self.means_[layer])
            clusters[known] = self._stored(layer, h)[known]
            return clusters

        return find

    def _known(self, graph: Data) -> Tensor:
        """Which nodes have the row, features and neighbours of a training node, bool, (N,)."""
        return matching_signatures(node_signatures(graph.x, graph.edge_index), self.signatures_)

    @torch.no_grad()
    def _remember(self) -> None:
        """Find signatures and means on the training graph."""
        if self.means_ or not self.num_clusters:
            return
        assert self.graph_ is not None
        means: dict[int, Tensor] = {}

        def find(layer: int, h: Features) -> Tensor:
            clusters = self._stored(layer, h)
            means[layer] = cluster_means(self._cluster_rows(h), clusters, self.num_clusters)
            return clusters

        quick = self._quick("walk")
        if quick is None:
            self._encode(self._inputs(self.graph_), find)
        else:
            quick(find)
        self.means_ = means
        self.signatures_ = node_signatures(self.graph_.x, self.graph_.edge_index)

    # Saving

    @classmethod
    def current_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Replace `readings`, names with commas between them, by the parameters they stand for."""
        current = dict(params)
        for name in map(str.strip, current.pop("readings", "").split(",")):
            if name and name not in READINGS:
                raise ValueError(f"readings must be some of {', '.join(READINGS)}, got {name!r}.")
            current |= READINGS.get(name, {})
        return current

    def _state(self) -> dict[str, Tensor]:
        self._remember()
        state = super()._state() | {"alpha": torch.tensor([self.alpha_])}
        if self.means_:
            state["signatures"] = self.signatures_
        return state | {f"means.{layer}": means for layer, means in self.means_.items()}

    def _load_state(self, state: Mapping[str, Tensor]) -> None:
        self.graph_ = None
        self.alpha_ = int(state["alpha"])
        check_limit("alpha", self.alpha_, (1, MAX_HOPS), whole=True)
        self.signatures_ = state["signatures"] if self.num_clusters else torch.empty(0)
        self.num_nodes_ = len(self.signatures_)
        super()._load_state(state)
        layers = range(self.layers if self.num_clusters else 0)
        self.means_ = {layer: state[f"means.{layer}"] for layer in layers}
        if any(
            means.dim() != 2 or len(means) != self.num_clusters for means in self.means_.values()
        ):
            raise ValueError(f"there must be {self.num_clusters} means of clusters in every layer")
        for clusters in self.net_.buffers():
            if not 0 <= int(clusters.min()) <= int(clusters.max()) < self.num_clusters:
                raise ValueError(f"its nodes must lie in {self.num_clusters} clusters")
