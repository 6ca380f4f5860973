"""NetworkMethod: a method on a network of two graph convolutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Self, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.method import Method, same_graph
from evengraph.metrics.multiclass import validation_score
from evengraph.nn.networks import (
    LAST_CONVS,
    PYG_CONVS,
    Backbone,
    EdgeDecoder,
    GraphNetwork,
    Inputs,
    PlainNetwork,
    Reconstruction,
)
from evengraph.ops.features import matching_signatures, node_signatures
from evengraph.ops.losses import (
    ClassTerms,
    NamedLoss,
    balanced_softmax,
    class_cross_entropy,
    labelled_loss,
    soft_labels,
    topology_margins,
)
from evengraph.ops.sparse import (
    Normalisation,
    Sparse,
    propagation_matrix,
    scatter_sum,
    sparsify,
    weighted_adjacency,
    with_self_loops,
)
from evengraph.ops.synthesis import Copies, GraphWithCopies, plan_copies, rare_classes
from evengraph.training import Epoch
from evengraph.training.ranks import ALONE, Ranks

# features of the copies, from features and labels of the labelled nodes
NewFeatures = Callable[[Tensor, Tensor, Copies], Tensor]


@dataclass(eq=False)
class EnlargedGraph:
    """Copies of labelled nodes, and the graph they belong to.

    A copy has the links of its original, and the original itself through its self-loop.
    """

    new: Tensor  # features of the copies, (M, F)
    originals: Tensor  # the node that each is a copy of, (M,)
    graph: Data | None = None  # the training graph; None in a loaded model
    signatures: Tensor | None = None  # of its nodes, (N, 3); None until needed

    @classmethod
    def of(cls, task: Task, copies: int, minority: int, new_features: NewFeatures) -> Self:
        """Copy the labelled nodes of rare classes."""
        graph, nodes = task.graph, task.train_nodes
        labels, rare = graph.y[nodes], rare_classes(task.class_counts, minority)
        copied = plan_copies(labels, rare, copies)
        new = new_features(graph.x.float()[nodes], labels, copied)
        return cls(new, nodes[copied.positions], graph)

    def examples(self, task: Task) -> tuple[Tensor, Tensor]:
        """Rows of the labelled nodes and of the copies, and their labels."""
        nodes, labels = task.train_nodes, task.graph.y
        copies = task.graph.num_nodes + torch.arange(self.new.shape[0], device=self.new.device)
        return torch.cat([nodes, copies]), torch.cat([labels[nodes], labels[self.originals]])

    def repeated(self, propagation: Sparse) -> GraphWithCopies:
        """A normalised matrix with the rows and columns of the originals once more.

        Rows that gain an entry then sum to more than one, as in the comparison's public code.
        """
        return GraphWithCopies(propagation, self.originals)

    def normalised(self, graph: Data, how: Normalisation) -> GraphWithCopies:
        """The enlarged graph, normalised afterwards."""
        looped = with_self_loops(weighted_adjacency(graph), graph.x.device)
        return GraphWithCopies.normalised(looped, self.originals, how)

    def with_copies(self, graph: Data, propagation: GraphWithCopies) -> Inputs:
        """Features of the graph and of the copies, with the enlarged propagation."""
        return Inputs(sparsify(torch.cat([graph.x.float(), self.new])), propagation)

    def is_training_graph(self, graph: Data) -> bool:
        """Whether features and edges are those of training."""
        if self.graph is not None:
            return same_graph(graph, self.graph)
        assert self.signatures is not None
        if graph.num_nodes != self.signatures.shape[0]:
            return False
        signatures = node_signatures(graph.x.detach(), graph.edge_index)
        return bool(matching_signatures(signatures, self.signatures).all())

    def state(self) -> dict[str, Tensor]:
        if self.signatures is None:
            assert self.graph is not None
            self.signatures = node_signatures(self.graph.x, self.graph.edge_index)
        return {"new": self.new, "seeds": self.originals, "signatures": self.signatures}


NetworkKind = Literal["comparison", "plain"]
DEFAULT_BACKBONE: Backbone = "gcn"
DEFAULT_NETWORK: NetworkKind = "comparison"


@dataclass(kw_only=True)
class NetworkMethod(Method):
    """A method that trains a network of two graph convolutions.

    By default it is trained on the labelled nodes with the terms of `_class_terms`. A method whose
    users may choose the backbone or the network declares it as a parameter:

        backbone: `gcn`, `sage` (GraphSAGE with means, whatever the normalisation: a node's own
            features have separate weights) or `gat` (attention, in up to eight heads).
        network: `comparison` has a linear layer after the convolutions; `plain` has none, uses
            PyG's initial weights and exempts the second convolution from weight decay.

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

    _weighted_edges = True
    backbone = DEFAULT_BACKBONE
    network = DEFAULT_NETWORK
    enlarged_ = cast(EnlargedGraph | None, None)

    def _fit(self, task: Task) -> None:
        self._fit_network(task, self._inputs(task.graph), self._loss(task))

    def _loss(self, task: Task) -> Callable[[Tensor], Tensor]:
        """The training loss as a function of the logits of all nodes."""
        labels = task.graph.y[task.train_nodes]
        terms = self._class_terms(task.class_counts)[:2]
        return lambda logits: class_cross_entropy(logits[task.train_nodes], labels, *terms)

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
        labels = self.labelled_.labels
        counts = scatter_sum(torch.ones_like(labels), labels, self.num_classes_)
        return self._class_terms(counts).predict(logits[: graph.num_nodes])

    def _inputs(self, graph: Data) -> Inputs:
        return Inputs(sparsify(graph.x.float()), self._propagation(graph))

    def _propagation(self, graph: Data) -> Sparse:
        matrix = weighted_adjacency(graph)
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
        self.enlarged_ = None
        if "new" in state:
            new, originals = state["new"], state["seeds"]
            self.enlarged_ = EnlargedGraph(new, originals, signatures=state["signatures"])

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


