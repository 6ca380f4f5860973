"""NetworkMethod: a method on a network of two graph convolutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.enlarged_graph import EnlargedGraph
from evengraph.methods.bases.method import Method
from evengraph.metrics import validation_score
from evengraph.nn import (
    LAST_CONVS,
    PYG_CONVS,
    Backbone,
    EdgeDecoder,
    GraphNetwork,
    Inputs,
    PlainNetwork,
    Reconstruction,
)
from evengraph.ops import Sparse, graph_matrix, propagation_matrix, sparsify
from evengraph.ops.losses import ClassTerms, class_cross_entropy
from evengraph.ops.propagate import Normalisation
from evengraph.ops.sparse import scatter_sum
from evengraph.outofcore.layers import DiskConv, stacked_table
from evengraph.outofcore.propagation import Workspace
from evengraph.outofcore.tables import Table

NetworkKind = Literal["comparison", "plain"]
DEFAULT_BACKBONE: Backbone = "gcn"
DEFAULT_NETWORK: NetworkKind = "comparison"
LAST = "last"  # layer, of a graph on disk


@dataclass(kw_only=True)
class NetworkMethod(Method):
    """A method that trains a network of two graph convolutions.

    By default it is trained on the labelled nodes with the terms of `_class_terms`. A method whose
    users may choose the backbone or the network declares it as a parameter:

        backbone: `gcn`, `sage` (GraphSAGE with means, whatever the normalisation: a node's own
            features have separate weights) or `gat` (attention, in up to eight heads).
        network: `comparison` has a linear layer after the convolutions; `plain` has none, uses
            PyG's initial weights and exempts the second convolution from weight decay, as in the
            papers on public splits.

    Args:
        hidden: Width of both convolutions.
        dropout: Dropout rate after each.
        normalisation: `row` averages over a node and its neighbours, as in the comparison's public
            code; `symmetric` is Kipf and Welling's.
    """

    limits = {"hidden": 1, "dropout": "fraction"}

    hidden: int = 64
    dropout: float = 0.5
    normalisation: Normalisation = "row"

    weighted_edges = True
    backbone = DEFAULT_BACKBONE
    network = DEFAULT_NETWORK
    enlarged_ = cast(EnlargedGraph | None, None)
    layerwise: ClassVar[bool] = True
    """Whether the network alone predicts, so that it can do so layer by layer on disk."""

    def _fit(self, task: Task) -> None:
        self._fit_network(task, self._inputs(task.graph), self._loss(task))

    def _loss(self, task: Task) -> Callable[[Tensor], Tensor]:
        """The training loss as a function of the logits of all nodes."""
        labels = task.graph.y[task.train_nodes]
        weights, offsets, _ = self._class_terms(task.class_counts)
        return lambda logits: class_cross_entropy(
            logits[task.train_nodes], labels, weights, offsets
        )

    def _class_terms(self, class_counts: Tensor) -> ClassTerms:
        """What the loss does per class, given the number of labelled nodes of each."""
        return ClassTerms()

    def _logits(self, graph: Data) -> Tensor:
        if self.enlarged_ is not None and self.enlarged_.is_training_graph(graph):
            repeated = self.enlarged_.repeated(self._propagation(graph))
            inputs = self.enlarged_.with_copies(graph, repeated)
        else:
            inputs = self._inputs(graph)
        logits: Tensor = self.net_(*inputs)
        return self._predicted(logits[: graph.num_nodes])

    def _predicted(self, logits: Tensor) -> Tensor:
        """The logits with the terms of the classes."""
        labels = self.labelled_.labels
        counts = scatter_sum(torch.ones_like(labels), labels, self.num_classes_)
        return self._class_terms(counts).predict(logits)

    def _inputs(self, graph: Data) -> Inputs:
        return Inputs(sparsify(graph.x.float()), self._propagation(graph))

    def _propagation(self, graph: Data) -> Sparse:
        matrix = graph_matrix(graph)
        return propagation_matrix(matrix, graph.x.device, how=self._normalisation)

    @property
    def _normalisation(self) -> Normalisation:
        """How the adjacency matrix is normalised; GraphSAGE always takes means."""
        return "row" if self.backbone == "sage" else self.normalisation

    def _build_network(self) -> nn.Module:
        widths = self.num_features_, self.hidden, self.num_classes_
        if self.network == "plain":
            layers = PYG_CONVS[self.backbone], LAST_CONVS[self.backbone]
            return PlainNetwork(*layers, *widths, self.dropout)
        return GraphNetwork(*widths, self.dropout, self.backbone)

    def _state(self) -> dict[str, Tensor]:
        enlarged = {} if self.enlarged_ is None else self.enlarged_.state()
        return super()._state() | enlarged

    def _load_state(self, state: Mapping[str, Tensor]) -> None:
        super()._load_state(state)
        self.enlarged_ = EnlargedGraph.from_state(state)

    # Graphs on disk

    def tables(self, x: Table, space: Workspace) -> dict[str, Table]:
        """The last convolution at all nodes, layer by layer; the graph is taken as a new one."""
        convs = self._convolutions() if self.layerwise else []
        if not convs or not all(isinstance(conv, DiskConv) for conv in convs):
            raise ValueError(f"{self.full_title} needs the whole graph in memory to predict it.")
        return {LAST: stacked_table(convs, x, space, self._normalisation)}

    def _convolutions(self) -> list[nn.Module]:
        """The convolutions of the network, with ReLU between them; none if it has other layers."""
        net = self.net_
        if type(net) is GraphNetwork:
            return [net.encoder, net.classifier.conv]
        return [net.encoder, net.last] if type(net) is PlainNetwork else []

    def row_logits(self, rows: Mapping[str, Tensor]) -> Tensor:
        """Logits from rows of the last convolution."""
        last, net = rows[LAST], self.net_
        return self._predicted(last if type(net) is PlainNetwork else self._classified(last))

    def _classified(self, last: Tensor) -> Tensor:
        """Logits of the linear layer after the last convolution."""
        logits: Tensor = self.net_.classifier.linear(last.relu())
        return logits

    # Training

    def _fit_network(
        self,
        task: Task,
        inputs: Inputs,
        loss: Callable[[Tensor], Tensor],
        validation: Inputs | None = None,
    ) -> None:
        """Train a new network, and validate on `validation` instead of the inputs if given.

        The nodes of the task are the first of the inputs; the loss takes the logits of all.
        """
        self.net_ = net = self._new_network()
        num_nodes, terms = task.graph.num_nodes, self._class_terms(task.class_counts)

        def epoch() -> tuple[Tensor, Tensor]:
            first = net.encoder(*inputs)  # no dropout before it: both passes share it
            with torch.no_grad():
                clean = net(*validation) if validation else net.classify(first, inputs.propagation)
                score = validation_score(terms.predict(clean[:num_nodes]), task)
            return loss(net.classify(first, inputs.propagation, dropout=True)), score

        # attention over copies lists its links again in every pass
        listed = self.backbone == "gat" and not isinstance(inputs.propagation, Sparse)
        self._train(net, epoch, recordable=not listed)

    def _fit_enlarged(self, task: Task, enlarged: EnlargedGraph, *, sound: bool) -> None:
        """Train on the graph with copies; unless `sound`, it is also predicted with them."""
        graph = task.graph
        rows, labels = enlarged.examples(task)
        if sound:
            propagation = enlarged.normalised(graph, self._normalisation)
        else:
            propagation = enlarged.repeated(self._propagation(graph))
        self._fit_network(
            task,
            enlarged.with_copies(graph, propagation),
            lambda logits: class_cross_entropy(logits[rows], labels),
            validation=self._inputs(graph) if sound else None,
        )
        self.enlarged_ = None if sound else enlarged

    def _pretrain(
        self, inputs: Inputs, decoder: EdgeDecoder, loss: Reconstruction, epochs: int
    ) -> None:
        """Train the encoder and an edge decoder to reconstruct the graph for some epochs."""
        net = self.net_

        def epoch() -> tuple[Tensor, Tensor]:
            embeddings = net.embed(net.encoder(*inputs), dropout=True)
            value = loss(decoder, embeddings)
            return value, torch.zeros_like(value)  # nothing to select: the last weights are kept

        if epochs:
            both = nn.ModuleList([net.encoder, decoder])
            limits = {"max_epochs": epochs, "patience": epochs}
            history = self._train(both, epoch, **limits, main=False, recordable=True)
            if history.interrupted:  # no classes have been learnt yet
                raise KeyboardInterrupt
