"""What the methods on the comparison's network share: its fields, its inputs, one training run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.method import Method, fraction, one_of, whole
from evengraph.methods.bases.model_folder import packed, unpack
from evengraph.metrics import validation_score
from evengraph.nn import (
    BACKBONES,
    LAST_CONVS,
    PYG_CONVS,
    Backbone,
    EdgeDecoder,
    GraphNetwork,
    PlainNetwork,
    Reconstruction,
)
from evengraph.ops import Sparse, propagation_matrix, sparsify, undirected_adjacency
from evengraph.ops.attach import Propagation
from evengraph.ops.propagate import Normalisation


class Inputs(NamedTuple):
    """What the network takes of a graph.

    Shapes:
        x: (N, F)
        propagation: (N, N)
    """

    x: Tensor | Sparse
    propagation: Propagation


@dataclass(kw_only=True)
class NetworkMethod(Method):
    """A method on the network of the comparison: two convolutions and a linear layer.

    Args:
        hidden: Width of both convolutions.
        dropout: Share of activations dropped after each.
        normalisation: `row` averages over a node and its neighbours, as the comparison's public
            code does; `symmetric` is Kipf and Welling's.
    """

    hidden: int = 64
    dropout: float = 0.5
    normalisation: Normalisation = "row"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("hidden", self.hidden, 1)
        fraction("dropout", self.dropout)
        one_of("normalisation", self.normalisation, ("row", "symmetric"))

    def _logits(self, graph: Data) -> Tensor:
        return self._answer(self.net_(*self._inputs(graph)))

    def _answer(self, logits: Tensor) -> Tensor:
        """Logits to predict by, from those of the network."""
        return logits

    def _inputs(self, graph: Data) -> Inputs:
        return Inputs(sparsify(graph.x.float()), self._propagation(graph))

    def _propagation(self, graph: Data) -> Sparse:
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        return propagation_matrix(matrix, graph.x.device, how=self._how)

    @property
    def _how(self) -> Normalisation:
        """How the graph is normalised: GraphSAGE takes means in any case."""
        return "row" if self._backbone() == "sage" else self.normalisation

    def _network(self, task: Task) -> GraphNetwork:
        return self._fresh_network().to(task.graph.x.device)

    def _kept(self) -> dict[str, Tensor]:
        return packed("net", self.net_)

    def _put_back(self, kept: Mapping[str, Tensor]) -> None:
        self.net_ = self._fresh_network().to(self.device_)
        unpack("net", self.net_, kept)

    def _fresh_network(self) -> GraphNetwork:
        widths = self.num_features_, self.hidden, self.num_classes_
        return GraphNetwork(*widths, self.dropout, self._backbone())

    def _backbone(self) -> Backbone:
        """GCN, where a method does not leave the choice."""
        return "gcn"

    def _fit_network(
        self,
        task: Task,
        inputs: Inputs,
        loss: Callable[[Tensor], Tensor],
        validation: Inputs | None = None,
    ) -> None:
        """Train a fresh network.

        Args:
            task: What to learn; its nodes are the first of the inputs.
            inputs: What to train on.
            loss: Of the logits of all nodes.
            validation: What to validate on, if not on the inputs.
        """
        self.net_ = net = self._network(task)
        num_nodes = task.graph.num_nodes

        def epoch() -> tuple[Tensor, Tensor]:
            first = net.encoder(*inputs)  # no dropout before it: both passes share it
            with torch.no_grad():
                clean = (
                    net.classify(first, inputs.propagation) if not validation else net(*validation)
                )
                score = validation_score(self._answer(clean[:num_nodes]), task)
            return loss(net.classify(first, inputs.propagation, dropout=True)), score

        # attention over copies lists its links anew in every pass
        listed = self._backbone() == "gat" and not isinstance(inputs.propagation, Sparse)
        self._train(net, epoch, recordable=not listed)

    def _pretrain(
        self, inputs: Inputs, decoder: EdgeDecoder, loss: Reconstruction, epochs: int
    ) -> None:
        """Let the encoder and an edge decoder learn for some epochs which nodes are joined."""
        net = self.net_

        def epoch() -> tuple[Tensor, Tensor]:
            embeddings = net.embed(net.encoder(*inputs), dropout=True)
            value = loss(decoder, embeddings)
            return value, torch.zeros_like(value)  # nothing to choose: the last stays

        if epochs:
            both = nn.ModuleList([net.encoder, decoder])
            limits = {"max_epochs": epochs, "patience": epochs}
            history = self._train(both, epoch, **limits, main=False, recordable=True)
            if history.interrupted:  # nothing has been learnt about classes yet
                raise KeyboardInterrupt


@dataclass(kw_only=True)
class BackboneMethod(NetworkMethod):
    """A method that any kind of graph convolution will do for.

    Args:
        backbone: Kind of both convolutions: `gcn`, `sage` (GraphSAGE with means, whatever the
            normalisation: a node's own features have weights of their own) or `gat` (attention,
            in up to eight heads).
    """

    backbone: Backbone = "gcn"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("backbone", self.backbone, BACKBONES)

    def _backbone(self) -> Backbone:
        return self.backbone

    def _plain_network(self) -> PlainNetwork:
        """Two convolutions and nothing after them."""
        layers = PYG_CONVS[self.backbone], LAST_CONVS[self.backbone]
        return PlainNetwork(
            *layers, self.num_features_, self.hidden, self.num_classes_, self.dropout
        )


@dataclass(kw_only=True)
class FreeMethod(BackboneMethod):
    """A method that any network of two convolutions will do for.

    Args:
        network: `comparison` has a linear layer after the convolutions; `plain` has nothing after
            them, starts as PyG's layers do and lets the second keep its weights undecayed, as the
            papers on public splits have it.
    """

    network: Literal["comparison", "plain"] = "comparison"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("network", self.network, ("comparison", "plain"))

    def _fresh_network(self) -> Any:
        plain = self.network == "plain"
        return self._plain_network() if plain else super()._fresh_network()