WARMUP = 5  # epochs before predictions are good enough for margins


@dataclass(kw_only=True)
class MarginMethod(Method):
    """A method whose logits TAM may adjust in training, node by node.

    TAM (topology-aware margins) compares the known or predicted classes around each labelled node
    with those usual for its class. Where another class is over-represented, the margin against it
    is reduced in training; otherwise methods that favour rare classes predict them too often.
    Predictions use the plain logits.

    Args:
        margin: `tam`, or `none` for the method alone.
        tam_connectivity: Strength of the margin by how connected a node is (the paper's alpha).
        tam_distribution: Strength of that by the distribution of classes around it (beta).
        tam_temperature: How sharp predictions are for this (phi); rare classes are smoothed more.

    Departs:
        Network, training and selection are those of the method that it is added to. Weights of
        edges, if there are any, count in the distribution of classes around a node.

    Reference:
        Song, Park and Yang, "TAM: Topology-Aware Margin Loss for Class-Imbalanced Node
        Classification", ICML 2022.
    """

    limits = {"tam_connectivity": 0, "tam_distribution": 0, "tam_temperature": "positive"}

    margin: Literal["none", "tam"] = "none"
    tam_connectivity: float = 2.5
    tam_distribution: float = 0.5
    tam_temperature: float = 1.2

    def _margins(self, task: Task) -> Callable[[Tensor], Tensor]:
        """Margins to add to the logits of the labelled nodes, (n, C), given the logits of all."""
        graph, nodes = task.graph, task.train_nodes
        labels, counts = graph.y[nodes], task.class_counts
        nothing = torch.zeros((), device=graph.x.device)
        if self.margin == "none":
            return lambda logits: nothing
        matrix = weighted_adjacency(graph)
        around = propagation_matrix(matrix, graph.x.device, how="row").rows(nodes)
        epochs = 0

        def margins(logits: Tensor) -> Tensor:
            nonlocal epochs
            epochs += 1
            if epochs <= WARMUP:
                return nothing
            # the distribution of classes around v, D_v: the mean of labels and of predictions by
            # the class-wise temperature; then alpha log ACM - beta ADM, from D_v and class means
            classes = self._soft_labels(logits, nodes, labels, counts)
            return self._adjusted(around @ classes, labels)

        return margins

    def _soft_labels(self, logits: Tensor, nodes: Tensor, labels: Tensor, counts: Tensor) -> Tensor:
        """The label or the smoothed prediction of each node, (N, C)."""
        return soft_labels(logits.detach(), nodes, labels, counts, self.tam_temperature)

    def _adjusted(self, around: Tensor, labels: Tensor) -> Tensor:
        """Margins from the distributions of classes around labelled nodes, (n, C)."""
        return topology_margins(around, labels, self.tam_connectivity, self.tam_distribution)


def double_balancing_epoch(
    net: GraphNetwork | PlainNetwork,
    inputs: Inputs,
    task: Task,
    loss: NamedLoss,
    pseudo_weight: float,
) -> Epoch:
    """An epoch of self-training: `loss` on labels, balanced softmax on pseudo-labels."""
    graph, nodes = task.graph, task.train_nodes
    matrix = weighted_adjacency(graph)
    on_labels = labelled_loss(loss, matrix, nodes, graph.y[nodes], task.class_counts)
    others = (~task.train).nonzero().squeeze(1)

    def epoch() -> tuple[Tensor, Tensor]:
        first = net.encoder(*inputs)  # no dropout before it: both passes share it
        with torch.no_grad():
            clean = net.classify(first, inputs.propagation)
            confidence, predicted = clean[others].softmax(1).max(1)
        logits = net.classify(first, inputs.propagation, dropout=True)
        balanced = pseudo_label_loss(logits[others], predicted, above_mean(confidence))
        return on_labels(logits[nodes]) + pseudo_weight * balanced, validation_score(clean, task)

    return epoch


def above_mean(confidence: Tensor, ranks: Ranks = ALONE, total: int = 0) -> Tensor:
    """Which nodes are predicted with at least the mean confidence, bool, (n,) or (M, n).

    Of several processes each has some of the `total` nodes.
    """
    mean = ranks.sum(ranks.share_of_mean(confidence, total))
    padded = confidence if ranks.is_alone else pad(confidence, (0, 1))  # one may have no node
    largest = ranks.max(padded.amax(-1))
    return confidence >= mean.minimum(largest).unsqueeze(-1)  # a mean is rounded


def pseudo_label_loss(
    logits: Tensor, predicted: Tensor, selected: Tensor, ranks: Ranks = ALONE
) -> Tensor:
    """Mean balanced softmax of the selected pseudo-labels, at least one, by their class sizes.

    Of one network, logits are (n, C); of M members, (M, n, C), and the loss is (M,). Of several
    processes each has some of the nodes, and gets a share of the loss.
    """
    classes = torch.arange(logits.shape[-1], device=logits.device)
    hits = (predicted.unsqueeze(-1) == classes) & selected.unsqueeze(-1)
    counts = ranks.sum(hits.sum(-2, keepdim=True))
    losses = balanced_softmax(logits, predicted, counts, reduction="none")
    return torch.where(selected, losses, 0.0).sum(-1) / counts.sum((-2, -1))
